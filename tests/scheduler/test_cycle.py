"""The scheduling cycle from end to end, in a cluster in memory."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.config.load import parse_config
from bayplan.errors import ConflictError
from bayplan.framework import CycleState, PermitPlugin, Plugin, ScorePlugin, Status, wait
from bayplan.scheduler import (
    Attempt,
    FirstByName,
    Outcome,
    Scheduler,
    build_scheduler,
    gated_attempts,
)
from bayplan.testing.builders import make_node, make_pod
from tests.rig.objects import stored
from tests.rig.scenarios import attempts_of

ZONES = {"disk": "ssd"}


class Bench:
    """A scheduler on a cluster in memory; ties go to the smallest name."""

    def __init__(
        self,
        *nodes: Any,
        plugins: tuple[type[Plugin], ...] = (),
        profiles: list[dict[str, Any]] | None = None,
        explain: bool = False,
    ) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        for node in nodes:
            self.cluster.add(node)
        tree = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": profiles or [{}],
        }
        self.ended: list[Attempt] = []
        self.scheduler: Scheduler = build_scheduler(
            parse_config(tree, "test"),
            self.cluster,
            clock=self.clock,
            ties=FirstByName(),
            plugins=plugins,
            explain=explain,
            ended=self.ended.append,
        )
        self.cluster.watch(self.scheduler)

    def add(self, *objects: Any) -> None:
        for obj in objects:
            self.cluster.add(obj)

    def run(self) -> list[Attempt]:
        """Every attempt until no pod is ready."""
        return attempts_of(self.scheduler)

    def place(self, pod: Pod) -> Attempt:
        self.add(pod)
        (attempt,) = self.run()
        return attempt

    def pod(self, name: str, namespace: str = "default") -> Pod:
        return stored(self.cluster, Pod, name, namespace)

    def requested(self) -> dict[str, dict[str, int]]:
        """Amounts in use by the table."""
        table = self.scheduler.cache.table
        return {name: table.requested.at(row) for name, row in table.row_of.items()}


def test_a_pod_is_bound_to_the_best_node() -> None:
    bench = Bench(make_node("a"), make_node("b"))
    bench.add(make_pod("there", node_name="a", cpu="2"))

    attempt = bench.place(make_pod("p", cpu="1"))

    assert (attempt.outcome, attempt.node_name) == (Outcome.BOUND, "b")
    assert attempt.score is not None
    assert bench.pod("p").node_name == "b"
    assert bench.requested() == {"a": {"cpu": 2000}, "b": {"cpu": 1000}}
    assert not bench.scheduler.cache.is_assumed(bench.pod("p")), "the watch has confirmed it"
    (event,) = bench.cluster.events
    assert (event.reason, event.note) == ("Scheduled", "Successfully assigned default/p to b")


def test_pods_are_taken_by_priority_then_in_order_of_arrival() -> None:
    bench = Bench(make_node("a"))
    bench.add(make_pod("low"), make_pod("high", priority=9), make_pod("low-too"))
    bench.clock.advance(1)
    bench.add(make_pod("late", priority=9))

    assert [attempt.pod.name for attempt in bench.run()] == ["high", "late", "low", "low-too"]


def test_each_pod_sees_those_before_it() -> None:
    bench = Bench(make_node("a", cpu="1"), make_node("b", cpu="1"))
    bench.add(*(make_pod(f"p{i}", cpu="1") for i in range(3)))

    attempts = bench.run()

    assert [attempt.node_name for attempt in attempts] == ["a", "b", ""]


# Messages


def test_no_nodes() -> None:
    attempt = Bench().place(make_pod("p"))

    assert attempt.outcome is Outcome.UNSCHEDULABLE
    assert attempt.message == "no nodes available to schedule pods"


CORDONED = "1 node(s) were unschedulable"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


@pytest.mark.parametrize(
    ("wishes", "refused", "preemption"),
    [
        pytest.param(
            {"cpu": "3"},
            f"{CORDONED}, 2 Insufficient cpu",
            f"3 {NOT_HELPFUL}",
            id="more than any node has",
        ),
        pytest.param(
            {"cpu": "2", "memory": "20Gi"},
            f"{CORDONED}, 2 Insufficient cpu, 2 Insufficient memory",
            f"3 {NOT_HELPFUL}",
            id="two reasons on one node",
        ),
        pytest.param(
            {"cpu": "2"},
            f"{CORDONED}, 2 Insufficient cpu",
            f"1 {NOT_HELPFUL}, 2 No preemption victims found for incoming pod",
            id="no pod to preempt",
        ),
        pytest.param(
            {"node_selector": {"disk": "ssd"}},
            f"{CORDONED}, 2 node(s) didn't match Pod's node affinity/selector",
            f"3 {NOT_HELPFUL}",
            id="no such node",
        ),
    ],
)
def test_messages_of_pods_that_fit_nowhere(
    wishes: dict[str, Any], refused: str, preemption: str
) -> None:
    fit_error = f"0/3 nodes are available: {refused}."
    post_filter = f"preemption: 0/3 nodes are available: {preemption}."
    message = f"{fit_error} no new claims to deallocate, {post_filter}"
    nodes = [make_node(name, cpu="2") for name in "ab"]
    bench = Bench(*nodes, make_node("c", cpu="2", unschedulable=True))
    bench.add(*(make_pod(f"on-{name}", node_name=name, cpu="1") for name in "ab"))

    attempt = bench.place(make_pod("p", **wishes))

    assert (attempt.message, attempt.fit_error) == (message, fit_error)
    (event,) = bench.cluster.events
    assert (event.type, event.reason, event.note) == ("Warning", "FailedScheduling", message)
    (condition,) = bench.pod("p").status.conditions or ()
    assert (condition.type, condition.status) == ("PodScheduled", "False")
    assert (condition.reason, condition.message) == ("Unschedulable", message)


def test_who_refused_decides_what_brings_the_pod_back() -> None:
    bench = Bench(make_node("a", cpu="1"))

    attempt = bench.place(make_pod("p", cpu="2"))
    assert attempt.unschedulable_plugins == {"NodeResourcesFit"}
    assert bench.run() == []
    bench.cluster.update(make_node("a", cpu="1", labels={"k": "v"}))
    assert bench.run() == [], "a label is nothing it waits for"
    bench.cluster.update(make_node("a", cpu="4"))

    assert [again.node_name for again in bench.run()] == ["a"]


# Choosing


class Counting(ScorePlugin):
    """Counts its calls."""

    name = "Counting"
    asked = 0

    def score_rows(self, state: CycleState, pod: Pod, table: Any, rows: Any) -> Any:
        Counting.asked += 1
        return table.numbers(rows) * 0


def test_a_single_feasible_node_is_not_scored() -> None:
    bench = Bench(make_node("a"), make_node("b", unschedulable=True), plugins=(Counting,))
    Counting.asked = 0

    attempt = bench.place(make_pod("p"))

    assert (attempt.node_name, attempt.score, attempt.feasible_nodes) == ("a", None, 1)
    assert Counting.asked == 0


def test_two_feasible_nodes_are_scored() -> None:
    bench = Bench(make_node("a"), make_node("b"), plugins=(Counting,))
    Counting.asked = 0

    bench.place(make_pod("p"))

    assert Counting.asked == 1


def test_the_nominated_node_is_taken_first_and_unscored() -> None:
    bench = Bench(make_node("a"), make_node("b"), make_node("c"), plugins=(Counting,))
    bench.add(make_pod("there", node_name="b", cpu="3"))
    Counting.asked = 0

    attempt = bench.place(make_pod("p", cpu="1", nominated_node_name="b"))

    assert (attempt.node_name, attempt.from_nomination) == ("b", True)
    assert Counting.asked == 0


@pytest.mark.parametrize("nominated", ["b", "gone"])
def test_a_nominated_node_that_does_not_fit_is_passed_over(nominated: str) -> None:
    bench = Bench(make_node("a"), make_node("b", cpu="1"))

    attempt = bench.place(make_pod("p", cpu="2", nominated_node_name=nominated))

    assert (attempt.node_name, attempt.from_nomination) == ("a", False)


def test_explain_changes_no_decision() -> None:
    names = []
    for explain in (False, True):
        bench = Bench(
            make_node("a"), make_node("b", labels=ZONES), make_node("c", cpu="8"), explain=explain
        )
        bench.add(*(make_pod(f"p{i}", cpu="1") for i in range(6)))
        attempts = bench.run()
        names.append([attempt.node_name for attempt in attempts])
        assert all((attempt.explanation is not None) == explain for attempt in attempts)

    assert names[0] == names[1]


# Preemption


def test_preemption_nominates_then_the_pod_goes_there() -> None:
    bench = Bench(make_node("a", cpu="2"), make_node("b", cpu="2"))
    bench.add(
        make_pod("cheap", node_name="b", cpu="2", priority=1),
        make_pod("dear", node_name="a", cpu="2", priority=5),
        make_pod("boss", cpu="2", priority=10),
    )

    first, second = bench.run()

    assert (first.outcome, first.nominated_node_name) == (Outcome.UNSCHEDULABLE, "b")
    assert [victim.name for victim, _ in bench.cluster.evictions] == ["cheap"]
    assert (second.node_name, second.from_nomination) == ("b", True)
    assert bench.scheduler.queue.nominator.node_names() == []
    assert bench.requested() == {"a": {"cpu": 2000}, "b": {"cpu": 2000}}


def test_room_that_was_made_is_kept_for_the_nominated_pod() -> None:
    bench = Bench(make_node("a", cpu="2"))
    bench.add(make_pod("promised", cpu="2", priority=5, gates=["later"], nominated_node_name="a"))
    bench.scheduler.queue.nominator.add(bench.pod("promised"))

    attempt = bench.place(make_pod("lower", cpu="1", priority=1))
    assert attempt.outcome is Outcome.UNSCHEDULABLE
    higher = bench.place(make_pod("higher", cpu="1", priority=9))

    assert higher.node_name == "a"


# Profiles

TWO: list[dict[str, Any]] = [
    {"schedulerName": "default-scheduler"},
    {
        "schedulerName": "packer",
        "pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
        ],
        "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
    },
]


def test_each_pod_is_scheduled_by_its_profile() -> None:
    bench = Bench(make_node("a"), make_node("b"), profiles=TWO)
    bench.add(make_pod("there", node_name="a", cpu="1", memory="4Gi"))

    spread = bench.place(make_pod("p", cpu="1", memory="4Gi"))
    bench.cluster.delete(bench.pod("p"))
    packed = bench.place(make_pod("q", cpu="1", memory="4Gi", spec={"schedulerName": "packer"}))

    assert (spread.node_name, packed.node_name) == ("b", "a")


def test_a_pod_of_another_scheduler_is_ignored_until_it_runs() -> None:
    bench = Bench(make_node("a"))
    bench.add(make_pod("other", cpu="1", spec={"schedulerName": "another"}))

    assert bench.run() == []
    bench.cluster.bind(bench.pod("other"), "a")

    assert bench.requested() == {"a": {"cpu": 1000}}


# Pods that get no node


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    bench = Bench(make_node("a"))
    bench.add(make_pod("p", gates=["example.com/wait"]))

    assert bench.run() == []
    (held,) = gated_attempts(bench.scheduler)
    assert held.message == "waiting for scheduling gates: [example.com/wait]"
    bench.cluster.update(make_pod("p"))

    assert [attempt.node_name for attempt in bench.run()] == ["a"]
    assert gated_attempts(bench.scheduler) == []


def test_a_pod_that_is_being_deleted_is_skipped() -> None:
    bench = Bench(make_node("a"))
    bench.add(make_pod("p", terminating=True))

    assert bench.run() == []
    assert [event.note for event in bench.cluster.events] == [
        "skip schedule deleting pod: default/p"
    ]


def test_a_pod_deleted_while_it_waits_is_not_tried() -> None:
    bench = Bench(make_node("a"))
    bench.add(make_pod("p"), make_pod("q"))

    bench.cluster.delete(bench.pod("p"))

    assert [attempt.pod.name for attempt in bench.run()] == ["q"]


def test_a_finished_pod_takes_nothing() -> None:
    bench = Bench(make_node("a"))
    bench.add(make_pod("p", node_name="a", cpu="1"))

    bench.cluster.update(make_pod("p", node_name="a", cpu="1", status={"phase": "Succeeded"}))

    assert bench.requested() == {"a": {}}


class Refusing(MemoryCluster):
    """A cluster that refuses to bind."""

    def bind(self, pod: Pod, node_name: str) -> None:
        raise ConflictError("another client was faster")


def test_a_bind_that_fails_leaves_no_trace() -> None:
    bench = Bench(make_node("a"))
    bench.cluster.__class__ = Refusing
    port = make_pod(host_ports=[80]).spec.host_ports

    attempt = bench.place(make_pod("p", cpu="1", host_ports=[80], labels={"a": "b"}))

    assert attempt.outcome is Outcome.ERROR
    assert attempt.message == 'running Bind plugin "DefaultBinder": another client was faster'
    assert bench.ended == [attempt]
    table = bench.scheduler.cache.table
    assert bench.requested() == {"a": {}}
    assert (table.pod_count.tolist(), table.pods) == ([0], [{}])
    assert not table.ports.conflicts(port, slice(None)).any()
    assert not bench.scheduler.cache.has_pod(bench.pod("p"))
    (condition,) = bench.pod("p").status.conditions or ()
    assert condition.reason == "SchedulerError"


def test_after_an_error_the_pod_is_tried_again_when_its_backoff_is_over() -> None:
    bench = Bench(make_node("a"))
    bench.cluster.__class__ = Refusing
    bench.place(make_pod("p"))
    bench.cluster.__class__ = MemoryCluster

    assert bench.run() == []
    bench.clock.advance(2)
    bench.scheduler.run_timers()

    assert [attempt.node_name for attempt in bench.run()] == ["a"]


# Permit


class Hold(PermitPlugin):
    """Lets pods wait for ten seconds."""

    name = "Hold"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return wait(), 10.0


def test_a_waiting_pod_holds_its_place_and_is_bound_when_allowed() -> None:
    bench = Bench(make_node("a", cpu="1"), plugins=(Hold,))
    attempt = bench.place(make_pod("p", cpu="1"))
    assert attempt.outcome is Outcome.WAITING
    assert bench.requested() == {"a": {"cpu": 1000}}

    (waiting,) = bench.scheduler.waiting_pods
    waiting.allow("Hold")

    assert bench.pod("p").node_name == "a"
    assert (attempt.outcome, bench.ended) == (Outcome.BOUND, [attempt])


def test_a_waiting_pod_that_is_not_allowed_is_rejected_in_time() -> None:
    bench = Bench(make_node("a", cpu="1"), plugins=(Hold,))
    attempt = bench.place(make_pod("p", cpu="1"))

    bench.clock.advance(10)
    bench.scheduler.run_timers()

    text = "rejected due to timeout after waiting 10s at plugin Hold"
    assert attempt.outcome is Outcome.UNSCHEDULABLE
    assert attempt.message == f"0/1 nodes are available: 1 {text}."
    assert attempt.unschedulable_plugins == {"Hold"}
    assert bench.requested() == {"a": {}}


def test_a_waiting_pod_that_is_deleted_frees_its_place() -> None:
    bench = Bench(make_node("a", cpu="1"), plugins=(Hold,))
    bench.place(make_pod("p", cpu="1"))

    bench.cluster.delete(bench.pod("p"))

    assert bench.requested() == {"a": {}}
    assert len(bench.scheduler.waiting_pods) == 0
