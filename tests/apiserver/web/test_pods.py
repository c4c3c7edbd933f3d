"""Pods over HTTP: binding, eviction and deletion."""

from typing import Any

import pytest

from tests.rig.api_server import PODS, ServerInThread, bind_tree
from tests.rig.trees import node_tree, pod_tree

REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def bound(api: ServerInThread, name: str = "web", **spec: Any) -> dict[str, Any]:
    """A pod that runs on node a."""
    if api.get("/api/v1/nodes/a").status == 404:
        api.make("/api/v1/nodes", node_tree("a"))
    api.make(PODS, pod_tree(name, **spec))
    assert api.post(f"{PODS}/{name}/binding", bind_tree(name, "a")).status == 201
    api.settle()
    pod: dict[str, Any] = api.get(f"{PODS}/{name}").tree
    return pod


def test_binding_sets_node_and_condition(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("web"))
    binding = bind_tree("web", "a")
    binding["metadata"] |= {"labels": {"zone": "z"}, "annotations": {"note": "n"}}

    answer = api.post(f"{PODS}/web/binding", binding)
    pod = api.get(f"{PODS}/web").tree

    assert (answer.status, answer.tree["status"]) == (201, "Success")
    assert pod["spec"]["nodeName"] == "a"
    assert pod["metadata"]["labels"] == {"zone": "z"}
    assert pod["metadata"]["annotations"] == {"note": "n"}
    condition = pod["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


def test_binding_clears_the_nomination(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("web"))
    api.patch(f"{PODS}/web/status", {"status": {"nominatedNodeName": "b"}})

    api.post(f"{PODS}/web/binding", bind_tree("web", "a"))

    assert "nominatedNodeName" not in api.get(f"{PODS}/web").tree["status"]


@pytest.mark.parametrize(
    ("spec", "binding", "code", "words"),
    [
        pytest.param({"nodeName": "b"}, bind_tree("web", "a"), 409, "already assigned", id="bound"),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]},
            bind_tree("web", "a"),
            409,
            "schedulingGates",
            id="gated",
        ),
        pytest.param({}, bind_tree("web", "a", uid="other"), 409, "UID", id="another pod"),
        pytest.param(
            {}, bind_tree("web", "a", resourceVersion="1"), 409, "ResourceVersion", id="stale"
        ),
        pytest.param({}, bind_tree("other", "a"), 400, "name in URL", id="another name"),
        pytest.param({}, bind_tree("web", ""), 422, "target.name", id="no node"),
        pytest.param(
            {},
            {"metadata": {"name": "web"}, "target": {"kind": "Disk", "name": "a"}},
            422,
            "target.kind",
            id="no node at all",
        ),
    ],
)
def test_binding_rejects(
    api: ServerInThread, spec: Any, binding: Any, code: int, words: str
) -> None:
    api.make(PODS, pod_tree("web", **spec))

    answer = api.post(f"{PODS}/web/binding", binding)

    assert answer.status == code
    assert words in answer.tree["message"]


def test_binding_a_terminating_or_missing_pod(api: ServerInThread) -> None:
    tree = pod_tree("web")
    tree["metadata"]["finalizers"] = ["example.com/hold"]
    api.make(PODS, tree)
    api.delete(f"{PODS}/web")

    assert (
        "is being deleted" in api.post(f"{PODS}/web/binding", bind_tree("web", "a")).tree["message"]
    )
    assert api.post(f"{PODS}/none/binding", bind_tree("none", "a")).status == 404


def test_binding_through_the_bindings_resource(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("web"))

    answer = api.post("/api/v1/namespaces/default/bindings", bind_tree("web", "a"))

    assert answer.status == 201
    assert api.get(f"{PODS}/web").tree["spec"]["nodeName"] == "a"


def test_a_bound_pod_runs(api: ServerInThread) -> None:
    status = bound(api)["status"]

    assert status["phase"] == "Running"
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert status["containerStatuses"][0]["ready"] is True
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "True"


def test_a_pod_without_node_is_deleted_at_once(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("web"))

    answer = api.delete(f"{PODS}/web")

    assert (answer.status, answer.tree["kind"]) == (200, "Pod")
    assert api.get(f"{PODS}/web").status == 404


