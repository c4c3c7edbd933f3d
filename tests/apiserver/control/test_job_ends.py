"""The deadline of a Job, and its time to live after its end."""

from typing import Any

from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

JOBS = "/apis/batch/v1/namespaces/default/jobs"
EVENTS = "/api/v1/namespaces/default/events"


def make_job(api: ServerInThread, duration: str = "", **spec: Any) -> None:
    """A job with one pod on node a."""
    api.make("/api/v1/nodes", node_tree("a"))
    pod = pod_tree("", nodeName="a", restartPolicy="Never")
    notes = {"bayplan.dev/duration": duration} if duration else {}
    template = {"metadata": {"annotations": notes}, "spec": pod["spec"]}
    api.make(JOBS, {"metadata": {"name": "batch"}, "spec": {"template": template, **spec}})
    api.settle()


def end_of(api: ServerInThread) -> str:
    """The reason of the condition Failed or Complete."""
    status = api.get(f"{JOBS}/batch").tree["status"]
    ends = [c for c in status.get("conditions") or () if c["type"] in ("Failed", "Complete")]
    return ends[0]["reason"] if ends else ""


def test_a_job_fails_at_its_deadline_and_its_pods_are_deleted(api: ServerInThread) -> None:
    make_job(api, activeDeadlineSeconds=60)
    api.advance(59)
    assert (end_of(api), len(api.get(PODS).names)) == ("", 1)

    api.advance(1)

    assert end_of(api) == "DeadlineExceeded"
    (pod,) = api.get(PODS).tree["items"]
    assert "deletionTimestamp" in pod["metadata"], "it has its grace period"
    found = [event for event in api.get(EVENTS).tree["items"] if event["type"] == "Warning"]
    assert [(e["reason"], e["message"]) for e in found] == [
        ("DeadlineExceeded", "Job was active longer than specified deadline")
    ]
    api.advance(100)
    assert api.get(PODS).names == [], "it creates no other pods"


def test_a_job_that_ends_before_its_deadline_is_complete(api: ServerInThread) -> None:
    make_job(api, "30s", activeDeadlineSeconds=60)

    api.advance(30)
    api.advance(100)

    assert end_of(api) == "CompletionsReached"


def test_a_suspended_job_has_no_deadline_until_it_starts(api: ServerInThread) -> None:
    make_job(api, activeDeadlineSeconds=60, suspend=True)
    api.advance(100)
    assert end_of(api) == ""

    api.patch(f"{JOBS}/batch", {"spec": {"suspend": False}})
    api.settle()
    api.advance(60)

    assert end_of(api) == "DeadlineExceeded"


def test_a_finished_job_is_deleted_with_its_pods_after_its_time_to_live(
    api: ServerInThread,
) -> None:
    make_job(api, "30s", ttlSecondsAfterFinished=100)
    api.advance(30)
    assert end_of(api) == "CompletionsReached"
    api.advance(99)
    assert api.get(JOBS).names == ["batch"]

    api.advance(1)

    assert api.get(JOBS).names == []
    assert api.get(PODS).names == []


def test_a_time_to_live_of_zero_deletes_at_once(api: ServerInThread) -> None:
    make_job(api, "30s", ttlSecondsAfterFinished=0)

    api.advance(30)

    assert api.get(JOBS).names == []


def test_a_job_without_a_time_to_live_stays(api: ServerInThread) -> None:
    make_job(api, "30s")

    api.advance(30)
    api.advance(86_400)

    assert api.get(JOBS).names == ["batch"]
