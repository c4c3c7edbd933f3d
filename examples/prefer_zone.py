"""A policy in ten lines: prefer the nodes of one zone."""

from bayplan.framework import MAX_SCORE, NODE_OBJECT, ScorePlugin


class PreferZone(ScorePlugin):
    name = "PreferZone"
    scope = NODE_OBJECT  # the score depends on the pod and the node object, nothing else

    def score_rows(self, state, pod, table, rows):
        return table.labels.equal("topology.kubernetes.io/zone", "north-a", rows) * MAX_SCORE
