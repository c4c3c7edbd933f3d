"""Objects over HTTP: create, read, update, and errors in Kubernetes' form."""

from typing import Any

import pytest

from tests.rig.api_server import PODS, ServerInThread, config_map_tree
from tests.rig.trees import pod_tree

MAPS = "/api/v1/namespaces/default/configmaps"


def test_fields_that_the_server_sets(api: ServerInThread) -> None:
    pod = api.make(PODS, pod_tree("web"))

    metadata = pod["metadata"]
    assert (pod["kind"], pod["apiVersion"]) == ("Pod", "v1")
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 1
    assert len(metadata["uid"]) == 36
    assert metadata["resourceVersion"].isdecimal()
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_defaults_and_admission_of_a_pod(api: ServerInThread) -> None:
    resources = {"limits": {"cpu": "1"}}
    tree = pod_tree("web", containers=[{"name": "a", "image": "x", "resources": resources}])

    spec = api.make(PODS, tree)["spec"]

    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["priority"] == 0
    assert {t["key"] for t in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }


def test_unknown_fields_are_dropped_and_warned_of(api: ServerInThread) -> None:
    answer = api.post(MAPS, {**config_map_tree("a"), "color": "red"})

    assert answer.status == 201
    assert answer.headers["Warning"] == '299 - "unknown field \\"color\\""'
    assert "color" not in api.get(f"{MAPS}/a").tree


def test_generate_name(api: ServerInThread) -> None:
    tree = pod_tree("")
    tree["metadata"] = {"generateName": "job-"}

    names = {api.make(PODS, tree)["metadata"]["name"] for _ in range(5)}

    assert len(names) == 5
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("change", "path", "code", "reason", "field"),
    [
        pytest.param({"name": ""}, PODS, 422, "Invalid", "metadata.name", id="no name"),
        pytest.param({"name": "A_b"}, PODS, 422, "Invalid", "metadata.name", id="bad name"),
        pytest.param(
            {"labels": {"a": "b c"}}, PODS, 422, "Invalid", "metadata.labels", id="bad label"
        ),
        pytest.param({"namespace": "other"}, PODS, 400, "BadRequest", None, id="other namespace"),
        pytest.param(
            {}, "/api/v1/namespaces/none/pods", 404, "NotFound", None, id="no such namespace"
        ),
        pytest.param({}, "/api/v1/nodes", 400, "BadRequest", None, id="another kind"),
        pytest.param({}, "/api/v1/things", 404, "NotFound", None, id="no such resource"),
        pytest.param(
            {"ownerReferences": [{"kind": "A"}]},
            PODS,
            422,
            "Invalid",
            "metadata.ownerReferences.apiVersion",
            id="an owner without uid",
        ),
    ],
)
def test_create_rejects(
    api: ServerInThread, change: Any, path: str, code: int, reason: str, field: str | None
) -> None:
    tree = pod_tree("web")
    tree["metadata"].update(change)

    answer = api.post(path, tree)

    assert (answer.status, answer.tree["code"], answer.tree["reason"]) == (code, code, reason)
    assert (answer.tree["kind"], answer.tree["status"]) == ("Status", "Failure")
    if field is not None:
        assert answer.tree["details"]["causes"][0]["field"] == field


@pytest.mark.parametrize(
    ("spec", "code", "field"),
    [
        pytest.param({"containers": []}, 422, "spec.containers", id="no containers"),
        pytest.param(
            {"containers": [{"name": "a"}]}, 422, "spec.containers[0].image", id="no image"
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "x"}] * 2},
            422,
            "spec.containers[1].name",
            id="a name twice",
        ),
        pytest.param({"restartPolicy": "Sometimes"}, 422, "spec.restartPolicy", id="bad policy"),
        pytest.param(
            {
                "containers": [
                    {"name": "a", "image": "x", "resources": {"requests": {"cpu": "many"}}}
                ]
            },
            400,
            None,
            id="no quantity",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Maybe"}]},
            422,
            "spec.tolerations[0].operator",
            id="unknown operator",
        ),
        pytest.param({"priorityClassName": "none"}, 403, None, id="no such priority class"),
        pytest.param({"containers": "none"}, 400, None, id="text for a list"),
    ],
)
def test_invalid_pods(api: ServerInThread, spec: Any, code: int, field: str | None) -> None:
    answer = api.post(PODS, pod_tree("web", **spec))

    assert answer.status == code, answer.tree
    if field is not None:
        assert field in [cause["field"] for cause in answer.tree["details"]["causes"]]


