"""score_rows with a scope, and a normalize of which nothing is declared."""

from bayplan.framework import NODE_OBJECT, ScorePlugin, scale_to_max


class PreferZoneA(ScorePlugin):
    name = "PreferZoneA"
    scope = NODE_OBJECT

    def score_rows(self, state, pod, table, rows):
        return table.labels.equal("topology.kubernetes.io/zone", "zone-0", rows) * 7

    def normalize(self, scores):
        return scale_to_max(scores)
