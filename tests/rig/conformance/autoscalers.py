"""Cases of autoscalers: facts from the tables of the unit tests of Karpenter and Cluster Autoscaler, in our own form,
and decisions recorded from running Karpenter.

A case names its `source`. It is about a `plan` (steps of pods and pools; new nodes, pods by zone or host, pods that are
left), an `expander` (options; which remain), nodes that are `eligible` (underutilised, and nothing keeps them), or a
`consolidation` (nodes that go, and the one that is launched instead). Values that differed between runs of Karpenter
are not in a recorded case.
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
    return AutoscalerOptions(autoscaler=case["autoscaler"], flags=flags)


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
        plan = _plan(simulation)
        nodes, placed = _carried_out(simulation, plan, number)
        objects = [*nodes, *placed]
        expected, found = step["expected"], _outcome(plan, nodes, placed)
        names = {pod.uid: pod.name for pod in simulation.cluster.list("Pod")}
        found |= _groups(plan, names, expected.get("launches", ()))
        yield f"step {number}", expected, found


def _plan(simulation: Simulation) -> LaunchPlan:
    """The plan for the pods without a node, before the scheduler tries one of them."""
    simulation.begin()
    controller = simulation._controller
    assert isinstance(controller, Autoscaler)
    pods = [pod for pod in simulation.cluster.list("Pod") if not pod.node_name]
    controller.choices.learn(pods)
    return controller._plan(pods)


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
    found = sorted(node.name for node in unneeded._underutilised() if unneeded._may_go(node, set()))
    yield "eligible", {"eligible": case["eligible"]}, {"eligible": found}


RUNS = {
    "plan": _plans,
    "expander": _expander,
    "eligible": _eligible,
    "consolidation": _consolidation,
}
