"""Gangs: all members of a group are bound or none is, and no group starves another."""

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.api.pod_groups import NAME_LABEL, labelled_group_of, min_available
from bayplan.framework import SUCCESS, failure
from bayplan.scheduler import Attempt
from bayplan.testing.builders import make_node, make_pod
from tests.life.gang_scenario import CPU, gang, member, nodes
from tests.rig.scenarios import Scenario, Scripted

COSCHEDULING = {"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}


class Gangs(Scenario):
    """Checks between any two attempts that no group is bound in part."""

    def __init__(self, *objects: Any, **options: Any) -> None:
        options.setdefault("profile", COSCHEDULING)
        super().__init__(*objects, **options)
        self.finished: set[str] = set()
        """Groups with a member that was deleted after it was bound."""

    def run(self) -> list[Attempt]:
        attempts = []
        while (attempt := self.scheduler.schedule_one()) is not None:
            attempts.append(attempt)
            self.check_whole()
            assert len(attempts) < 5_000, "pods are retried without end"
        return attempts

    def advance(self, seconds: float = 0) -> list[Attempt]:
        attempts = super().advance(seconds)
        self.check_whole()
        return attempts

    def bound(self) -> Counter[str]:
        """The number of bound pods per group."""
        pods = [pod for pod in self.cluster.list("Pod") if pod.node_name]
        return Counter(group for pod in pods if (group := labelled_group_of(pod)))

    def check_whole(self) -> None:
        needed = {
            group: min_available(pod) or 0
            for pod in self.cluster.list("Pod")
            if (group := labelled_group_of(pod))
        }
        for group, count in self.bound().items():
            if group not in self.finished:
                assert count >= needed[group], f"{count} of {needed[group]} of {group} are bound"

    def is_at_rest(self) -> bool:
        """Check that no resources are held without a pod."""
        return len(self.scheduler.waiting_pods) == 0 and self.scheduler.is_settled


def interleaved(*gangs: list[Pod]) -> list[Pod]:
    """The pods interleaved, as when many workloads start at the same time."""
    longest = max(map(len, gangs))
    return [pods[turn] for turn in range(longest) for pods in gangs if turn < len(pods)]


# A gang of a hundred among others


def test_a_gang_of_a_hundred_among_competing_gangs() -> None:
    """Room for one big gang, or for two small ones, at a time: each is bound eventually, none in
    part."""
    gangs = Gangs(*nodes(10))  # 100 cores
    sizes = {"big": 100, "half": 50, "other-half": 50, "most": 80, "ten": 10}
    gangs.add(*interleaved(*(gang(name, size) for name, size in sizes.items())))

    gangs.settle()
    done: list[str] = []
    while bound := gangs.bound():
        assert all(count == sizes[name] for name, count in bound.items())
        done += bound
        assert gangs.is_at_rest()
        for pod in list(gangs.cluster.list("Pod")):  # the running ones finish
            if pod.node_name:
                gangs.finished.add(str(labelled_group_of(pod)))
                gangs.cluster.delete(pod)
        gangs.advance(1)
        gangs.settle()

    assert sorted(done) == sorted(sizes), "every gang ran once"
    assert gangs.cluster.count("Pod") == 0


def test_a_gang_of_a_hundred_that_fits_is_bound_among_other_pods() -> None:
    gangs = Gangs(*nodes(10))
    gangs.add(*interleaved(gang("huge", 101), gang("big", 100), gang("vast", 500)))

    attempts = gangs.settle()

    assert gangs.bound() == {"big": 100}
    assert gangs.is_at_rest()
    assert len(attempts) < 2_000, "a few attempts per pod"


def test_the_more_important_gang_comes_first() -> None:
    gangs = Gangs(*nodes(2))
    gangs.add(*interleaved(gang("low", 15), gang("high", 15, priority=10)))

    gangs.settle()

    assert gangs.bound() == {"high": 15}
    assert gangs.is_at_rest()


def test_gangs_that_do_not_fit_are_not_retried_without_end() -> None:
    gangs = Gangs(*nodes(1))
    gangs.add(*interleaved(*(gang(f"g{number}", 11) for number in range(5))))

    attempts = gangs.settle()

    assert gangs.bound() == {}
    assert gangs.is_at_rest()
    assert len(attempts) < 55 * 6

    gangs.add(make_node("n99", cpu="1"))  # room for one gang, at last
    gangs.settle()
    assert list(gangs.bound().values()) == [11]
    assert gangs.is_at_rest()


def test_a_gang_is_bound_when_resources_are_freed() -> None:
    gangs = Gangs(*nodes(1))
    gangs.add(*(make_pod(f"single-{number}", cpu=CPU) for number in range(5)))
    gangs.settle()
    gangs.add(*gang("g", 8))
    gangs.settle()
    assert gangs.bound() == {}

    for number in range(2):
        gangs.cluster.delete(gangs.pod(f"single-{number}"))
        gangs.settle()
        assert gangs.bound() == {}, "there is room for seven"
    gangs.cluster.delete(gangs.pod("single-2"))
    gangs.settle()

    assert gangs.bound() == {"g": 8}


def test_resources_of_a_waiting_gang_are_released_to_single_pods() -> None:
    gangs = Gangs(*nodes(1))
    gangs.add(*gang("g", 11))
    gangs.add(*(make_pod(f"single-{number}", cpu="5") for number in range(2)))

    gangs.settle()

    assert gangs.bound() == {}
    assert [gangs.part_of(f"single-{number}") for number in range(2)] == ["bound", "bound"]


# Members that cannot be placed


@pytest.mark.parametrize("priority", [-1, 0, 1])
def test_infeasible_members_beyond_the_minimum_do_not_stop_a_gang(priority: int) -> None:
    gangs = Gangs(*nodes(1))
    gangs.add(*gang("g", 6, needed=4))
    gangs.add(*(member("g", number, 4, cpu="100", priority=priority) for number in range(6, 8)))

    gangs.settle()

    assert gangs.bound() == {"g": 6}
    assert gangs.is_at_rest()


def test_an_infeasible_member_below_the_minimum_stops_a_gang() -> None:
    gangs = Gangs(*nodes(1))
    gangs.add(*gang("g", 3, needed=4), member("g", 3, 4, cpu="100"))
    gangs.add(*gang("other", 10))

    gangs.settle()

    assert gangs.bound() == {"other": 10}
    assert gangs.is_at_rest()


def test_a_gang_is_gated_until_enough_members_exist() -> None:
    gangs = Gangs(*nodes(1))
    gangs.add(*gang("g", 3)[:2])
    assert gangs.settle() == []
    assert gangs.part_of("g-0") == "gated"

    gangs.add(member("g", 2, 3))
    gangs.settle()

    assert gangs.bound() == {"g": 3}


def test_a_gang_without_its_number_is_a_gang_of_one() -> None:
    gangs = Gangs(*nodes(1))
    gangs.add(make_pod("g-0", labels={NAME_LABEL: "g"}))

    gangs.settle()

    assert gangs.bound() == {"g": 1}


def test_pods_that_come_later_join_a_gang_that_runs() -> None:
    gangs = Gangs(*nodes(2))
    gangs.add(*gang("g", 3), *gang("other", 11))
    gangs.settle()

    gangs.add(member("g", 3, 3))
    gangs.settle()

    assert gangs.bound() == {"g": 4, "other": 11}


# Members that wait


def stuck(timeout_s: int = 60, name: str = "permit_timeout_s") -> Gangs:
    """`g` has two of three members waiting; the third is gated."""
    config: dict[str, Any] = {**COSCHEDULING}
    if timeout_s != 60:
        args = {"name": "Coscheduling", "args": {name: timeout_s}}
        config["pluginConfig"] = [args]
    gangs = Gangs(*nodes(1), profile=config)
    gangs.add(*gang("g", 2, needed=3), member("g", 2, 3, gates=["later"]))
    gangs.run()
    assert [gangs.part_of(f"g-{number}") for number in range(3)] == ["waiting", "waiting", "gated"]
    return gangs


@pytest.mark.parametrize(
    ("timeout_s", "name"),
    [(60, ""), (7, "permit_timeout_s"), (7, "permitWaitingTimeSeconds")],
)
def test_members_that_time_out_release_their_resources(timeout_s: int, name: str) -> None:
    gangs = stuck(timeout_s, name)
    gangs.add(*gang("other", 10))
    gangs.run()
    assert gangs.part_of("other-0") == "unschedulable", "it is not its turn"

    gangs.advance(timeout_s - 0.5)
    assert gangs.part_of("g-0") == "waiting"
    gangs.advance(1)

    assert gangs.part_of("g-0") == "unschedulable"
    text = f"rejected due to timeout after waiting {'1m0s' if timeout_s == 60 else '7s'}"
    notes = {event.note for name in ("g-0", "g-1") for event in gangs.events_of(name)}
    assert any(text in note for note in notes)
    gangs.settle()
    assert gangs.bound() == {"other": 10}
    assert gangs.is_at_rest()


def test_the_last_member_releases_the_others() -> None:
    gangs = stuck()

    gangs.change("g-2", spec=make_pod(cpu=CPU).spec)
    gangs.settle()

    assert gangs.bound() == {"g": 3}


def test_the_last_member_requeues_those_that_timed_out() -> None:
    gangs = stuck()
    gangs.advance(61)
    assert gangs.part_of("g-0") == "unschedulable"

    gangs.change("g-2", spec=make_pod(cpu=CPU).spec)
    gangs.settle()

    assert gangs.bound() == {"g": 3}


@pytest.mark.parametrize("left", [2, 3])
def test_a_member_deleted_while_it_waits(left: int) -> None:
    """The remaining ones continue to wait when they are enough, and are rejected when they are not."""
    gangs = stuck()
    if left == 3:
        gangs.add(member("g", 3, 3, gates=["later"]))

    gangs.cluster.delete(gangs.pod("g-0"))

    assert gangs.part_of("g-1") == ("waiting" if left == 3 else "unschedulable")
    gangs.add(*gang("other", 10))
    gangs.advance(70)
    assert gangs.bound() == {"other": 10}, "no turn lasts longer than a wait"
    gangs.settle()
    assert gangs.is_at_rest()


def test_all_members_deleted_while_they_wait() -> None:
    gangs = stuck()
    gangs.add(*gang("other", 10))
    gangs.run()

    for number in range(3):
        gangs.cluster.delete(gangs.pod(f"g-{number}"))
    gangs.settle()

    assert gangs.bound() == {"other": 10}
    assert gangs.is_at_rest()


def test_an_error_of_another_plugin_fails_the_attempt_and_the_gang_is_retried() -> None:
    gangs = Gangs(*nodes(1), plugins=(Scripted,))
    answers = iter([failure("once")])
    gangs.plugin(Scripted).answers["reserve"] = lambda pod: (
        next(answers, SUCCESS) if pod.name == "g-2" else SUCCESS
    )
    gangs.add(*gang("g", 4))

    gangs.settle()

    assert gangs.bound() == {"g": 4}


# Random gangs


GROUPS = st.lists(
    st.tuples(
        st.integers(1, 12),  # members
        st.integers(0, 4),  # surplus members
        st.sampled_from([0, 0, 10]),  # priority
        st.integers(0, 2),  # infeasible members
    ),
    min_size=1,
    max_size=6,
)
EXAMPLES = int(os.environ.get("BAYPLAN_LIFE_EXAMPLES", "0"))  # see test_life_of_a_pod.py
ANYTHING = settings(
    max_examples=EXAMPLES or 50,
    derandomize=not EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def make_gangs(drawn: list[tuple[int, int, int, int]]) -> list[list[Pod]]:
    """Groups that do not preempt: preemption considers single pods, and would leave gangs in part."""
    groups = []
    for number, (size, spare, priority, misfits) in enumerate(drawn):
        needed = max(size - spare, 1)
        never = {"priority": priority, "spec": {"preemptionPolicy": "Never"}}
        wishes = [{"cpu": "100" if at < misfits else CPU, **never} for at in range(size)]
        groups.append([member(f"g{number}", at, needed, **wish) for at, wish in enumerate(wishes)])
    return groups


@ANYTHING
@given(drawn=GROUPS, cores=st.integers(1, 30), data=st.data())
def test_any_gangs_in_any_order(
    drawn: list[tuple[int, int, int, int]], cores: int, data: st.DataObject
) -> None:
    """No deadlock, nothing in part; at rest, a gang that fits in the free resources has been bound."""
    groups = make_gangs(drawn)
    gangs = Gangs(make_node("n", cpu=str(cores)))
    pods = data.draw(st.permutations([pod for group in groups for pod in group]))
    cut = data.draw(st.integers(0, len(pods)))
    gangs.add(*pods[:cut])
    gangs.run()
    gangs.add(*pods[cut:])
    gangs.settle()
    assert gangs.is_at_rest()
    check_no_gang_is_left_that_fits(gangs, groups, cores)

    while gangs.bound():  # let them finish, and continue with the next
        for pod in list(gangs.cluster.list("Pod")):
            if pod.node_name:
                gangs.finished.add(str(labelled_group_of(pod)))
                gangs.cluster.delete(pod)
        gangs.settle()
        assert gangs.is_at_rest()
    check_no_gang_is_left_that_fits(gangs, groups, cores)


def check_no_gang_is_left_that_fits(gangs: Gangs, groups: list[list[Pod]], cores: int) -> None:
    free = cores - sum(gangs.bound().values())
    for pods in groups:
        group = str(labelled_group_of(pods[0]))
        able = [pod for pod in pods if pod.requests["cpu"] == 1000]
        there = [pod for pod in able if gangs.cluster.get("Pod", "default", pod.name)]
        needed = min_available(pods[0]) or 0
        if group not in gangs.bound() and group not in gangs.finished and len(there) >= needed:
            assert needed > free, f"{group} needs {needed} of {free} free cores, and waits"


@ANYTHING
@given(drawn=GROUPS, cores=st.integers(1, 20), data=st.data())
def test_members_are_deleted_at_any_time(
    drawn: list[tuple[int, int, int, int]], cores: int, data: st.DataObject
) -> None:
    groups = make_gangs(drawn)
    gangs = Gangs(make_node("n", cpu=str(cores)))
    gangs.add(*data.draw(st.permutations([pod for group in groups for pod in group])))
    for _ in range(data.draw(st.integers(1, 8))):
        for _ in range(data.draw(st.integers(0, 10))):
            gangs.scheduler.schedule_one()
            gangs.check_whole()
        left = list(gangs.cluster.list("Pod"))
        if left:
            pod = data.draw(st.sampled_from(left))
            if pod.node_name:
                gangs.finished.add(str(labelled_group_of(pod)))
            gangs.cluster.delete(pod)
        gangs.advance(data.draw(st.sampled_from([0, 1, 59, 61])))

    gangs.settle()

    assert gangs.is_at_rest()
    check_no_gang_is_left_that_fits(gangs, groups, cores)