def test_a_running_pod_has_its_grace_period(api: ServerInThread) -> None:
    bound(api, terminationGracePeriodSeconds=20)

    metadata = api.delete(f"{PODS}/web").tree["metadata"]
    api.advance(19)
    still = api.get(f"{PODS}/web").status
    api.advance(1)

    assert metadata["deletionTimestamp"] == "2026-01-01T00:00:20Z"
    assert metadata["deletionGracePeriodSeconds"] == 20
    assert (still, api.get(f"{PODS}/web").status) == (200, 404)


@pytest.mark.parametrize(
    ("first", "second", "gone_after"),
    [
        pytest.param(None, 5, 5, id="shortened"),
        pytest.param(5, 100, 5, id="never longer"),
        pytest.param(None, 0, 0, id="by force"),
    ],
)
def test_grace_periods_only_get_shorter(
    api: ServerInThread, first: int | None, second: int, gone_after: int
) -> None:
    bound(api)
    api.delete(f"{PODS}/web", None if first is None else {"gracePeriodSeconds": first})

    api.delete(f"{PODS}/web", {"gracePeriodSeconds": second})
    if gone_after:
        api.advance(gone_after - 1)
        assert api.get(f"{PODS}/web").status == 200
        api.advance(1)

    assert api.get(f"{PODS}/web").status == 404


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        pytest.param({"uid": "other"}, 409, id="another pod"),
        pytest.param({"resourceVersion": "1"}, 409, id="another version"),
        pytest.param({}, 200, id="none"),
    ],
)
def test_deleting_with_preconditions(api: ServerInThread, conditions: Any, code: int) -> None:
    api.make(PODS, pod_tree("web"))

    answer = api.delete(f"{PODS}/web", {"preconditions": conditions})

    assert answer.status == code


def test_a_finished_pod_is_deleted_at_once(api: ServerInThread) -> None:
    bound(api)
    api.patch(f"{PODS}/web/status", {"status": {"phase": "Succeeded"}})

    api.delete(f"{PODS}/web")

    assert api.get(f"{PODS}/web").status == 404


def test_pods_end_after_their_duration(api: ServerInThread) -> None:
    tree = pod_tree("web", nodeName="a", restartPolicy="Never")
    tree["metadata"]["annotations"] = {"bayplan.dev/duration": "10s"}
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(PODS, tree)
    api.settle()

    api.advance(10)

    status = api.get(f"{PODS}/web").tree["status"]
    assert status["phase"] == "Succeeded"
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


def test_a_collection_is_deleted_by_selector(api: ServerInThread) -> None:
    for name in "abc":
        tree = pod_tree(name)
        tree["metadata"]["labels"] = {"keep": str(name == "c").lower()}
        api.make(PODS, tree)

    answer = api.delete(f"{PODS}?labelSelector=keep%3Dfalse")

    assert answer.names == ["a", "b"]
    assert api.get(PODS).names == ["c"]


def eviction(name: str, **options: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": options,
    }


def budget(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
    }


def labelled(api: ServerInThread, *names: str) -> None:
    for name in names:
        bound(api, name)
        api.patch(f"{PODS}/{name}", {"metadata": {"labels": {"app": "x"}}})
    api.settle()


