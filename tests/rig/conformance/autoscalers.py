"""Cases of autoscalers: facts from the tables of the unit tests of Karpenter and Cluster Autoscaler, in our own form.

A case names its `source`. It is about a `plan` (steps of pods and pools; new nodes, pods by zone or host, pods that are
left), an `expander` (options; which remain), or nodes that are `eligible` (underutilised, and nothing keeps them).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
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
    run = {"plan": _plans, "expander": _expander, "eligible": _eligible}[case["about"]]
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
        yield f"step {number}", step["expected"], _outcome(plan, nodes, placed, len(pods))


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


def _outcome(plan: LaunchPlan, nodes: list[Node], pods: list[Pod], new: int) -> dict[str, Any]:
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
