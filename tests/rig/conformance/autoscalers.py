"""Cases of autoscalers: facts from the tables of the unit tests of Karpenter and Cluster Autoscaler, in our own form,
and decisions that were recorded by running them.

A case names its `source`. It is about a `plan` (steps of pods and pools; new nodes, pods by zone or host, pods that are
left; of Cluster Autoscaler also the pods that fit on nodes that are there, the estimate of each group, the groups that
the expanders leave, and how much each group grows), an `expander` (options; which remain), nodes that are `eligible`
(underutilised, and nothing keeps them), nodes that are `unneeded` (eligible, and their pods fit elsewhere), or a
`consolidation` (nodes that go, and the one that is launched instead). A case that is `recorded` has what did not depend
on the order of maps: runs on the same input gave the same.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from bayplan.api.node import ZONE, Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.autoscaling import Autoscaler, AutoscalerOptions, autoscaled
from bayplan.autoscaling.cluster_autoscaler_flags import parse_flags, read_priorities
from bayplan.autoscaling.expanders import ExpanderChain, GroupEstimate
from bayplan.autoscaling.launch_options import LaunchOption, LaunchPlan
from bayplan.autoscaling.pool_nodes import PoolNode
from bayplan.config.problems import Problems
from bayplan.planning import NodePool, NodeType
from bayplan.planning.instance_types import NO_TABLE
from bayplan.planning.pool_documents import read_pool_document
from bayplan.sim import Simulation
from bayplan.sim.settings import Settings

from .cases import Disagreement

KIND = "autoscaler"


def is_autoscaler_case(case: dict[str, Any]) -> bool:
    """Whether the case is one of an autoscaler."""
    return case.get("kind") == KIND


def run_autoscaler_case(case: dict[str, Any]) -> Iterator[tuple[str, list[Disagreement]]]:
    """The decisions of a case, each with its disagreements."""
    run = RUNS[case["about"]]
    for name, expected, found in run(case):
        wrong = [
            Disagreement(case["id"], name, key, json.dumps(found.get(key)), json.dumps(value))
            for key, value in expected.items()
            if found.get(key) != value
        ]
        yield name, wrong


def _options(case: dict[str, Any]) -> AutoscalerOptions:
    flags = parse_flags(case.get("flags", ()), case["id"]).flags
    text = case.get("priorities")
    rules = None if text is None else read_priorities(text, case["id"])
    return AutoscalerOptions(autoscaler=case["autoscaler"], flags=flags, priorities=rules)


def _pools(trees: list[Any], place: str) -> list[NodePool]:
    problems = Problems()
    found = [read_pool_document(tree, NO_TABLE, place, problems) for tree in trees]
    assert not len(problems), f"{place}: the pools have problems"
    return found


def _plans(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    objects: list[Any] = [decode_object(tree) for tree in case.get("objects", ())]
    pools: list[Any] = []
    for number, step in enumerate(case["steps"]):
        pools = step.get("pools", pools)
        pods: list[Any] = [
            decode_object({**one["pod"], "metadata": {**one["pod"]["metadata"], "name": name}})
            for i, one in enumerate(step["pods"])
            for name in (f"s{number}-g{i}-{j}" for j in range(one["count"]))
        ]
        read = _pools(pools, case["id"])
        simulation = autoscaled(Settings(seed=0), [*objects, *pods], read, _options(case))
        plan, chosen = _plan(simulation)
        nodes, placed = _carried_out(simulation, plan, number)
        objects = [*nodes, *placed]
        expected, found = step["expected"], _outcome(plan, nodes, placed)
        names = {pod.uid: pod.name for pod in simulation.cluster.list("Pod")}
        found |= _groups(plan, names, expected.get("launches", ()))
        yield f"step {number}", expected, found | _growth(plan, chosen)


class _FirstOfBest(ExpanderChain):
    """The chain of expanders of a run, which chooses the first of equal groups by name; records the estimates and the
    best ones.
    """

    def __init__(self, chain: ExpanderChain) -> None:
        super().__init__(chain._names, chain._priorities, chain._random)
        self.estimates: list[GroupEstimate] = []
        self.best_groups: list[str] = []
        self.workloads: dict[str, str] = {}
        """The label `app` of each pod without a node, by uid."""

    def choose(self, estimates: list[GroupEstimate], node_count: int) -> GroupEstimate:
        self.estimates = estimates
        for name in self._names:
            if len(estimates) > 1:
                estimates = self.best(name, estimates, node_count)
        best = sorted(estimates, key=lambda one: one.group)
        self.best_groups = [one.group for one in best]
        return best[0]


def _plan(simulation: Simulation) -> tuple[LaunchPlan, _FirstOfBest]:
    """The plan for the pods without a node, before the scheduler tries one of them."""
    simulation.begin()
    controller = simulation._controller
    assert isinstance(controller, Autoscaler)
    pods = [pod for pod in simulation.cluster.list("Pod") if not pod.node_name and not pod.spec.pin]
    controller.choices.learn(pods)
    chosen = _FirstOfBest(controller._groups._expanders)
    controller._groups._expanders = chosen
    chosen.workloads = {pod.uid: pod.labels.get("app", "") for pod in pods}
    return controller._plan(pods), chosen


def _growth(plan: LaunchPlan, chosen: _FirstOfBest) -> dict[str, Any]:
    """The compared values of a case of Cluster Autoscaler: by workload the pods that fit on nodes that are there; each
    group with the nodes and pods of its estimate; the groups that the expanders leave; the nodes by group.
    """
    return {
        "fitted": dict(Counter(chosen.workloads[uid] for uid in plan.existing)),
        "options": {
            one.group: {
                "nodes": len(one.launches),
                "pods": dict(Counter(pod.labels["app"] for pod in one.pods)),
            }
            for one in chosen.estimates
        },
        "best": chosen.best_groups,
        "sizes": dict(Counter(option.label for option, _ in plan.launches)),
    }


def _carried_out(
    simulation: Simulation, plan: LaunchPlan, number: int
) -> tuple[list[Node], list[Pod]]:
    """The nodes and the pods on them, as if the plan were carried out."""
    nodes = list(simulation.cluster.list("Node"))
    pods = {pod.uid: pod for pod in simulation.cluster.list("Pod") if pod.node_name}
    for i, (option, planned) in enumerate(plan.launches):
        name = f"new-{number}-{i}"
        nodes += [one for one in option.make_objects(name) if isinstance(one, Node)]
        pods |= {pod.uid: pod.with_node(name) for pod in planned}
    for pod in simulation.cluster.list("Pod"):
        if pod.uid in plan.existing:
            pods.setdefault(pod.uid, pod.with_node(plan.existing[pod.uid]))
    return nodes, list(pods.values())


def _outcome(plan: LaunchPlan, nodes: list[Node], pods: list[Pod]) -> dict[str, Any]:
    """The compared values of a case: pods with the label `app: x` by zone and by host, new nodes, and pods without a
    place.
    """
    zones = {node.name: node.labels.get(ZONE, "") for node in nodes}
    counted = [pod.node_name for pod in pods if pod.labels.get("app") == "x"]
    return {
        "zones": sorted(Counter(zones[name] for name in counted).values()),
        "hosts": sorted(Counter(counted).values()),
        "newNodes": len(plan.launches),
        "newPods": sum(len(planned) for _, planned in plan.launches),
        "left": len(plan.left),
        "processed": sorted({pod.labels.get("app", "") for _, on in plan.launches for pod in on}),
    }


def _groups(
    plan: LaunchPlan, names: dict[str, str], launches: Iterable[list[Any]]
) -> dict[str, Any]:
    """The compared values of a recorded plan; `names` are those of the pods by uid, a group is one entry of the step.

    `launches` are new nodes with pool, type, the zones to choose from, and pods by group; `shapes` are those without
    zones; `existing` are pods by node and group; `leftGroups` are those without a place.
    """
    places: dict[str, Counter[str]] = {}
    for uid, node in plan.existing.items():
        places.setdefault(node, Counter())[_group(names[uid])] += 1
    nodes = [
        [one.pool.name, one.type.name, one.zone, _by_group(pod.name for pod in pods)]
        for one, pods in plan.launches
    ]
    return {
        "launches": _in_zones(nodes, launches),
        "shapes": sorted(([pool, kind, pods] for pool, kind, _, pods in nodes), key=json.dumps),
        "existing": {name: dict(sorted(places[name].items())) for name in sorted(places)},
        "leftGroups": _by_group(pod.name for pod in plan.left),
    }


def _by_group(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(_group(name) for name in names).items()))


def _group(name: str) -> str:
    """`g1` of the pod `s0-g1-7`."""
    return name.split("-")[1]


def _in_zones(nodes: list[list[Any]], expected: Iterable[list[Any]]) -> list[list[Any]]:
    """The nodes, sorted; one whose zone is among those of an expected node has that node's zones."""
    left, found = sorted(nodes, key=json.dumps), []
    for pool, kind, zones, pods in sorted(
        expected, key=lambda one: (one[2].count("|"), json.dumps(one))
    ):
        same = [one for one in left if [one[0], one[1], one[3]] == [pool, kind, pods]]
        fitting = [one for one in same if one[2] in zones.split("|")]
        if fitting:
            left.remove(fitting[0])
            found.append([pool, kind, zones, pods])
    return sorted(found + left, key=json.dumps)


