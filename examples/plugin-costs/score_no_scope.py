"""score_rows without a scope: called for every pod, about all feasible nodes."""

from bayplan.framework import MAX_SCORE, ScorePlugin


class PreferZoneA(ScorePlugin):
    name = "PreferZoneA"

    def score_rows(self, state, pod, table, rows):
        return table.labels.equal("topology.kubernetes.io/zone", "zone-0", rows) * MAX_SCORE
