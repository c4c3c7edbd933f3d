"""filter_node without a scope: its answer may depend on anything, so no answer is used twice."""

from bayplan.framework import SUCCESS, FilterPlugin, unschedulable

ZONE = "topology.kubernetes.io/zone"


class NotInZoneA(FilterPlugin):
    name = "NotInZoneA"

    def filter_node(self, state, pod, node):
        if node.labels.get(ZONE) == "zone-0":
            return unschedulable("node(s) are in zone A")
        return SUCCESS
