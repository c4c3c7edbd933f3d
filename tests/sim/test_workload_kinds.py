"""Workload kinds: the pods of custom kinds in the table, those of a user's file, and gangs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.api.workload_kinds import reading_workloads
from bayplan.errors import InputError
from bayplan.manifests.workload_documents import read_workload_kinds
from bayplan.sim import Simulation, SimulationReport, read_manifests
from bayplan.testing.builders import make_node

POD = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
TEMPLATE = {"spec": POD}
GATES = {"GenericWorkload": True, "GangScheduling": True}


def make(api_version: str, kind: str, spec: Any) -> Any:
    meta = {"name": "w", "namespace": "n"}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})


def run(obj: Any, cpu: str = "64", gates: Any = None) -> SimulationReport:
    return Simulation([make_node("n", cpu=cpu), obj], feature_gates=gates).run()


def workers(count: int) -> dict[str, Any]:
    return {"groupName": "g", "replicas": count, "template": TEMPLATE}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "count"),
    [
        (
            "ray.io/v1",
            "RayCluster",
            {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [workers(3), workers(2)]},
            6,
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {
                "headGroupSpec": {"template": TEMPLATE},
                "workerGroupSpecs": [workers(2) | {"numOfHosts": 4}],
            },
            9,
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {"suspend": True, "headGroupSpec": {"template": TEMPLATE}},
            0,
        ),
        (
            "ray.io/v1",
            "RayJob",
            {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}},
            1,
        ),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {
                "replicatedJobs": [
                    {
                        "name": "a",
                        "replicas": 2,
                        "template": {"spec": {"parallelism": 3, "template": TEMPLATE}},
                    },
                    {"name": "b", "template": {"spec": {"template": TEMPLATE}}},
                    {
                        "name": "c",
                        "replicas": 2,
                        "template": {
                            "spec": {"parallelism": 8, "completions": 3, "template": TEMPLATE}
                        },
                    },
                    {
                        "name": "d",
                        "template": {"spec": {"completions": 5, "template": TEMPLATE}},
                    },
                ]
            },
            14,
        ),
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"tasks": [{"replicas": 2, "template": TEMPLATE}, {"template": TEMPLATE}]},
            3,
        ),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            {
                "pytorchReplicaSpecs": {
                    "Master": {"template": TEMPLATE},
                    "Worker": {"replicas": 3, "template": TEMPLATE},
                }
            },
            4,
        ),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": TEMPLATE}},
            8,
        ),
        ("serving.knative.dev/v1", "Service", {"template": TEMPLATE}, 1),
        ("serving.knative.dev/v1", "Configuration", {"template": TEMPLATE}, 1),
        ("argoproj.io/v1alpha1", "Rollout", {"template": TEMPLATE}, 1),
        ("argoproj.io/v1alpha1", "Rollout", {"replicas": 3, "template": TEMPLATE}, 3),
        (
            "argoproj.io/v1alpha1",
            "Experiment",
            {"templates": [{"replicas": 2, "template": TEMPLATE}, {"template": TEMPLATE}]},
            3,
        ),
        ("kubeflow.org/v1", "Notebook", {"template": TEMPLATE}, 1),
        ("agents.x-k8s.io/v1alpha1", "Sandbox", {"podTemplate": TEMPLATE}, 1),
        ("core.strimzi.io/v1", "StrimziPodSet", {"pods": [TEMPLATE, TEMPLATE]}, 2),
        (
            "serving.knative.dev/v1",
            "Service",
            {
                "template": {
                    **TEMPLATE,
                    "metadata": {"annotations": {"autoscaling.knative.dev/min-scale": "3"}},
                }
            },
            3,
        ),
        ("monitoring.coreos.com/v1", "Prometheus", {"replicas": 2, "shards": 2}, 4),
        (
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            {"driver": {"cores": 1}, "executor": {"instances": 3}},
            4,
        ),
        (
            "argoproj.io/v1alpha1",
            "Workflow",
            {
                "entrypoint": "main",
                "templates": [
                    {
                        "name": "main",
                        "steps": [
                            [
                                {"name": "a", "template": "work", "withItems": [1, 2, 3]},
                                {"name": "b", "template": "work"},
                            ],
                            [{"name": "later", "template": "work"}],
                        ],
                    },
                    {"name": "work", "container": {"image": "i"}},
                ],
            },
            4,
        ),
    ],
)
def test_pods_of_kinds_in_the_table(api_version: str, kind: str, spec: Any, count: int) -> None:
    report = run(make(api_version, kind, spec))

    assert len(report.placed) == count
    assert report.pending == []
    group = api_version.partition("/")[0]
    assert report.remarks[0].startswith(f"{kind}.{group} n/w: {count} pod")


@pytest.mark.parametrize(
    ("api_version", "kind", "key", "spec"),
    [
        pytest.param(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
            {"leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}},
            id="of a LeaderWorkerSet",
        ),
        pytest.param(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            "alpha.jobset.sigs.k8s.io/exclusive-topology",
            {"replicatedJobs": [{"name": "j", "template": {"spec": {"template": TEMPLATE}}}]},
            id="of a JobSet",
        ),
    ],
)
def test_a_remark_tells_of_exclusive_placement_by_an_annotation(
    api_version: str, kind: str, key: str, spec: Any
) -> None:
    annotations = {key: "example.com/rack", "example.com/other": "x"}
    meta = {"name": "w", "namespace": "n", "annotations": annotations}
    obj = decode_object({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})

    (remark,) = run(obj).remarks

    assert f"; {key} is not simulated" in remark
    assert "other" not in remark


def test_requests_of_spark_are_those_that_spark_computes() -> None:
    spec = {
        "type": "Python",
        "driver": {"cores": 1, "coreRequest": "500m", "memory": "1g"},
        "executor": {"cores": 2, "memory": "4g", "instances": 1, "memoryOverhead": "512m"},
    }

    report = run(make("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec))

    found = Counter(
        (result.pod.requests["cpu"], result.pod.requests["memory"] >> 20)
        for result in report.placed
    )
    assert found == {(500, 1024 + 409): 1, (2000, 4096 + 512): 1}


def test_a_gang_is_placed_as_a_whole_with_the_gates() -> None:
    spec = {"minAvailable": 3, "tasks": [{"replicas": 3, "template": TEMPLATE}]}
    job = make("batch.volcano.sh/v1alpha1", "Job", spec)

    one_by_one, together = run(job, cpu="2"), run(job, cpu="2", gates=GATES)

    assert (len(one_by_one.placed), len(together.placed)) == (2, 0)
    assert "placed pod by pod without --feature-gates=GenericWorkload=true" in one_by_one.remarks[0]
    assert "a gang of which 3 pods must be placed together" in together.remarks[0]


def test_each_group_of_a_leader_worker_set_is_a_gang() -> None:
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": TEMPLATE}}
    obj = make("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)

    assert len(run(obj, cpu="5", gates=GATES).placed) == 3


def test_replica_sets_have_the_role_of_their_pods_in_their_names() -> None:
    group = {"groupName": "small", "replicas": 1, "template": TEMPLATE}
    ray = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [group]}
    lws = {"leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}}

    def roles(obj: Any) -> set[str]:
        owners = [result.pod.controller for result in run(obj).placed]
        return {owner.name.removeprefix(obj.name) for owner in owners if owner}

    assert roles(make("ray.io/v1", "RayCluster", ray)) == {"-head", "-0"}
    worker_set = make("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", lws)
    assert roles(worker_set) == {"-leader", "-worker"}


WORK = {"name": "work", "container": {"image": "i"}}


@pytest.mark.parametrize(
    ("template", "count"),
    [
        pytest.param({"resource": {"action": "create"}}, 1, id="a resource is made by a pod"),
        pytest.param({"data": {"source": {}}}, 1, id="data is read by a pod"),
        pytest.param({"suspend": {}}, 0, id="a workflow that begins suspended has no pods"),
        pytest.param(
            {"steps": [[{"name": "a", "template": "halt"}, {"name": "b", "template": "work"}]]},
            1,
            id="a suspended step has no pod",
        ),
    ],
)
def test_first_pods_of_a_workflow(template: Any, count: int) -> None:
    halt = {"name": "halt", "suspend": {}}
    templates = [{"name": "main", **template}, WORK, halt]

    report = run(
        make("argoproj.io/v1alpha1", "Workflow", {"entrypoint": "main", "templates": templates})
    )

    assert len(report.placed) == count
    assert report.remarks[0].startswith(f"Workflow.argoproj.io n/w: {count} pod")


def test_null_in_the_node_selector_of_a_template_is_the_empty_text() -> None:
    template = {"spec": {**POD, "nodeSelector": {"role": None}, "affinity": None}}
    spec = {"replicas": 1, "template": template}

    assert run(make("argoproj.io/v1alpha1", "Rollout", spec)).placed == []


@pytest.mark.parametrize(
    ("version", "kind", "spec", "path"),
    [
        pytest.param(
            "argoproj.io/v1alpha1",
            "Workflow",
            {"entrypoint": "m", "templates": [{"name": "m", "dag": {"tasks": [None]}}]},
            "spec.templates[0].dag.tasks[0]",
            id="a task of a workflow",
        ),
        pytest.param(
            "argoproj.io/v1alpha1",
            "Rollout",
            {"template": {"spec": {"containers": [*POD["containers"], None]}}},
            "spec.template.spec.containers[1]",
            id="a container of a kind in the table",
        ),
        pytest.param(
            "example.com/v1",
            "Thing",
            {"replicas": 2, "template": {"spec": {**POD, "tolerations": [None]}}},
            "spec.template.spec.tolerations[0]",
            id="a toleration of another kind",
        ),
    ],
)
def test_a_null_in_a_list_is_named_with_its_path(
    version: str, kind: str, spec: Any, path: str
) -> None:
    assert f"{path}: expected a value; got null" in make(version, kind, spec).missing


def test_init_containers_of_a_workflow_count() -> None:
    init = {"name": "i", "image": "i", "resources": {"requests": {"cpu": "9"}}}
    templates = [{**WORK, "initContainers": [init]}]
    spec = {"entrypoint": "work", "templates": templates}

    assert run(make("argoproj.io/v1alpha1", "Workflow", spec), cpu="8").placed == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(
            {
                "templates": [
                    {"name": "m", "steps": [[{"template": "work", "withParam": "x"}]]},
                    WORK,
                ]
            },
            "template m: the pods depend on withParam",
            id="the result of a step",
        ),
        pytest.param(
            {"workflowTemplateRef": {"name": "t"}},
            "the pods depend on workflowTemplateRef",
            id="a template that is another object",
        ),
        pytest.param(
            {"templates": [{**WORK, "name": "m", "podSpecPatch": "{}"}]},
            "template m: the pods depend on podSpecPatch",
            id="a patch of the pod of a template",
        ),
        pytest.param(
            {"templates": [{**WORK, "name": "m"}], "podSpecPatch": "{}"},
            "template m: the pods depend on podSpecPatch",
            id="a patch of all pods",
        ),
        pytest.param(
            {
                "templates": [{**WORK, "name": "m"}],
                "templateDefaults": {"container": {}, "name": "d"},
            },
            "template m: the pods depend on templateDefaults",
            id="defaults of all templates",
        ),
    ],
)
def test_workflows_whose_pods_are_unknown_are_refused_where_files_are_read(
    tmp_path: Path, spec: Any, field: str
) -> None:
    file = tmp_path / "w.json"
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
    file.write_text(json.dumps({**head, "spec": {"entrypoint": "m", **spec}}))

    (remark,) = read_manifests([file]).remarks

    assert (
        f"Workflow.argoproj.io default/w: expected pods that can be made; got its pods: {field}"
        in remark
    )
    assert "--workload-kinds" in remark


KINDS = """
apiVersion: bayplan.dev/v1
kind: WorkloadKinds
kinds:
- kind: Farm
  group: example.dev
  pods:
  - {template: "spec.pools[].pod", count: "spec.pools[].size"}
  gang: true
