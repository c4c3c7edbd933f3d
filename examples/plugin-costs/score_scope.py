"""score_rows with a scope: called for nodes that changed."""

from bayplan.framework import MAX_SCORE, NODE_OBJECT, ScorePlugin


class PreferZoneA(ScorePlugin):
    name = "PreferZoneA"
    scope = NODE_OBJECT

    def score_rows(self, state, pod, table, rows):
        return table.labels.equal("topology.kubernetes.io/zone", "zone-0", rows) * MAX_SCORE
