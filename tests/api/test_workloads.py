"""Workloads: the fields that controllers read."""

from typing import Any

from bayplan.api.pod_groups import PodGroup
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.kinds import KINDS
from bayplan.api.workloads import (
    Deployment,
    Job,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}],
    },
}


def read(kind: str, **spec: Any) -> Any:
    return decode_object(
        {
            "apiVersion": KINDS[kind].api_version,
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": spec,
        }
    )


def test_a_template_keeps_its_spec_whole_and_shared() -> None:
    deployment = read("Deployment", template=TEMPLATE)

    assert isinstance(deployment, Deployment)
    template = deployment.spec.template
    pod: Any = decode_object({"kind": "Pod", "metadata": {"name": "p"}, "spec": TEMPLATE["spec"]})
    assert template.node_name == "n1"
    assert template.labels == {"app": "web"}
    assert template.annotations == {}
    assert template.spec is pod.spec
    assert [volume.name for volume in template.full_spec.volumes or ()] == ["data"]
    assert PodTemplateSpec().spec.containers is None


def test_replicas_default_to_one() -> None:
    for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        assert read(kind).replicas == 1
        assert read(kind, replicas=0).replicas == 0


def test_a_stateful_set_numbers_its_pods() -> None:
    stateful = read(
        "StatefulSet",
        ordinals={"start": 5},
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}],
    )

    assert isinstance(stateful, StatefulSet)
    assert stateful.first_ordinal == 5
    assert read("StatefulSet").first_ordinal == 0
    assert [claim.name for claim in stateful.spec.volume_claim_templates or ()] == ["data"]


def test_a_job_has_completions_and_parallelism() -> None:
    job = read("Job", completions=4, completionMode="Indexed")

    assert isinstance(job, Job)
    assert (job.parallelism, job.spec.completions, job.is_indexed) == (1, 4, True)
    assert read("Job", parallelism=0).parallelism == 0


def test_old_and_new_selectors() -> None:
    old = read("ReplicationController", selector={"a": "b"})
    new = read("ReplicaSet", selector={"matchLabels": {"a": "b"}})

    assert isinstance(old, ReplicationController)
    assert isinstance(new, ReplicaSet)
    assert old.spec.selector == {"a": "b"}
    assert new.spec.selector is not None
    assert new.spec.selector.matches({"a": "b"})


def test_a_group_is_read_as_a_group_not_as_one_that_preempts() -> None:
    assert KINDS["PodGroup"].wire is PodGroup
    assert type(read("PodGroup")) is PodGroup
