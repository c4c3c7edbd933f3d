"""A pod in a cluster with a clock: bound, preempted, deleted with grace, finished."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory.kubelets import Kubelets
from bayplan.cluster.memory.object_store import MemoryCluster


class Bench:
    """A cluster with a node, a clock and timers."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.cluster = MemoryCluster(self.clock, self.timers)
        self.cluster.watch(Kubelets(self.cluster, self.clock, self.timers))
        node: Any = decode_object({"kind": "Node", "metadata": {"name": "n"}})
        self.cluster.add(node)

    def add(self, name: str, *, annotations: Any = None, status: Any = None, **spec: Any) -> Pod:
        tree = {
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": spec,
            "status": status or {},
        }
        pod = decode_object(tree)
        assert isinstance(pod, Pod)
        return self.cluster.add(pod)

    def get(self, name: str) -> Any:
        return self.cluster.get("Pod", "default", name)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.fire_due()


def test_a_bound_pod_runs_is_scheduled_and_no_longer_nominated() -> None:
    bench = Bench()
    bench.clock.advance(90.5)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = bench.add("a", status={"nominatedNodeName": "n", "conditions": [condition]})

    bench.cluster.bind(pod, "n")

    status = bench.get("a").status
    assert (status.phase, status.start_time) == ("Running", "2000-01-01T00:01:30Z")
    assert status.nominated_node_name == ""
    assert [(c.type, c.status, c.reason) for c in status.conditions] == [
        ("PodScheduled", "True", "")
    ]


def test_pods_bound_in_the_same_second_share_their_status() -> None:
    bench = Bench()
    for name in ("a", "b"):
        bench.cluster.bind(bench.add(name), "n")

    assert bench.get("a").status is bench.get("b").status


def test_without_a_clock_a_pod_has_no_start_time() -> None:
    cluster = MemoryCluster()
    node: Any = decode_object({"kind": "Node", "metadata": {"name": "n"}})
    cluster.add(node)
    pod = cluster.add(Pod("a"))

    cluster.bind(pod, "n")

    bound = cluster.get("Pod", "default", "a")
    assert bound is not None
    assert bound.status.start_time is None


@pytest.mark.parametrize(
    ("spec", "grace_s"),
    [
        pytest.param({}, 30, id="half a minute unless it says otherwise"),
        pytest.param({"terminationGracePeriodSeconds": 5}, 5, id="as it says"),
    ],
)
def test_an_evicted_pod_is_deleted_after_its_grace_period(
    spec: dict[str, Any], grace_s: int
) -> None:
    bench = Bench()
    victim, urgent = bench.add("victim", nodeName="n", **spec), bench.add("urgent")

    bench.cluster.evict(victim, urgent)
    bench.cluster.evict(victim, urgent)
    bench.pass_time(grace_s - 1)

    assert bench.get("victim").deletion_timestamp == f"2000-01-01T00:00:{grace_s:02d}Z"
    assert len(bench.cluster.evictions) == 1
    bench.pass_time(1)
    assert bench.get("victim") is None
    assert [event.reason for event in bench.cluster.events] == ["Preempted"]


def test_a_pod_without_grace_period_is_deleted_at_once() -> None:
    bench = Bench()
    victim = bench.add("victim", nodeName="n", terminationGracePeriodSeconds=0)

    bench.cluster.evict(victim, bench.add("urgent"))

    assert bench.get("victim") is None


def test_a_deleted_pod_has_its_grace_period_unless_it_is_pending_or_finished() -> None:
    bench = Bench()
    runs, waits = bench.add("runs", nodeName="n"), bench.add("waits")
    done = bench.add("done", nodeName="n", status={"phase": "Succeeded"})

    for pod in (runs, waits, done):
        bench.cluster.delete(pod, 30)

    assert bench.get("runs").is_terminating
    assert bench.get("waits") is None
    assert bench.get("done") is None


def test_a_pod_of_the_same_name_outlives_the_grace_period_of_the_old_one() -> None:
    bench = Bench()
    bench.cluster.delete(bench.add("a", nodeName="n"), 30)
    bench.cluster.delete(bench.get("a"))  # at once, by force
    bench.add("a", nodeName="n")

    bench.pass_time(60)

    assert bench.get("a") is not None


def test_a_pod_finishes_its_duration_after_it_was_bound() -> None:
    bench = Bench()
    pod = bench.add("a", annotations={"bayplan.dev/duration": "1m30s"})
    bench.pass_time(600)
    bench.cluster.bind(pod, "n")

    bench.pass_time(89)
    assert bench.get("a").status.phase == "Running"
    bench.pass_time(1)
    assert bench.get("a").status.phase == "Succeeded"


def test_a_pod_that_ends_while_it_is_terminating_is_gone() -> None:
    bench = Bench()
    bench.cluster.bind(bench.add("a", annotations={"bayplan.dev/duration": "10s"}), "n")
    bench.cluster.delete(bench.get("a"), 30)

    bench.pass_time(10)

    assert bench.get("a") is None
