"""Stateful sets: ordinals and claims of their pods.

Mirrors pkg/controller/statefulset/stateful_set_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.storage import PersistentVolumeClaim
from ...api.volumes import PersistentVolumeClaimVolume, Volume
from ...api.workloads import PodTemplateSpec, StatefulSet

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    """The labels that select one pod of the set."""
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def beyond(stateful_set: StatefulSet, ordinals: range, pods: Iterable[Pod]) -> list[Pod]:
    """The pods whose ordinal is not among `ordinals`, the last one first."""
    found = []
    for pod in pods:
        number = pod.name.removeprefix(f"{stateful_set.name}-")
        if number.isdecimal() and int(number) not in ordinals:
            found.append((int(number), pod))
    return [pod for _, pod in sorted(found, key=lambda entry: -entry[0])]


def make_claims(stateful_set: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """The claims of the pod with that ordinal, by the name of the template."""
    selector = stateful_set.spec.selector
    labels = (selector.match_labels if selector else None) or {}
    claims = {}
    for template in stateful_set.spec.volume_claim_templates or ():
        metadata = replace(
            template.metadata,
            name=f"{template.name}-{stateful_set.name}-{ordinal}",
            namespace=stateful_set.namespace,
            labels={**template.labels, **labels},
        )
        claims[template.name] = replace(template, metadata=metadata)
    return claims


def make_spec(
    template: PodTemplateSpec, claims: dict[str, PersistentVolumeClaim]
) -> PodSpec | None:
    """The template's spec with the claims as volumes; None without a change."""
    if not claims:
        return None
    volumes = [
        Volume(
            name=name, persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=claim.name)
        )
        for name, claim in claims.items()
    ]
    others = (v for v in template.full_spec.volumes or () if v.name not in claims)
    return replace(template.full_spec, volumes=(*volumes, *others), node_name="")