def test_a_duplicate_name_is_rejected(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("web"))

    answer = api.post(PODS, pod_tree("web"))

    assert (answer.status, answer.tree["reason"]) == (409, "AlreadyExists")
    assert answer.tree["message"] == 'pods "web" already exists'
    assert answer.tree["details"] == {"name": "web", "kind": "pods"}


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        pytest.param("", 201, id="by default it is a warning"),
        pytest.param("Warn", 201, id="a warning"),
        pytest.param("Ignore", 201, id="nothing"),
        pytest.param("Strict", 400, id="refused"),
    ],
)
def test_field_validation(api: ServerInThread, mode: str, code: int) -> None:
    answer = api.post(f"{PODS}?fieldValidation={mode}", pod_tree("web", nodname="a"))

    assert answer.status == code
    if code == 400:
        assert 'unknown field "spec.nodname"' in answer.tree["message"]
    assert ("Warning" in answer.headers) is (mode in ("", "Warn"))


def test_a_stale_update_is_a_conflict(api: ServerInThread) -> None:
    first = api.make(MAPS, config_map_tree("a", x="1"))
    api.put(f"{MAPS}/a", {**first, "data": {"x": "2"}})

    answer = api.put(f"{MAPS}/a", {**first, "data": {"x": "3"}})

    assert (answer.status, answer.tree["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer.tree["message"]
    assert api.get(f"{MAPS}/a").tree["data"] == {"x": "2"}


def test_an_update_without_version_is_unconditional(api: ServerInThread) -> None:
    first = api.make(MAPS, config_map_tree("a", x="1"))

    answer = api.put(f"{MAPS}/a", config_map_tree("a", x="2"))

    assert answer.status == 200
    assert answer.tree["metadata"]["uid"] == first["metadata"]["uid"]
    assert answer.tree["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]


def test_an_update_that_changes_nothing_keeps_the_version(api: ServerInThread) -> None:
    first = api.make(MAPS, config_map_tree("a", x="1"))

    assert api.put(f"{MAPS}/a", first).tree == first


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"uid": "another"}, 409, id="another object of that name"),
        pytest.param({"name": "b"}, 400, id="another name than the path"),
    ],
)
def test_update_rejects(api: ServerInThread, change: Any, code: int) -> None:
    first = api.make(MAPS, config_map_tree("a"))

    answer = api.put(f"{MAPS}/a", {**first, "metadata": {**first["metadata"], **change}})

    assert answer.status == code


def test_update_of_a_missing_object(api: ServerInThread) -> None:
    assert api.put(f"{MAPS}/none", config_map_tree("none")).status == 404
    assert api.get(f"{MAPS}/none").tree["message"] == 'configmaps "none" not found'


def test_spec_and_status_are_written_separately(api: ServerInThread) -> None:
    pod = api.make(PODS, pod_tree("web"))
    pod["status"]["phase"] = "Failed"
    pod["metadata"]["labels"] = {"a": "b"}

    by_spec = api.put(f"{PODS}/web", pod).tree
    by_status = api.put(
        f"{PODS}/web/status", {**by_spec, "status": {"phase": "Running"}, "spec": {"nodeName": "x"}}
    ).tree

    assert by_spec["status"]["phase"] == "Pending"
    assert by_spec["metadata"]["labels"] == {"a": "b"}
    assert by_status["status"]["phase"] == "Running"
    assert "nodeName" not in by_status["spec"]
    assert by_status["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"nodeName": "a"}, 422, id="a node, past the binding"),
        pytest.param({"hostNetwork": True}, 422, id="the network"),
        pytest.param({"activeDeadlineSeconds": 5}, 200, id="the deadline may change"),
        pytest.param({"tolerations": []}, 422, id="tolerations may not go"),
    ],
)
def test_most_of_a_pods_spec_is_immutable(api: ServerInThread, change: Any, code: int) -> None:
    own = [{"key": "gpu", "operator": "Exists"}]
    pod = api.make(PODS, pod_tree("web", tolerations=own))

    assert api.put(f"{PODS}/web", {**pod, "spec": {**pod["spec"], **change}}).status == code


def test_generation_counts_changes_of_the_spec(api: ServerInThread) -> None:
    pod = api.make(PODS, pod_tree("web"))
    labelled = api.patch(f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}}).tree
    changed = api.patch(f"{PODS}/web", {"spec": {"activeDeadlineSeconds": 5}}).tree

    assert [t["metadata"]["generation"] for t in (pod, labelled, changed)] == [1, 1, 2]