def _consolidation(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    (step,) = case["steps"]
    objects: list[Any] = [decode_object(tree) for tree in case["objects"]]
    pools = _pools(step["pools"], case["id"])
    simulation = autoscaled(Settings(seed=0), objects, pools, _options(case))
    simulation.begin()
    controller = simulation._controller
    assert isinstance(controller, Autoscaler)
    decide = controller._down._consolidation
    now, moment = simulation.clock.monotonic(), simulation.clock.now()
    command = decide.empty(now, moment, set()) or decide.underutilized(now, moment, set(), [])
    expected = step["expected"]
    found: dict[str, Any] = {"removed": [], "why": "", "launches": []}
    if command is not None:
        nodes = [[one.pool.name, one.type.name, one.zone, {}] for one, _ in command.plan.launches]
        found = {
            "removed": sorted(node.name for node in command.nodes),
            "why": command.why,
            "launches": _in_zones(nodes, expected.get("launches", ())),
        }
    yield "consolidation", expected, found


def _expander(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    text = case.get("priorities")
    rules = None if text is None else read_priorities(text, case["id"])
    chain = ExpanderChain([case["expander"]], rules, random.Random(0))
    estimates = [_estimate(number, one) for number, one in enumerate(case["options"])]
    best = chain.best(case["expander"], estimates, 1)
    yield (
        case["expander"],
        {"best": case["best"]},
        {"best": [one.launches[0][0].type.name for one in best]},
    )


def _estimate(number: int, given: dict[str, Any]) -> GroupEstimate:
    amounts = {"cpu": given.get("cpu", 1000), "memory": given.get("memory", 1 << 30), "pods": 110}
    kind = NodeType(given["group"], amounts, amounts, price=given.get("price", 1.0))
    option = LaunchOption(number, NodePool("my-asg", (kind,)), kind, "", {})
    pod: Any = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": given.get("requests", {})}}]
            },
        }
    )
    pods = [pod] * given.get("pods", 0)
    return GroupEstimate([(option, pods if not i else []) for i in range(given.get("nodes", 1))])


