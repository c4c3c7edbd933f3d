"""The claims of a pod: those it names, and those that were made for it.

Mirrors foreachPodResourceClaim of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go and
staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...api.dra import ClaimNotReadyError, ResourceClaim, claim_name_of
from ...api.pod import Pod


def pod_claims(
    pod: Pod, get: Callable[[str, str], ResourceClaim | None]
) -> Iterator[ResourceClaim]:
    """The claims of the pod in order; ClaimNotReadyError at the first that cannot be used."""
    for entry in pod.spec.resource_claims or ():
        name = claim_name_of(pod, entry)
        if name is None:
            continue
        claim = get(pod.namespace, name)
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.is_terminating:
            raise ClaimNotReadyError(f'resourceclaim "{name}" is being deleted')
        if entry.resource_claim_name is None and not claim.is_made_for(pod):
            text = f"ResourceClaim {claim.key} was not created for Pod {pod.key}"
            raise ClaimNotReadyError(f"{text} (Pod is not owner)")
        yield claim
