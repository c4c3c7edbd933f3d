"""Jobs whose finished pods were deleted: their status still counts them."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.api.workloads import Job
from bayplan.cluster.memory.jobs import JobPlan, plan_job
from bayplan.cluster.memory.pod_index import PodIndex

COMPLETE = [{"type": "Complete", "status": "True"}]


def plan(status: dict[str, Any], **spec: Any) -> JobPlan:
    spec["template"] = {"spec": {"containers": [{"name": "c", "image": "report:1"}]}}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "report", "namespace": "shop", "uid": "1"},
        "spec": spec,
        "status": status,
    }
    job = decode_object(manifest)
    assert isinstance(job, Job)
    pods = PodIndex([])
    assert plan_job(job, pods.owned_by(job)) == plan_job(job, pods.owned_by(job)), "counted once"
    return plan_job(job, pods.owned_by(job))


@pytest.mark.parametrize(
    ("status", "spec", "expected"),
    [
        pytest.param({"succeeded": 3}, {"completions": 4, "parallelism": 2}, JobPlan(1), id="rest"),
        pytest.param({"succeeded": 4}, {"completions": 4}, JobPlan(), id="all"),
        pytest.param({"conditions": COMPLETE}, {"completions": 2}, JobPlan(), id="complete"),
        pytest.param({"failed": 7}, {}, JobPlan(), id="failed too often"),
        pytest.param(
            {"succeeded": 3, "completedIndexes": "0,2-3"},
            {"completions": 6, "parallelism": 6, "completionMode": "Indexed"},
            JobPlan(missing_indexes=(1, 4, 5)),
            id="indexes",
        ),
        pytest.param(
            {"completedIndexes": "x,1-,0-99999999999"},
            {"completions": 2, "parallelism": 2, "completionMode": "Indexed"},
            JobPlan(),
            id="indexes that are none, and too many",
        ),
    ],
)
def test_the_status_counts_pods_that_are_gone(
    status: dict[str, Any], spec: dict[str, Any], expected: JobPlan
) -> None:
    assert plan(status, **spec) == expected