def _eligible(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    objects: list[Any] = [decode_object(tree) for tree in case["objects"]]
    pools = _pools(case["pools"], case["id"])
    simulation = autoscaled(Settings(seed=0), objects, pools, _options(case))
    simulation.run(until_s=1.0)
    controller = simulation._controller
    assert isinstance(controller, Autoscaler)
    unneeded = controller._down._unneeded

    def is_eligible(node: PoolNode) -> bool:
        blockers, pods = unneeded._blockers, unneeded._pods_of(node)
        is_kept = blockers.of_pods(node) or blockers.of_budgets(pods)
        return unneeded._may_go(node, set()) and not is_kept

    found = sorted(node.name for node in unneeded._underutilised() if is_eligible(node))
    yield "eligible", {"eligible": case["eligible"]}, {"eligible": found}


def _unneeded(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    objects: list[Any] = [decode_object(tree) for tree in case["objects"]]
    simulation = autoscaled(
        Settings(seed=0), objects, _pools(case["pools"], case["id"]), _options(case)
    )
    simulation.begin()
    controller = simulation._controller
    assert isinstance(controller, Autoscaler)
    unneeded = controller._down._unneeded
    unneeded.update(0.0, set())
    yield "unneeded", {"unneeded": case["unneeded"]}, {"unneeded": sorted(unneeded.since_s)}


RUNS = {
    "plan": _plans,
    "expander": _expander,
    "eligible": _eligible,
    "unneeded": _unneeded,
    "consolidation": _consolidation,
}