def test_eviction_without_budget_deletes(api: ServerInThread) -> None:
    bound(api)

    answer = api.post(f"{PODS}/web/eviction", eviction("web", gracePeriodSeconds=3))
    pod = api.get(f"{PODS}/web").tree

    assert answer.status == 201
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 3
    reasons = {c["type"]: c.get("reason") for c in pod["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"


def test_a_budget_limits_evictions(api: ServerInThread) -> None:
    labelled(api, "a1", "a2", "a3")
    api.make(BUDGETS, budget(minAvailable=2))
    api.settle()

    first = api.post(f"{PODS}/a1/eviction", eviction("a1"))
    api.settle()
    second = api.post(f"{PODS}/a2/eviction", eviction("a2"))

    assert first.status == 201
    assert (second.status, second.tree["reason"]) == (429, "TooManyRequests")
    assert "Retry-After" not in second.headers
    (cause,) = second.tree["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 2 healthy pods and has 2 currently"
    status = api.get(f"{BUDGETS}/b").tree["status"]
    assert (status["expectedPods"], status["desiredHealthy"]) == (3, 2)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        pytest.param({"minAvailable": 1}, 2, id="a number that must stay"),
        pytest.param({"minAvailable": "50%"}, 1, id="a share that must stay, rounded up"),
        pytest.param({"maxUnavailable": 1}, 1, id="a number that may go"),
        pytest.param({"maxUnavailable": "34%"}, 2, id="a share that may go, rounded up"),
        pytest.param({"minAvailable": "100%"}, 0, id="all must stay"),
    ],
)
def test_disruptions_allowed(api: ServerInThread, spec: Any, allowed: int) -> None:
    replicas(api, 3)
    api.make(BUDGETS, budget(**spec))
    api.settle()

    status = api.get(f"{BUDGETS}/b").tree["status"]
    assert (status["disruptionsAllowed"], status["expectedPods"]) == (allowed, 3)


def replicas(api: ServerInThread, number: int) -> list[str]:
    """The running pods of a replica set."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod_tree("x")["spec"]}
    spec = {"replicas": number, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    api.make(REPLICA_SETS, {"metadata": {"name": "x"}, "spec": spec})
    return run_all(api)


def run_all(api: ServerInThread) -> list[str]:
    """Bind all pods, and return their names."""
    api.make("/api/v1/nodes", node_tree("n"))
    api.settle()
    names = [pod["metadata"]["name"] for pod in api.get(PODS).tree["items"]]
    for name in names:
        assert api.post(f"{PODS}/{name}/binding", bind_tree(name, "n")).status == 201
    api.settle()
    return names


def test_pods_without_a_controller_do_not_count_as_expected(api: ServerInThread) -> None:
    labelled(api, "a1", "a2")
    api.make(BUDGETS, budget(maxUnavailable=1))
    api.settle()

    status = api.get(f"{BUDGETS}/b").tree["status"]
    assert (status["expectedPods"], status["disruptionsAllowed"]) == (0, 0)


def test_a_budget_whose_pods_have_no_scale_allows_none(api: ServerInThread) -> None:
    api.make(BUDGETS, budget(maxUnavailable=1))
    api.settle()
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod_tree("x")["spec"]}
    template["spec"]["restartPolicy"] = "Never"
    job = {"metadata": {"name": "job"}, "spec": {"template": template}}
    api.make("/apis/batch/v1/namespaces/default/jobs", job)
    (name,) = run_all(api)

    answer = api.post(f"{PODS}/{name}/eviction", eviction(name))

    (condition,) = api.get(f"{BUDGETS}/b").tree["status"]["conditions"]
    problem = "jobs.batch does not implement the scale subresource"
    assert (condition["reason"], condition["message"]) == ("SyncFailed", problem)
    assert answer.status == 429
    assert answer.tree["details"]["causes"][0]["message"].endswith(f"it failed sync: {problem}")


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        pytest.param({}, 429, id="by default an unready pod stays while the budget is not met"),
        pytest.param({"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, 429, id="the same by name"),
        pytest.param({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, 201, id="it may always go"),
    ],
)
def test_unready_pods(api: ServerInThread, policy: Any, status: int) -> None:
    first, *_ = replicas(api, 2)
    api.make(BUDGETS, budget(minAvailable=2, **policy))
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    api.patch(f"{PODS}/{first}/status", unready)
    api.settle()

    assert api.post(f"{PODS}/{first}/eviction", eviction(first)).status == status


def test_pending_pods_may_be_evicted_regardless_of_the_budget(api: ServerInThread) -> None:
    tree = pod_tree("web")
    tree["metadata"]["labels"] = {"app": "x"}
    api.make(PODS, tree)
    api.make(BUDGETS, budget(minAvailable=1))
    api.settle()

    assert api.post(f"{PODS}/web/eviction", eviction("web")).status == 201
    assert api.post(f"{PODS}/web/eviction", eviction("web")).status == 404
    assert api.post(f"{PODS}/web/eviction", eviction("other")).status == 400


def test_gated_pods_have_the_condition(api: ServerInThread) -> None:
    pod = api.make(PODS, pod_tree("web", schedulingGates=[{"name": "g"}]))

    opened = api.patch(f"{PODS}/web", {"spec": {"schedulingGates": None}})
    closed = api.patch(f"{PODS}/web", {"spec": {"schedulingGates": [{"name": "h"}]}})

    assert pod["status"]["conditions"][0]["reason"] == "SchedulingGated"
    assert (opened.status, closed.status) == (200, 422)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({}, "BestEffort", id="no requests and limits"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests something"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits become requests"
        ),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            "Burstable",
            id="requests less than its limit",
        ),
    ],
)
def test_quality_of_service(api: ServerInThread, resources: Any, expected: str) -> None:
    container = {"name": "a", "image": "x", "resources": resources}

    pod = api.make(PODS, pod_tree("web", containers=[container]))

    assert pod["status"]["qosClass"] == expected
