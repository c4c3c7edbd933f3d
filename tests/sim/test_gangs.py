"""Gangs: bound together or not at all, in the presence of other pods, and without endless retries."""

from collections import Counter
from typing import Any

from bayplan.api.wire.decode import decode_object
from bayplan.config.load import parse_config
from bayplan.sim import Simulation, TraceEntry

GROUP = "pod-group.scheduling.sigs.k8s.io"
WITH_COSCHEDULING = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}],
}


def make_nodes(count: int, cpu: int) -> list[Any]:
    return [
        decode_object(
            {
                "kind": "Node",
                "metadata": {"name": f"n{i}"},
                "status": {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}},
            }
        )
        for i in range(count)
    ]


def make_member(gang: str, number: int, size: int, duration: str = "5m") -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata = {
        "name": f"{gang}-{number}",
        "labels": {f"{GROUP}/name": gang, f"{GROUP}/min-available": str(size)},
        "annotations": {"bayplan.dev/duration": duration},
    }
    return decode_object({"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})


def run(objects: list[Any]) -> tuple[Any, Counter[tuple[str, float]], Counter[str]]:
    """The report, the number of bound pods per gang and time, and the number of events per type."""
    entries: list[TraceEntry] = []
    config = parse_config(WITH_COSCHEDULING)
    report = Simulation(objects, config, trace=entries.append).run()
    bound = Counter((e.name.partition("-")[0], e.time_s) for e in entries if e.what == "bound")
    return report, bound, Counter(e.what for e in entries)


def test_gangs_of_a_hundred_take_turns() -> None:
    gangs = ("red", "green", "blue", "gold")
    mixed = [make_member(gang, i, 100) for i in range(100) for gang in gangs]

    report, bound, counts = run([*make_nodes(10, 25), *mixed])

    assert report.is_complete
    assert Counter(time for _, time in bound) == {0: 2, 300: 2}
    assert set(bound.values()) == {100}
    assert counts["popped"] < 10 * len(mixed)


def test_gangs_that_never_fit_hold_no_nodes_and_do_not_retry_endlessly() -> None:
    mixed = [make_member(gang, i, 60) for i in range(60) for gang in ("red", "blue")]
    plain = decode_object(
        {
            "kind": "Pod",
            "metadata": {"name": "plain"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "50"}}}]},
        }
    )

    report, bound, counts = run([*make_nodes(1, 50), *mixed, plain])

    assert bound == {("plain", 0): 1}
    assert len(report.pending) == 120
    assert report.time_s < 1
    assert counts["popped"] < 10 * len(mixed)


def test_an_incomplete_gang_waits() -> None:
    report, bound, _ = run([*make_nodes(1, 50), *(make_member("red", i, 4) for i in range(3))])

    assert bound == {}
    assert {r.attempt.message for r in report.pending} == {"group red needs 4 pods; 3 are there"}
