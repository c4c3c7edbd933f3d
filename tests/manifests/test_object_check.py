"""Object check: objects that kube-apiserver refuses are refused when files are read, in its words."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.sim import read_manifests

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
    },
}

PORTS = {"ports": [{"port": 80}]}


def changed(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(tree)
    found: Any = made
    *steps, last = path.split(".")
    for step in steps:
        found = found[int(step)] if step.isdecimal() else found[step]
    found[last] = value
    return made


def remarks(tmp_path: Path, *trees: dict[str, Any]) -> list[str]:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": trees}))
    return [text.removeprefix(f"{file}: ") for text in read_manifests([file]).remarks]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(
            changed(DEPLOYMENT, "spec.replicas", -1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            id="negative replicas",
        ),
        pytest.param(
            changed(DEPLOYMENT, "spec.template.metadata.labels", {"a": "c"}),
            'spec.template.metadata.labels: Invalid value: {"a":"c"}: '
            "`selector` does not match template `labels`",
            id="another selector",
        ),
        pytest.param(
            changed(DEPLOYMENT, "spec.template.metadata", {}),
            "spec.template.metadata.labels: Invalid value: null: "
            "`selector` does not match template `labels`",
            id="no labels",
        ),
        pytest.param(
            changed(POD, "metadata.ownerReferences", [{"kind": "A", "name": "a", "uid": "u"}]),
            'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
            id="an owner without version",
        ),
        pytest.param(
            changed(POD, "spec.containers", []),
            "spec.containers: Required value",
            id="no container",
        ),
        pytest.param(
            changed(
                POD,
                "spec.containers.0.resources",
                {"requests": {"cpu": 2}, "limits": {"cpu": "1000m"}},
            ),
            'spec.containers[0].resources.requests: Invalid value: "2": '
            "must be less than or equal to cpu limit of 1",
            id="requests above limits",
        ),
        pytest.param(
            changed(POD, "spec.containers.0.ports", [{"containerPort": 80, "hostPort": 99999}]),
            "spec.containers[0].ports[0].hostPort: Invalid value: 99999: "
            "must be between 1 and 65535, inclusive",
            id="host port out of range",
        ),
        pytest.param(
            changed(
                POD,
                "spec.containers.0.ports",
                [{"containerPort": 80, "hostPort": 1}, {"containerPort": 81, "hostPort": 1}],
            ),
            'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//1"',
            id="host port twice",
        ),
    ],
)
def test_refused_in_the_words_of_the_api_server(
    tmp_path: Path, tree: dict[str, Any], expected: str
) -> None:
    kind = "Pod" if tree["kind"] == "Pod" else "Deployment.apps"
    name, label = tree["metadata"]["name"], tree["kind"].lower()

    found = remarks(tmp_path, POD, DEPLOYMENT, changed(tree, "metadata.namespace", "x"))

    where = f'document 1: items[2]: {label} x/{name}: {kind} "{name}" is invalid: '
    assert found == [where + expected]


def test_names_and_versions(tmp_path: Path) -> None:
    (name,) = remarks(tmp_path, changed(POD, "metadata.name", "A_b"))
    (version,) = remarks(tmp_path, {key: POD[key] for key in POD if key != "apiVersion"})

    assert 'Pod "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123' in name
    assert version.endswith("pod default/p: apiVersion: expected v1; got none")


def test_equal_faults_are_counted(tmp_path: Path) -> None:
    bad = changed(POD, "spec.containers", [])

    found = remarks(tmp_path, *(changed(bad, "metadata.name", f"p{i}") for i in range(3)))

    assert len(found) == 1
    assert found[0].endswith("(and 2 more)")


def test_stored_objects_and_generated_names_pass(tmp_path: Path) -> None:
    bad = changed(POD, "spec.containers", [])
    stored = changed(bad, "metadata.uid", "u-1")
    generated = changed(POD, "metadata", {"generateName": "p-"})

    assert remarks(tmp_path, stored, generated) == []


@pytest.mark.parametrize("uid", [{}, {"uid": "u"}])
def test_long_lists_are_checked_once_per_spec(tmp_path: Path, uid: dict[str, str]) -> None:
    pods = [changed(POD, "metadata", {"name": f"p{i}", **uid}) for i in range(2000)]
    pods[1500]["metadata"]["name"] = "A"

    assert len(remarks(tmp_path, *pods)) == (0 if uid else 1)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param("metadata.name", "P", 'metadata.name: Invalid value: "P"', id="its name"),
        pytest.param("metadata.labels", {"a": "-"}, "metadata.labels: Invalid", id="a label"),
        pytest.param("metadata.finalizers", ["a"], "metadata.finalizers", id="a finalizer"),
        pytest.param(
            "metadata.annotations", {"a b": "c"}, "metadata.annotations", id="an annotation"
        ),
        pytest.param("spec.nodeName", "N!", 'spec.nodeName: Invalid value: "N!"', id="its node"),
        pytest.param("spec.restartPolicy", "x", "spec.restartPolicy", id="its spec"),
    ],
)
def test_an_item_that_differs_from_many_valid_ones_is_refused_for_it(
    path: str, value: Any, expected: str, tmp_path: Path
) -> None:
    like = changed(changed(POD, "metadata.labels", {"a": "b"}), "status", {"phase": "Running"})
    pods = [
        changed(changed(like, "metadata.name", f"p{number}"), "spec.nodeName", f"n{number}")
        for number in range(3000)
    ]

    found = remarks(tmp_path, *pods, changed(pods[0], path, value))

    assert len(found) == 1
    assert expected in found[0]


def test_a_field_that_the_server_sets_is_checked_in_the_second_document_too(tmp_path: Path) -> None:
    wrong = changed(POD, "metadata", {"name": "q", "selfLink": 3})

    assert remarks(tmp_path, wrong) != []
    file = tmp_path / "a.jsonl"
    file.write_text(f"{json.dumps(POD)}\n{json.dumps(wrong)}")
    found = read_manifests([file]).remarks
    assert len(found) == 1
    assert "cannot unmarshal number" in found[0]


def test_a_pod_without_a_version_is_refused_with_the_one_that_is_expected(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion:\nkind: Pod\nmetadata: {name: p}")

    found = read_manifests([file]).remarks

    assert "apiVersion: expected v1; got none" in found[0]


def test_a_pod_with_a_node_is_not_like_one_without(tmp_path: Path) -> None:
    gated = changed(POD, "spec.schedulingGates", [{"name": "a"}])
    waiting = [changed(gated, "metadata.name", f"p{number}") for number in range(3000)]

    found = remarks(tmp_path, *waiting, changed(gated, "spec.nodeName", "n"))

    assert len(found) == 1
    assert "spec.nodeName: Forbidden" in found[0]


def test_containers_without_an_image_are_noted_once(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c%s}]}"
    file = tmp_path / "pods.yaml"
    file.write_text("\n---\n".join([pod % ("a", ""), pod % ("b", ""), pod % ("c", ", image: x")]))

    assert read_manifests([file]).notes == [
        "2 objects have containers without an image, which kube-apiserver would refuse"
    ]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(
            changed({**DEPLOYMENT, "kind": "DaemonSet"}, "spec.selector", None),
            'DaemonSet.apps "d" is invalid: spec.template.metadata.labels: Invalid value: {"a":"b"}: '
            "`selector` does not match template `labels`",
            id="a DaemonSet without selector",
        ),
        pytest.param(
            changed(
                POD,
                "metadata.ownerReferences",
                [
                    {"apiVersion": "v1", "kind": "A", "name": name, "uid": "u", "controller": True}
                    for name in "ab"
                ],
            ),
            "Only one reference can have Controller set to true. "
            'Found "true" in references for A/a and A/b',
            id="two controllers",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a.b"}, "spec": PORTS},
            'Service "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
            id="a Service with dots",
        ),
    ],
)
def test_refused_with_these_last_words(tree: dict[str, Any], expected: str, tmp_path: Path) -> None:
    (found,) = remarks(tmp_path, tree)

    assert found.endswith(expected)


def test_a_service_may_begin_with_a_digit(tmp_path: Path) -> None:
    tree = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "1a"}, "spec": PORTS}

    assert remarks(tmp_path, tree) == []


def test_one_long_object_in_json_is_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(changed(POD, "metadata.annotations", {"note": "x" * 100_000})))

    assert [pod.name for pod in read_manifests([file]).objects] == ["p"]


def test_an_object_without_a_namespace_is_named_without_one(tmp_path: Path) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "s"}],
    }

    (remark,) = remarks(tmp_path, binding)

    assert remark.startswith("document 1: items[0]: clusterrolebinding b: ClusterRoleBinding.rbac")
