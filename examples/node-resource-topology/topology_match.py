"""TopologyMatch: a guaranteed pod goes where one NUMA zone of the node has room for all of it.

Reads the NodeResourceTopology objects (topology.node.k8s.io/v1alpha2) that an agent on each node writes; they have the
names of the nodes. Nodes without such an object, or whose kubelet does not insist on a single NUMA zone, are accepted.
What a pod takes shows when the agent writes the object again; a plugin for production would reserve it until then.

    bayplan simulate -f examples/node-resource-topology/cluster.yaml \
        --plugins examples/node-resource-topology/topology_match.py
"""

from bayplan.api.resources import allocatable_units, pod_limits, to_units
from bayplan.framework import (
    SKIP,
    SUCCESS,
    ActionType,
    CustomResource,
    FilterPlugin,
    Hint,
    PreFilterPlugin,
    unschedulable,
    wait_for,
)

TOPOLOGIES = CustomResource(
    "noderesourcetopologies.v1alpha2.topology.node.k8s.io",
    kind="NodeResourceTopology",
    is_namespaced=False,
)
POLICY, SINGLE = "topologyManagerPolicy", "single-numa-node"
REASON = "no NUMA zone has room for the whole pod"


class TopologyMatch(PreFilterPlugin, FilterPlugin):
    """Compares what a pod requests with what is available in each zone."""

    name = "TopologyMatch"
    custom_resources = (TOPOLOGIES,)

    def events_to_register(self):
        written = ActionType.Add | ActionType.Update
        return [
            wait_for(TOPOLOGIES.name, written, zones_changed),
            wait_for(TOPOLOGIES.name, ActionType.Delete),
            wait_for("Node", ActionType.Add),
        ]

    def pre_filter(self, state, pod, table):
        return SUCCESS if is_guaranteed(pod) else SKIP

    def filter_node(self, state, pod, node):
        topology = self.handle.custom_objects(TOPOLOGIES.name).get(node.name)
        if topology is None or not wants_single_zone(topology.raw):
            return SUCCESS
        if any(fits(pod.requests, free) for free in zones(topology.raw)):
            return SUCCESS
        return unschedulable(REASON)


def zones_changed(pod, old, new):
    """A topology that says the same as before is not worth a new attempt."""
    return Hint.SKIP if old is not None and old.raw == new.raw else Hint.QUEUE


def is_guaranteed(pod):
    """Whether the limits of cpu and memory are what the pod requests."""
    limits, wanted = to_units(pod_limits(pod.spec)), pod.requests
    return all(wanted.get(name) and wanted[name] == limits.get(name) for name in ("cpu", "memory"))


def wants_single_zone(topology):
    attributes = {each["name"]: each["value"] for each in topology.get("attributes", ())}
    return attributes.get(POLICY) == SINGLE


def zones(topology):
    """What is available in each NUMA zone, in the units of `pod.requests`."""
    for zone in topology.get("zones", ()):
        if zone.get("type") == "Node":
            found = {each["name"]: each["available"] for each in zone.get("resources", ())}
            yield allocatable_units(found)


def fits(wanted, free):
    """Resources that zones do not report, such as ephemeral-storage, belong to no zone."""
    return all(amount <= free[name] for name, amount in wanted.items() if name in free)
