"""Custom workloads: pods of those with replicas and a template; others are named."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError
from bayplan.sim import Simulation, SimulationReport
from bayplan.testing.builders import make_node

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}


def make(kind: str, api_version: str, spec: Any, **metadata: Any) -> Any:
    meta = {"name": "web", "namespace": "shop", **metadata}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})


def make_rollout(**spec: Any) -> Any:
    return make("Rollout", "argoproj.io/v1alpha1", {"replicas": 3, **spec})


def owned(kind: str, name: str, owner: str = "Rollout", **fields: Any) -> Any:
    reference = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": owner,
        "name": "web",
        "uid": "u",
        "controller": True,
    }
    head = {"apiVersion": "v1" if kind == "Pod" else "apps/v1", "kind": kind}
    meta = {"name": name, "namespace": "shop", "ownerReferences": [reference]}
    return decode_object({**head, "metadata": meta, **fields})


def run(*objects: Any) -> SimulationReport:
    return Simulation([make_node("n", cpu="64"), *objects]).run()


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        pytest.param("Rollout", "argoproj.io/v1alpha1", id="Rollout"),
        pytest.param("CloneSet", "apps.kruise.io/v1alpha1", id="CloneSet"),
        pytest.param("StatefulSet", "apps.kruise.io/v1beta1", id="a name that Kubernetes has, too"),
    ],
)
def test_replicas_and_a_template_become_pods_with_a_remark(kind: str, api_version: str) -> None:
    report = run(make(kind, api_version, {"replicas": 3, "template": TEMPLATE, "selector": "any"}))

    assert len(report.placed) == 3
    assert all(result.pod.labels == {"app": "web"} for result in report.placed)
    group = api_version.partition("/")[0]
    remark = f"{kind}.{group} shop/web: 3 pods, made by a ReplicaSet in its place"
    assert report.remarks == report.notices == report.to_dict()["remarks"] == [remark]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param("Rollout", {"replicas": 3, "template": TEMPLATE}, id="one template"),
        pytest.param(
            "Experiment",
            {"templates": [{"template": TEMPLATE}, {"template": TEMPLATE, "replicas": 2}]},
            id="several templates",
        ),
    ],
)
def test_workloads_with_a_generated_name_become_pods_each(kind: str, spec: Any) -> None:
    meta = {"name": "", "generateName": "web-"}

    report = run(*(make(kind, "argoproj.io/v1alpha1", spec, **meta) for _ in range(2)))

    assert len(report.placed) == 6
    assert all(result.pod.name.startswith("web-") for result in report.placed)
    assert len({remark.partition(":")[0] for remark in report.remarks}) == 2
    assert all(remark.startswith(f"{kind}.argoproj.io shop/web-") for remark in report.remarks)


def test_pods_of_the_input_count() -> None:
    there = owned("Pod", "web-1", spec={"nodeName": "n", "containers": []})

    report = run(make_rollout(template=TEMPLATE), there)

    assert len(report.placed) == 2
    assert report.remarks[0].startswith(
        "Rollout.argoproj.io shop/web: 3 pods, of which 1 in the input"
    )


def test_replica_sets_of_the_input_make_the_pods() -> None:
    replica_set = owned("ReplicaSet", "web-abc", spec={"replicas": 2, "template": TEMPLATE})

    report = run(make_rollout(template=TEMPLATE), replica_set)

    assert len(report.placed) == 2
    assert report.remarks == [
        "Rollout.argoproj.io shop/web: its pods are those of its replica sets in the input"
    ]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            make_rollout(workloadRef={"kind": "Deployment", "name": "x"}),
            "Rollout.argoproj.io shop/web, pods of the object that spec.workloadRef names",
            id="a reference to another object",
        ),
        pytest.param(
            make("Pool", "example.dev/v1", {"replicas": 3}),
            "Pool.example.dev shop/web, 3 replicas (no spec.template)",
            id="replicas without a template",
        ),
        pytest.param(
            make("Service", "example.dev/v1", {"template": TEMPLATE}),
            "Service.example.dev shop/web, pods of spec.template",
            id="a template without replicas",
        ),
        pytest.param(
            make("Job", "batch.example.dev/v1", {"tasks": [{"replicas": 2, "template": TEMPLATE}]}),
            "Job.batch.example.dev shop/web, pods of spec.tasks[0].template",
            id="a template in a list",
        ),
        pytest.param(
            make("TrainJob", "trainer.kubeflow.org/v1alpha1", {"runtimeRef": {"name": "torch"}}),
            "TrainJob.trainer.kubeflow.org shop/web, its pods are those of the runtime that"
            " spec.runtimeRef names",
            id="a kind whose templates are elsewhere",
        ),
        pytest.param(
            make(
                "CloneSet",
                "apps.kruise.io/v1alpha1",
                {"replicas": 3, "template": {"spec": {"containers": [{"name": 5}]}}},
            ),
            "CloneSet.apps.kruise.io shop/web, 3 replicas (spec.template: Expected `str`, got `int`"
            " - at `$.spec.containers[0].name`)",
            id="a template that cannot be read",
        ),
    ],
)
def test_what_is_not_simulated_is_named(obj: Any, expected: str) -> None:
    report = run(obj)

    assert report.pods == []
    assert report.notices == [f"not simulated: {expected}"]


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(
            ("MachineDeployment", "cluster.x-k8s.io/v1beta1", {"replicas": 1, "template": {}}),
            id="machines",
        ),
        pytest.param(("Certificate", "cert-manager.io/v1", {"secretName": "s"}), id="no pods"),
        pytest.param(("PodTemplate", "v1", {"template": TEMPLATE}), id="a kind of Kubernetes"),
    ],
)
def test_objects_that_own_no_pods_are_left_out(tree: tuple[str, str, Any]) -> None:
    assert type(make(*tree)).__name__ == "UnknownObject"


def test_errors_name_the_place_of_the_custom_workload() -> None:
    template = {"spec": {**TEMPLATE["spec"], "priorityClassName": "nope"}}
    rollout = make_rollout(template=template)

    with pytest.raises(
        InputError, match=r"^here: replicaset shop/web: spec.template.spec.priorityClassName"
    ):
        Simulation([make_node("n"), rollout], place_of=lambda obj: "here" if obj is rollout else "")
