"""Server fields: labels and selectors of jobs, and maps and lists with null, as kube-apiserver stores them."""

from typing import Any

import pytest

from tests.rig.api_server import api_server

JOBS = "/apis/batch/v1/namespaces/default/jobs"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OWN = {
    f"{prefix}{name}"
    for prefix in ("", "batch.kubernetes.io/")
    for name in ("controller-uid", "job-name")
}


def job(own: dict[str, str] | None, template: dict[str, str] | None) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"} | ({} if own is None else {"labels": own}),
        "spec": {"template": {"metadata": {"labels": template}, "spec": spec}},
    }


@pytest.mark.parametrize(
    ("own", "template", "expected"),
    [
        pytest.param(None, None, OWN, id="no labels"),
        pytest.param(None, {"a": "b"}, {"a", *OWN}, id="labels of the template"),
        pytest.param({}, {"a": "b"}, {"a", *OWN}, id="an empty map"),
        pytest.param({"a": "b"}, None, {"a"}, id="labels of its own"),
        pytest.param({"a": "b"}, {"a": "b"}, {"a"}, id="the same in both"),
    ],
)
def test_a_job_has_labels_of_its_template_only_without_its_own(
    own: dict[str, str] | None, template: dict[str, str] | None, expected: set[str]
) -> None:
    with api_server() as server:
        made = server.request("POST", JOBS, job(own, template)).tree

    assert set(made["metadata"]["labels"]) == expected
    assert set(made["spec"]["template"]["metadata"]["labels"]) == {*(template or ()), *OWN}


def test_null_in_a_map_of_texts_is_the_empty_text() -> None:
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "labels": {"role": None}},
        "data": {"a": None, "b": "c"},
    }

    with api_server() as server:
        made = server.request("POST", CONFIG_MAPS, tree).tree

    assert made["metadata"]["labels"] == {"role": ""}
    assert made["data"] == {"a": "", "b": "c"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{"name": "c", "image": "i", "args": [None]}]}, "", id="texts"),
        pytest.param(
            {"containers": [None]},
            "[spec.containers[0].name: Required value, spec.containers[0].image: Required value]",
            id="containers",
        ),
    ],
)
def test_null_in_a_list_is_the_zero_value_of_its_type(spec: dict[str, Any], expected: str) -> None:
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}

    with api_server() as server:
        answer = server.request("POST", "/api/v1/namespaces/default/pods", {**head, "spec": spec})

    if expected:
        assert answer.tree["message"] == f'Pod "p" is invalid: {expected}'
    else:
        assert answer.tree["spec"]["containers"][0]["args"] == [""]


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/{}"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        pytest.param("ResourceClaim", "resourceclaims", id="a claim"),
        pytest.param("ResourceClaimTemplate", "resourceclaimtemplates", id="a template"),
    ],
)
def test_admin_access_needs_a_label_of_the_namespace(kind: str, plural: str) -> None:
    exactly = {"deviceClassName": "x", "adminAccess": True}
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "x"}},
        {"name": "b", "exactly": exactly},
    ]
    spec: dict[str, Any] = {"devices": {"requests": requests}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "c"},
        "spec": spec if kind == "ResourceClaim" else {"spec": spec},
    }
    admin = {"name": "admin", "labels": {"resource.kubernetes.io/admin-access": "true"}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": admin}

    with api_server() as server:
        server.request("POST", "/api/v1/namespaces", space)
        refused = server.request("POST", CLAIMS.format("default", plural), claim)
        allowed = server.request("POST", CLAIMS.format("admin", plural), claim)

    assert refused.tree["message"] == (
        f'{kind}.resource.k8s.io "c" is invalid: spec.devices.requests[1].adminAccess: Forbidden: '
        "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on "
        "the containing namespace"
    )
    assert allowed.status == 201
