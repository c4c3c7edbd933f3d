"""Shortcuts of the cycle of a pod group, over placements and in preemption, give the result of trying every member."""

import random
from typing import Any

import pytest

from bayplan.amounts import kernel
from bayplan.api.pod import Pod
from bayplan.scheduler import placement_search
from bayplan.scheduler.group_algorithm import GroupAlgorithm
from bayplan.scheduler.placement_search import PlacementSearch
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.random_examples import examples
from tests.rig.scenarios import Scenario

GATES = {"GenericWorkload": True, "GangScheduling": True}
SEEDS = range(examples(20))


def members(rng: random.Random, count: int, classes: int) -> list[Pod]:
    sizes = [f"{rng.randint(1, 6) * 250}m" for _ in range(classes)]
    return [
        make_pod(
            f"m{i}",
            cpu=rng.choice(sizes),
            priority=rng.choice([50, 50, 60]),
            spec={"schedulingGroup": {"podGroupName": "g"}},
        )
        for i in range(count)
    ]


def gang(needed: int, **spec: Any) -> Any:
    policy = {"schedulingPolicy": {"gang": {"minCount": needed}}, "priority": 50}
    return make_object("PodGroup", "g", namespace="default", spec={**policy, **spec})


def scenario(gate: str, *objects: Any, strategy: str = "LeastAllocated") -> Scenario:
    names = ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"]
    enabled = [{"name": name} for name in names if "Topology" in gate or name == names[0]]
    scoring = {"type": strategy, "resources": [{"name": "cpu", "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}
    disabled = [{"name": "NodeResourcesBalancedAllocation"}] if strategy != "LeastAllocated" else []
    profile = {
        "plugins": {"multiPoint": {"enabled": enabled, "disabled": disabled}},
        "pluginConfig": [fit],
    }
    return Scenario(*objects, profile=profile, feature_gates={**GATES, gate: True})


def placed(seed: int) -> tuple[dict[str, str], str, str]:
    """Nodes of the members of a random group in a random cluster with racks, and the group's status."""
    rng = random.Random(seed)
    nodes = [
        make_node(f"n{i}", cpu=str(rng.randint(1, 4)), labels={"rack": f"r{rng.randrange(7)}"})
        for i in range(rng.randint(10, 24))
    ]
    running = [
        make_pod(f"there{i}", cpu="500m", node_name=rng.choice(nodes).name) for i in range(12)
    ]
    count = rng.randint(2, 9)
    constraints = {"topology": [{"key": "rack"}]}
    group = gang(rng.randint(1, count), schedulingConstraints=constraints)
    cluster = scenario("TopologyAwareWorkloadScheduling", *nodes, *running, group)
    cluster.add(*members(rng, count, rng.randint(1, 3)))
    (attempt, *_) = cluster.run()
    chosen = attempt.group.chosen
    return (
        {a.pod.name: a.node_name for a in attempt.group.attempts},
        attempt.group.status.message,
        "" if chosen is None else chosen.name,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_over_placements_finds_the_one_that_trying_all_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_search = placed(seed)
    monkeypatch.setattr(placement_search, "FEW_PLACEMENTS", 10**6)

    assert by_search == placed(seed)


def test_placements_are_searched_and_not_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    run = GroupAlgorithm._try_members

    def counted(self: GroupAlgorithm, *args: Any) -> Any:
        tried.append(1)
        return run(self, *args)

    monkeypatch.setattr(GroupAlgorithm, "_try_members", counted)
    for seed in SEEDS:
        placed(seed)

    assert len(tried) < 2 * len(SEEDS)


def preempted(
    seed: int, classes: int = 1, strategy: str = "LeastAllocated"
) -> tuple[list[str], str]:
    """Pods that a random group preempts in a random full cluster, and the group's status."""
    rng = random.Random(seed)
    nodes = [make_node(f"n{i}", cpu="4", unschedulable=rng.random() < 0.1) for i in range(8)]
    groups = [
        make_object(
            "PodGroup",
            f"low{i}",
            namespace="default",
            spec={
                "schedulingPolicy": {"basic": {}},
                "disruptionMode": rng.choice(["Pod", "PodGroup"]),
                "priority": rng.randint(0, 60),
            },
        )
        for i in range(3)
    ]
    running = []
    for i in range(44):
        spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0}
        if rng.random() < 0.4:
            spec["schedulingGroup"] = {"podGroupName": f"low{rng.randrange(3)}"}
        running.append(
            make_pod(
                f"there{i}",
                cpu=rng.choice(["500m", "1", "1500m"]),
                node_name=rng.choice(nodes).name,
                priority=rng.randint(0, 60),
                labels={"app": rng.choice("ab")},
                status={"phase": "Running", "startTime": f"2026-04-01T00:00:{i:02}Z"},
                spec=spec,
            )
        )
    budget = make_object(
        "PodDisruptionBudget",
        "budget",
        namespace="default",
        spec={"selector": {"matchLabels": {"app": "a"}}},
        status={"disruptionsAllowed": rng.randint(0, 3)},
    )
    count = rng.randint(2, 6)
    cluster = scenario(
        "WorkloadAwarePreemption",
        *(*nodes, *groups, *running, budget, gang(rng.randint(1, count))),
        strategy=strategy,
    )
    cluster.add(*members(rng, count, classes))
    (attempt, *_) = cluster.run()
    preemption = attempt.group.preemption
    victims = [] if preemption is None else [pod.name for pod in preemption.victims]
    return victims, attempt.group.status.message


@pytest.mark.parametrize("seed", SEEDS)
def test_counting_room_finds_the_victims_that_trying_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_room = preempted(seed)
    monkeypatch.setattr(GroupAlgorithm, "room", lambda self: None)

    assert by_room == preempted(seed)


def test_some_groups_of_the_sample_preempt() -> None:
    assert sum(bool(preempted(seed)[0]) for seed in SEEDS) >= len(SEEDS) // 5


@pytest.mark.parametrize("seed", SEEDS)
def test_the_kernel_finds_the_victims_that_trying_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = seed, 3, "MostAllocated" if seed % 2 else "LeastAllocated"
    by_kernel = preempted(*case)
    with monkeypatch.context() as without_extension:
        without_extension.setattr(kernel, "compiled", None)
        by_numpy = preempted(*case)
    monkeypatch.setattr(PlacementSearch, "filling", lambda *args: None)

    assert by_kernel == by_numpy == preempted(*case)


def test_groups_of_unequal_pods_are_not_tried_for_each_victim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []
    run = GroupAlgorithm.__call__

    def counted(self: GroupAlgorithm) -> Any:
        tried.append(1)
        return run(self)

    monkeypatch.setattr(GroupAlgorithm, "__call__", counted)
    groups = sum(bool(preempted(seed, classes=3)[0]) for seed in SEEDS)
    fewer, tried[:] = len(tried), []
    monkeypatch.setattr(PlacementSearch, "filling", lambda *args: None)
    for seed in SEEDS:
        preempted(seed, classes=3)

    assert groups >= len(SEEDS) // 5
    assert fewer <= len(SEEDS) < len(tried) / 5, "once without all pods that may leave"


def test_a_pod_that_comes_back_may_attract_members() -> None:
    """With MostAllocated, one member is placed on the node of x; then another uses the room of that for node b."""

    def member(name: str, cpu: str, priority: int, **fields: Any) -> Pod:
        group = {"schedulingGroup": {"podGroupName": "g"}}
        return make_pod(name, cpu=cpu, priority=priority, spec=group, **fields)

    def there(name: str, node: str, cpu: str, priority: int) -> Pod:
        spec = {"terminationGracePeriodSeconds": 0}
        return make_pod(name, node_name=node, cpu=cpu, priority=priority, spec=spec)

    cluster = scenario(
        "WorkloadAwarePreemption",
        make_node("a", cpu="8"),
        make_node("b", cpu="4", labels={"size": "b"}),
        make_node("c", cpu="4"),
        make_node("d", cpu="4", unschedulable=True),
        gang(3),
        there("stays", "a", "1", priority=90),
        there("y", "d", "1", priority=2),
        there("x", "c", "3", priority=1),
        strategy="MostAllocated",
    )
    cluster.add(
        member("m1", "1", priority=59),
        member("m2", "2", priority=58),
        member("m3", "4", priority=57, node_selector={"size": "b"}),
    )

    (attempt, *_) = cluster.run()

    assert [pod.name for pod in attempt.group.preemption.victims] == ["x"]
