"""score_node without a scope: a Python call per feasible node and pod."""

from bayplan.framework import MAX_SCORE, ScorePlugin

ZONE = "topology.kubernetes.io/zone"


class PreferZoneA(ScorePlugin):
    name = "PreferZoneA"

    def score_node(self, state, pod, node):
        return MAX_SCORE if node.labels.get(ZONE) == "zone-0" else 0