"""


def test_kinds_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "kinds.yaml"
    file.write_text(KINDS)

    with reading_workloads(read_workload_kinds([file])):
        obj = make("example.dev/v1", "Farm", {"pools": [{"size": 2, "pod": TEMPLATE}]})

    assert len(run(obj).placed) == 2


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind: WorkloadKinds", "kind: Pod", "expected bayplan.dev/v1 WorkloadKinds; got"),
        ("gang: true", "gang: maybe", "kinds[0].gang: expected `bool`, got `str`"),
        ("gang: true", "gagn: true", "kinds[0]: object contains unknown field `gagn`"),
        ("group: example.dev", "group: apps", "kinds[0].group: expected the API group"),
        ("spec.pools[].pod", "spec..pod", "kinds[0].pods[0].template: expected a path such as"),
        (', count: "spec.pools[].size"', ", count: -1", "kinds[0].pods[0].count: expected zero"),
        ('template: "spec.pools[].pod", ', "", "kinds[0].pods[0]: expected template or fields"),
    ],
)
def test_faults_of_a_file(tmp_path: Path, old: str, new: str, expected: str) -> None:
    file = tmp_path / "kinds.yaml"
    file.write_text(KINDS.replace(old, new))

    with pytest.raises(InputError) as error:
        read_workload_kinds([file])

    assert str(error.value).startswith(f"{file}: document 1: ")
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("kind", "spec", "remark"),
    [
        ("AnalysisTemplate", {"job": {"spec": {"template": TEMPLATE}}}, "spec.job.spec.template"),
        ("RayCronJob", {"jobTemplate": {"head": TEMPLATE}}, "spec.jobTemplate.head"),
        ("ClusterPolicy", {"rules": [{"pattern": TEMPLATE}]}, "spec.rules[0].pattern"),
    ],
)
def test_a_template_for_later_makes_no_pods(kind: str, spec: Any, remark: str) -> None:
    obj = make("a.example.dev/v1", kind, spec)

    report = run(obj)

    assert not obj.is_certain
    assert report.pods == []
    (told,) = report.remarks
    assert told == (
        f"not simulated: {kind}.a.example.dev n/w, pods that are made of {remark} later"
    )


def test_the_object_that_a_rollout_names_makes_its_pods() -> None:
    obj = make("argoproj.io/v1alpha1", "Rollout", {"replicas": 2, "workloadRef": {"name": "web"}})

    assert not obj.is_certain
    assert obj.missing == "pods of the object that spec.workloadRef names"


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        pytest.param(
            "argoproj.io/v1alpha1",
            "Rollout",
            {"replicas": 2, "template": TEMPLATE},
            id="one template",
        ),
        pytest.param(
            "ray.io/v1",
            "RayJob",
            {
                "rayClusterSpec": {
                    "headGroupSpec": {"template": TEMPLATE},
                    "workerGroupSpecs": [workers(3)],
                }
            },
            id="several templates and a note",
        ),
        pytest.param(
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"minAvailable": 2, "tasks": [{"replicas": 3, "template": TEMPLATE}]},
            id="a gang",
        ),
    ],
)
def test_a_manifest_that_was_written_makes_the_same_pods(
    api_version: str, kind: str, spec: Any
) -> None:
    obj = make(api_version, kind, spec)

    written: Any = decode_object(to_dict(obj))

    assert to_dict(written) == to_dict(obj)
    assert run(written, gates=GATES).to_dict()["pods"] == run(obj, gates=GATES).to_dict()["pods"]
    assert run(written, gates=GATES).remarks == run(obj, gates=GATES).remarks
