"""The condition Progressing of a Deployment, and its deadline."""

from typing import Any

import pytest

from tests.rig.api_server import ServerInThread, workload_tree
from tests.rig.trees import node_tree

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
FOREVER = {"bayplan.dev/image-pull-error": "forever"}


def make(api: ServerInThread, notes: dict[str, str] | None = None, **spec: Any) -> None:
    """A deployment of two pods on node a."""
    api.make("/api/v1/nodes", node_tree("a"))
    tree = workload_tree("Deployment", "web", 2, **spec)
    tree["spec"]["template"]["spec"]["nodeName"] = "a"
    tree["spec"]["template"]["metadata"]["annotations"] = notes or {}
    api.make(DEPLOYMENTS, tree)
    api.settle()


def change(api: ServerInThread, **spec: Any) -> None:
    answer = api.patch(f"{DEPLOYMENTS}/web", {"spec": spec})
    assert answer.status == 200
    api.settle()


def noted(notes: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"annotations": notes}}


def progress(api: ServerInThread) -> tuple[str, str]:
    """Status and reason of the condition."""
    conditions = api.get(f"{DEPLOYMENTS}/web").tree["status"]["conditions"]
    found = [c for c in conditions if c["type"] == "Progressing"]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


def test_a_rollout_that_is_complete(api: ServerInThread) -> None:
    make(api)

    assert progress(api) == ("True", "NewReplicaSetAvailable")
    change(api, replicas=5)
    api.advance(1000)
    assert progress(api) == ("True", "NewReplicaSetAvailable"), "scaling is no rollout"


def test_a_rollout_without_progress_fails_after_its_deadline(api: ServerInThread) -> None:
    make(api, progressDeadlineSeconds=60)
    api.advance(1000)
    change(api, template=noted(FOREVER))
    assert progress(api)[0] == "True"
    api.advance(59)
    assert progress(api)[0] == "True"

    api.advance(3)

    assert progress(api) == ("False", "ProgressDeadlineExceeded")
    newest = api.get(REPLICA_SETS).tree["items"]
    conditions = api.get(f"{DEPLOYMENTS}/web").tree["status"]["conditions"]
    (message,) = [c["message"] for c in conditions if c["type"] == "Progressing"]
    names = [tree["metadata"]["name"] for tree in newest]
    assert message in [f'ReplicaSet "{name}" has timed out progressing.' for name in names]


def test_a_first_rollout_fails_too_and_a_new_template_mends_it(api: ServerInThread) -> None:
    make(api, FOREVER, progressDeadlineSeconds=60)
    api.advance(62)
    assert progress(api) == ("False", "ProgressDeadlineExceeded")

    change(api, template=noted({"bayplan.dev/image-pull-error": "0s"}))

    assert progress(api) == ("True", "NewReplicaSetAvailable")


def test_progress_moves_the_deadline(api: ServerInThread) -> None:
    make(api, progressDeadlineSeconds=60)
    change(api, template=noted({"bayplan.dev/ready-after": "50s"}))

    api.advance(50)
    assert progress(api) == ("True", "ReplicaSetUpdated")
    api.advance(55)

    assert progress(api) == ("True", "NewReplicaSetAvailable")


def test_a_paused_deployment_has_no_deadline(api: ServerInThread) -> None:
    make(api, progressDeadlineSeconds=60)
    change(api, paused=True)
    assert progress(api) == ("Unknown", "DeploymentPaused")
    change(api, template=noted(FOREVER))
    api.advance(1000)
    assert progress(api) == ("Unknown", "DeploymentPaused")

    change(api, paused=False)
    assert progress(api)[1] in ("DeploymentResumed", "ReplicaSetUpdated")
    api.advance(62)

    assert progress(api) == ("False", "ProgressDeadlineExceeded")


@pytest.mark.parametrize(
    "deadline", [pytest.param(2147483647, id="the greatest number stands for none")]
)
def test_without_a_deadline_there_is_no_condition(api: ServerInThread, deadline: int) -> None:
    make(api, progressDeadlineSeconds=deadline)

    assert progress(api) == ("", "")
