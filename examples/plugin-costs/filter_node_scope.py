"""filter_node with a scope: called for nodes that changed."""

from bayplan.framework import NODE_OBJECT, SUCCESS, FilterPlugin, unschedulable

ZONE = "topology.kubernetes.io/zone"


class NotInZoneA(FilterPlugin):
    name = "NotInZoneA"
    scope = NODE_OBJECT

    def filter_node(self, state, pod, node):
        if node.labels.get(ZONE) == "zone-0":
            return unschedulable("node(s) are in zone A")
        return SUCCESS
