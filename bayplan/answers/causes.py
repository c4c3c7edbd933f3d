"""Causes: facts about the cluster that lead to a rejection, which its reason does not tell.

A cause is a statement about objects. That it leads to the rejection is verified by running the
plugins on a changed pod, where that is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence

from ..api.node import Node
from ..api.pod import DO_NOT_SCHEDULE, Pod, PodAffinityTerm, TopologySpreadConstraint
from ..api.taints import NO_EXECUTE, NO_SCHEDULE, Taint, find_untolerated
from .account import RefusedNodes
from .cluster_view import ClusterView
from .manifest_changes import ObjectChange, pointer
from .remedies.affinity import elsewhere, selector_text
from .remedies.proposal import add, plain
from .remedies.spread import domain_pods, honor_taints
from .situation import Situation

SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
MAX_NAMES = 3
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


def find_causes(view: ClusterView, pod: Pod, refused: Sequence[RefusedNodes]) -> list[str]:
    """What leads to the rejections of a pod that fits nowhere, in words."""
    causes: list[str] = []
    node = _refused_by(SPREAD, refused)
    if node is not None:
        causes += _closed_domains(view, pod, node)
    if _refused_by(AFFINITY, refused) is not None:
        causes += _other_namespaces(view, pod)
    return causes


def _refused_by(plugin: str, refused: Sequence[RefusedNodes]) -> str | None:
    """The first node that the plugin refuses, one that no other refuses before others."""
    for group in sorted(refused, key=lambda group: len(group.refusals)):
        if group.nodes and any(refusal.plugin == plugin for refusal in group.refusals):
            return group.nodes[0]
    return None


def _closed_domains(view: ClusterView, pod: Pod, node_name: str) -> Iterator[str]:
    """Domains without a node for the pod that count as empty ones for a spread constraint."""
    situation = Situation(view, pod, node_name)
    for i, constraint in enumerate(pod.spec.topology_spread_constraints or ()):
        if constraint.when_unsatisfiable != DO_NOT_SCHEDULE:
            continue
        closed = _closed(view, pod, constraint)
        change = honor_taints(pod, i, constraint)
        if not closed or change is None:
            continue
        key = constraint.topology_key
        taints = list(_missing_taints(view, key, closed))
        left = situation.refusals_after(pod, [change, *taints])
        if any(one.plugin == SPREAD for one in left):
            continue
        names = ", ".join(f"{key}={value}" for value in list(closed)[:MAX_NAMES])
        they = "it" if len(closed) == 1 else "them"
        yield (
            f"the spread over {key} counts {names} with {_pods(min(closed.values()))}, although every node there is "
            f"cordoned or has a taint that the pod does not tolerate; nodeTaintsPolicy: Honor leaves {they} out"
            + (
                f" in a cluster, which gives cordoned nodes the taint {CORDON.key}"
                if taints
                else ""
            )
        )


def _missing_taints(view: ClusterView, key: str, domains: Container[str]) -> Iterator[ObjectChange]:
    """The taints that the cordoned nodes of the domains would have in a cluster, and lack in a file."""
    for node in view.cluster.list("Node"):
        is_lacking = node.unschedulable and all(taint.key != CORDON.key for taint in node.taints)
        if is_lacking and node.labels.get(key) in domains:
            path = pointer("spec", "taints")
            if node.taints:
                yield add(node, path + "/-", plain(CORDON))
            else:
                yield add(node, path, [plain(CORDON)])


def _closed(view: ClusterView, pod: Pod, constraint: TopologySpreadConstraint) -> dict[str, int]:
    """The domains of which every node refuses the pod by its taints, and that have the fewest pods."""
    key = constraint.topology_key
    nodes: list[Node] = [node for node in view.cluster.list("Node") if key in node.labels]
    open_ones = {node.labels[key] for node in nodes if not _is_closed(node, pod)}
    counts = Counter({node.labels[key]: 0 for node in nodes})
    counts.update(domain_pods(view, pod, constraint))
    fewest = min(counts.values(), default=0)
    return {
        value: count
        for value, count in counts.items()
        if count == fewest and value not in open_ones
    }


def _is_closed(node: Node, pod: Pod) -> bool:
    hard = [taint for taint in node.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    return node.unschedulable or find_untolerated(hard, pod.tolerations) is not None


def _other_namespaces(view: ClusterView, pod: Pod) -> Iterator[str]:
    """Affinity terms that select no pod where they look, but would in another namespace."""
    for term in pod.spec.required_affinity:
        found = elsewhere(view, pod, term)
        if found:
            total = sum(found.values())
            yield (
                f"the required pod affinity selects pods with {selector_text(term)} in {_where(pod, term)}, "
                f"where there is none; {_pods(total)} with these labels "
                f"{'is' if total == 1 else 'are'} only in {', '.join(list(found)[:MAX_NAMES])}"
            )


def _where(pod: Pod, term: PodAffinityTerm) -> str:
    if term.namespace_selector is not None:
        return "the namespaces that it selects"
    names = term.namespaces or (pod.namespace,)
    return f"namespace {names[0]}" if len(names) == 1 else f"namespaces {', '.join(names)}"


def _pods(number: int) -> str:
    return "no pod" if number == 0 else "1 pod" if number == 1 else f"{number} pods"