def test_empty_fields_may_be_omitted_in_an_update(api: ServerInThread) -> None:
    """As typed clients do, kube-scheduler among them, when they add a finalizer to a claim."""
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    exactly = {"deviceClassName": "gpu", "selectors": []}
    requests = [{"name": "gpu", "exactly": exactly}]
    made = api.make(path, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})

    assert "selectors" not in made["spec"]["devices"]["requests"][0]["exactly"]
    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    same = api.put(f"{path}/c", made)
    made["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    made["metadata"].pop("resourceVersion")
    other = api.put(f"{path}/c", made)

    assert (same.status, other.status) == (200, 422)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_dry_run_changes_nothing(api: ServerInThread, method: str) -> None:
    api.make(MAPS, config_map_tree("a", x="1"))
    before = api.get(MAPS).tree
    name = "b" if method == "POST" else "a"
    path = f"{MAPS}?dryRun=All" if method == "POST" else f"{MAPS}/a?dryRun=All"
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    body = None if method == "DELETE" else config_map_tree(name, x="2")

    answer = api.request(method, path, body, kind)

    assert answer.status in (200, 201)
    if body is not None:
        assert answer.tree["data"] == {"x": "2"}
    assert api.get(MAPS).tree == before


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        pytest.param("text/html", b"<p>", 415, id="no object"),
        pytest.param("application/json", b"{", 400, id="malformed"),
        pytest.param("application/json", b"[]", 400, id="a list"),
        pytest.param("application/yaml", b"a: [", 400, id="malformed YAML"),
        pytest.param("application/vnd.kubernetes.protobuf", b"x", 400, id="malformed protobuf"),
    ],
)
def test_malformed_bodies(api: ServerInThread, kind: str, body: bytes, code: int) -> None:
    answer = api.request("POST", MAPS, body, kind)

    assert answer.status == code
    assert answer.tree["kind"] == "Status"


def test_yaml_is_read_as_json_would_be(api: ServerInThread) -> None:
    text = b"kind: ConfigMap\nmetadata: {name: a}\ndata: {day: 2026-01-01}\n"

    answer = api.request("POST", MAPS, text, "application/yaml")

    assert answer.tree["data"] == {"day": "2026-01-01"}


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("PUT", MAPS, 405, id="a whole collection"),
        pytest.param("POST", f"{MAPS}/a", 405, id="into an object"),
        pytest.param("GET", f"{MAPS}/a/status", 404, id="no such subresource"),
        pytest.param("GET", "/nowhere", 404, id="nothing there"),
        pytest.param("GET", "/apis/example.com/v1/things", 404, id="no such group"),
    ],
)
def test_invalid_requests(api: ServerInThread, method: str, path: str, code: int) -> None:
    answer = api.request(method, path, {} if method != "GET" else None)

    assert (answer.status, answer.tree["kind"]) == (code, "Status")


def test_leases_are_created_by_put(api: ServerInThread) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/me"
    lease = {"metadata": {"name": "me"}, "spec": {"holderIdentity": "a"}}

    assert api.put(path, lease).status == 201
    assert api.put(path, {**lease, "spec": {"holderIdentity": "b"}}).status == 200


def test_events_are_one_object_in_two_versions(api: ServerInThread) -> None:
    new, old = (
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/api/v1/namespaces/default/events",
    )
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "web"},
        "note": "hello",
        "reportingController": "me",
        "reportingInstance": "me-1",
        "action": "Waving",
        "reason": "Greeting",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }

    made = api.make(new, event)
    api.patch(f"{new}/e", {"series": {"count": 2, "lastObservedTime": None}})

    assert (made["kind"], made["apiVersion"], made["note"]) == (
        "Event",
        "events.k8s.io/v1",
        "hello",
    )
    seen = api.get(f"{old}?fieldSelector=involvedObject.name=web").tree["items"][0]
    assert (seen["message"], seen["reportingComponent"]) == ("hello", "me")
    assert seen["series"] == {"count": 2, "lastObservedTime": None}
    assert api.get(f"{new}?fieldSelector=regarding.name=web").tree["items"][0]["note"] == "hello"


def test_services_get_addresses(api: ServerInThread) -> None:
    path = "/api/v1/namespaces/default/services"
    spec = {"ports": [{"port": 80}], "selector": {"a": "b"}}
    made = [
        api.make(path, {"metadata": {"name": name}, "spec": {**spec, "type": kind}})["spec"]
        for name, kind in (("a", "ClusterIP"), ("b", "NodePort"))
    ]

    assert len({spec["clusterIP"] for spec in made}) == 2
    assert made[0]["ports"][0]["targetPort"] == 80
    assert 30000 <= made[1]["ports"][0]["nodePort"] <= 32767
    again = api.put(f"{path}/b", {"metadata": {"name": "b"}, "spec": {**spec, "type": "NodePort"}})
    assert again.tree["spec"]["clusterIP"] == made[1]["clusterIP"]


def test_reviews_are_answered(api: ServerInThread) -> None:
    access = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {}})
    token = api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})

    assert access.tree["status"] == {"allowed": True}
    assert token.tree["status"]["authenticated"] is True


def test_a_manifest_with_tolerations_can_be_applied_again(api: ServerInThread) -> None:
    given = [{"key": "gpu", "operator": "Exists"}]
    api.make(PODS, pod_tree("a", tolerations=given))

    answer = api.patch(f"{PODS}/a", {"spec": {"tolerations": given}}, "strategic")

    assert answer.status == 200
    keys = [toleration["key"] for toleration in answer.tree["spec"]["tolerations"]]
    assert keys == ["gpu", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    assert answer.tree["metadata"]["generation"] == 1
