"""Stages of pods: creating, pulling images, becoming ready, ending and restarting."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.pod_stages import PodStages, StageRule
from bayplan.api.selectors import LabelSelector
from tests.rig.api_server import PODS, ServerInThread, api_server, workload_tree
from tests.rig.trees import node_tree, pod_tree

NODES = "/api/v1/nodes"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
EVENTS = "/api/v1/namespaces/default/events"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def noted(tree: dict[str, Any], **notes: str) -> dict[str, Any]:
    """The object with annotations; names have _ for -."""
    named = {f"bayplan.dev/{name.replace('_', '-')}": value for name, value in notes.items()}
    tree["metadata"]["annotations"] = named
    return tree


def begin(api: ServerInThread, policy: str = "Always", **notes: str) -> None:
    """A pod on a node."""
    api.make(NODES, node_tree("a"))
    api.make(PODS, noted(pod_tree("web", nodeName="a", restartPolicy=policy), **notes))
    api.settle()


def shown(api: ServerInThread, seconds: int = 0) -> tuple[str, str, str]:
    """READY, STATUS and RESTARTS of the pod, so many seconds later."""
    api.advance(seconds)
    row = api.get(f"{PODS}/web", Accept=TABLE).tree["rows"][0]["cells"]
    return row[1], row[2], row[3]


def reasons(api: ServerInThread) -> list[str]:
    """The reasons of all events but those of ordinary starts."""
    found = [event["reason"] for event in api.get(EVENTS).tree["items"]]
    return [reason for reason in found if reason not in ("Pulled", "Created", "Started")]


def test_containers_are_created_for_a_while(api: ServerInThread) -> None:
    begin(api, start_delay="20s")

    assert shown(api) == ("0/1", "ContainerCreating", "0")
    assert shown(api, 19) == ("0/1", "ContainerCreating", "0")
    assert shown(api, 1) == ("1/1", "Running", "0")
    status = api.get(f"{PODS}/web").tree["status"]
    assert (status["phase"], status["startTime"]) == ("Running", "2026-01-01T00:00:00Z")


def test_a_pod_is_unready_for_a_while(api: ServerInThread) -> None:
    begin(api, ready_after="30s")

    assert shown(api) == ("0/1", "Running", "0")
    assert shown(api, 30) == ("1/1", "Running", "0")
    assert reasons(api) == ["Unhealthy"]
    conditions = {c["type"]: c for c in api.get(f"{PODS}/web").tree["status"]["conditions"]}
    assert conditions["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:30Z"
    assert "reason" not in conditions["Ready"]


@pytest.mark.parametrize(
    ("text", "at_last"),
    [
        pytest.param("60s", ("1/1", "Running", "0"), id="for a while"),
        pytest.param("forever", ("0/1", "ImagePullBackOff", "0"), id="for ever"),
    ],
)
def test_an_image_cannot_be_pulled(
    api: ServerInThread, text: str, at_last: tuple[str, str, str]
) -> None:
    begin(api, image_pull_error=text)

    assert shown(api) == ("0/1", "ErrImagePull", "0")
    assert shown(api, 2) == ("0/1", "ImagePullBackOff", "0")
    assert shown(api, 58) == at_last
    assert reasons(api) == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        pytest.param("Never", "0", "Succeeded", id="success"),
        pytest.param("Never", "3", "Failed", id="failure"),
        pytest.param("OnFailure", "0", "Succeeded", id="success that is not repeated"),
        pytest.param("OnFailure", "3", "Running", id="failure that is repeated"),
        pytest.param("Always", "0", "Running", id="success that is repeated"),
    ],
)
def test_the_exit_code_and_the_restart_policy(
    api: ServerInThread, policy: str, code: str, phase: str
) -> None:
    begin(api, policy, duration="10s", exit_code=code)

    api.advance(10)

    status = api.get(f"{PODS}/web").tree["status"]
    container = status["containerStatuses"][0]
    over = container["state"].get("terminated") or container["lastState"]["terminated"]
    assert status["phase"] == phase
    assert over["exitCode"] == int(code)
    assert (over["startedAt"], over["finishedAt"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:10Z",
    )


def test_restarts_back_off(api: ServerInThread) -> None:
    begin(api, duration="1s", exit_code="1")

    assert shown(api, 1) == ("1/1", "Running", "1"), "the first restart is immediate"
    for restarts, backoff_s in enumerate((10, 20, 40, 80, 160, 300, 300), start=1):
        assert shown(api, 1) == ("0/1", "CrashLoopBackOff", str(restarts))
        assert shown(api, backoff_s - 1) == ("0/1", "CrashLoopBackOff", str(restarts))
        assert shown(api, 1) == ("1/1", "Running", str(restarts + 1))


def test_a_long_run_ends_the_back_off(api: ServerInThread) -> None:
    begin(api, duration="10m", exit_code="1")

    for restarts in range(1, 4):
        assert shown(api, 600) == ("1/1", "Running", str(restarts))


def test_every_run_becomes_ready_anew(api: ServerInThread) -> None:
    begin(api, duration="60s", exit_code="1", ready_after="20s")

    assert shown(api, 20) == ("1/1", "Running", "0")
    assert shown(api, 40) == ("0/1", "Running", "1")
    assert shown(api, 20) == ("1/1", "Running", "1")


def test_a_job_fails_after_its_limit(api: ServerInThread) -> None:
    api.make(NODES, node_tree("a"))
    pod = pod_tree("x", nodeName="a", restartPolicy="Never")
    template = noted({"metadata": {}, "spec": pod["spec"]}, duration="5s", exit_code="7")
    spec = {"backoffLimit": 2, "template": template}
    api.make(JOBS, {"metadata": {"name": "batch"}, "spec": spec})
    api.settle()

    api.advance(5)
    waiting = api.get(f"{JOBS}/batch").tree["status"]
    for _ in range(9):
        api.advance(5)

    assert waiting["failed"] == 1
    assert "active" not in waiting, "the next pod follows after 10 s, the one after it after 20 s"
    status = api.get(f"{JOBS}/batch").tree["status"]
    assert status["failed"] == 3
    conditions = {c["type"]: c["reason"] for c in status["conditions"]}
    assert conditions["Failed"] == "BackoffLimitExceeded"


def test_a_rollout_waits_until_pods_are_ready(api: ServerInThread) -> None:
    api.make(NODES, node_tree("a"))
    deployment = workload_tree("Deployment", "web", 2)
    deployment["spec"]["template"]["spec"]["nodeName"] = "a"
    deployment["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    api.make(DEPLOYMENTS, deployment)
    api.settle()
    template = {"metadata": {"annotations": {"bayplan.dev/ready-after": "30s"}}}

    api.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": template}})
    updated = []
    for _ in range(4):
        api.settle()
        updated.append(api.get(f"{DEPLOYMENTS}/web").tree["status"]["updatedReplicas"])
        api.advance(20)

    assert updated == [1, 1, 2, 2]


def test_documents_select_pods_and_annotations_override_them() -> None:
    rules = [
        StageRule(PodStages(ready_after_s=30), LabelSelector.of({"app": "slow"}), ("default",)),
        StageRule(PodStages(start_delay_s=30), LabelSelector.of({"app": "slow"})),
    ]
    with api_server(stages=rules) as api:
        api.make(NODES, node_tree("a"))
        slow, quick = pod_tree("web", nodeName="a"), pod_tree("other", nodeName="a")
        slow["metadata"]["labels"] = {"app": "slow"}
        api.make(PODS, noted(slow, ready_after="10s"), quick)
        api.settle()

        assert shown(api) == ("0/1", "Running", "0"), "the first document counts"
        assert shown(api, 10) == ("1/1", "Running", "0"), "and the annotation before it"
        assert api.get(f"{PODS}/other").tree["status"]["phase"] == "Running"


def test_a_wrong_annotation_is_an_event(api: ServerInThread) -> None:
    begin(api, exit_code="often", start_delay="5s")

    (event,) = api.get(EVENTS).tree["items"]
    assert (event["type"], event["reason"]) == ("Warning", "InvalidAnnotation")
    assert event["message"] == (
        'metadata.annotations[bayplan.dev/exit-code]: expected a number from 0 to 255; got "often"'
    )
    assert shown(api)[1] == "ContainerCreating", "the others count"


def test_stages_go_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    with api_server(tmp_path) as api:
        begin(api, duration="1s", exit_code="1")
        api.advance(1)
        assert shown(api, 1) == ("0/1", "CrashLoopBackOff", "1")

    with api_server(tmp_path) as api:
        assert shown(api, 12) == ("1/1", "Running", "2")
        assert shown(api, 1) == ("0/1", "CrashLoopBackOff", "2")
