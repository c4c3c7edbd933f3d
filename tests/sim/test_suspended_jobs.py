"""Suspended jobs are named, since they have no pods."""

from typing import Any

from bayplan.sim import Simulation
from tests.rig.trees import node_of
from tests.sim.timed_objects import make, make_timeline, template


def make_job(name: str, suspend: bool, **status: Any) -> Any:
    pods = template("1", restartPolicy="Never")
    return make("Job", name, "batch/v1", spec={"suspend": suspend, "template": pods}, status=status)


def remarks_of(*objects: Any) -> list[str]:
    return Simulation([node_of("n"), *objects]).run().remarks


def test_suspended_jobs_are_counted_and_the_first_are_named() -> None:
    conditions = [{"type": "Complete", "status": "True"}]
    others = make_job("runs", False), make_job("done", True, conditions=conditions)

    assert remarks_of(make_job("a", True), *others) == [
        "1 job without pods, since spec.suspend is true: default/a"
    ]
    assert remarks_of(*(make_job(name, True) for name in "abcd")) == [
        "4 jobs without pods, since spec.suspend is true: default/a, default/b, default/c, ..."
    ]


def test_a_job_that_a_timeline_starts_is_not_suspended() -> None:
    metadata = {"name": "a", "namespace": "default"}
    start = {"kind": "Job", "metadata": metadata, "spec": {"suspend": False}}

    assert remarks_of(make_job("a", True), make_timeline({"at": "1h", "change": [start]})) == []
