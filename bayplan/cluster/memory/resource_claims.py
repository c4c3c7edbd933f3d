"""Resource claims: create claims from templates, and deallocate unused ones.

Mirrors pkg/controller/resourceclaim/controller.go. Objects of the input stay: a claim is
deallocated when the last pod that uses it ends or is deleted while the cluster is watched.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ...api.dra import (
    FINALIZER,
    MAX_CONSUMERS,
    POD_CLAIM_NAME,
    ResourceClaim,
    ResourceClaimConsumer,
    ResourceClaimTemplate,
)
from ...api.meta import ObjectMeta, OwnerReference
from ...api.pod import Pod
from ...api.pod_spec import PodResourceClaim
from ...api.pod_status import PodResourceClaimStatus
from ..objects import ControllerCluster

CLAIM, TEMPLATE = ResourceClaim.kind, ResourceClaimTemplate.kind
MAX_NAME = 57
Key = tuple[str, str]
"""Namespace and name."""


class ClaimController:
    """The claims of one cluster. Watches it and records changes; `run` does the resulting work."""

    def __init__(self, cluster: ControllerCluster) -> None:
        self._cluster = cluster
        self._pods: dict[Key, None] = {}
        self._claims: dict[Key, None] = {}
        self._waiting: dict[Key, dict[Key, None]] = {}
        self._made_for: dict[str, dict[Key, None]] = {}

    # Changes

    def on_add(self, obj: Any) -> None:
        """Record a pod that needs claims, or a new template."""
        match obj:
            case Pod() if obj.spec.resource_claims:
                self._pods[obj.namespace, obj.name] = None
            case ResourceClaimTemplate():
                self._pods.update(self._waiting.pop((obj.namespace, obj.name), {}))
            case ResourceClaim():
                for owner in obj.owner_references:
                    if owner.controller and owner.kind == "Pod":
                        made = self._made_for.setdefault(owner.uid, {})
                        made[obj.namespace, obj.name] = None

    def on_update(self, old: Any, new: Any) -> None:
        """Record a finished pod, which no longer uses its claims, or one bound by another scheduler."""
        match new:
            case Pod() if new.spec.resource_claims or new.uid in self._made_for:
                if is_done(new):
                    self._note_claims_of(new)
                elif new.node_name and not old.node_name:
                    self._pods[new.namespace, new.name] = None

    def on_delete(self, obj: Any) -> None:
        """Record a deleted pod, whose claims are released, and its generated ones deleted."""
        match obj:
            case Pod() if obj.spec.resource_claims or obj.uid in self._made_for:
                self._note_claims_of(obj)

    def _note_claims_of(self, pod: Pod) -> None:
        self._claims.update(self._made_for.get(pod.uid, {}))
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_name is not None:
                self._claims[pod.namespace, entry.resource_claim_name] = None

    def run(self) -> None:
        """Do the recorded work until nothing is left."""
        while self._pods or self._claims:
            pods, self._pods = self._pods, {}
            for key in pods:
                self._sync_pod(self._cluster.get("Pod", *key))
            claims, self._claims = self._claims, {}
            for key in claims:
                self._sync_claim(self._cluster.get(CLAIM, *key))

    def delete(self, claim: ResourceClaim, now: str) -> None:
        """Delete a claim as a user does: one in use is terminating from `now` on."""
        if claim.is_terminating:
            return
        if FINALIZER not in (claim.metadata.finalizers or ()) and not claim.status.reserved_for:
            self._remove(claim)
            return
        meta = replace(claim.metadata, deletion_timestamp=now)
        self._cluster.update(replace(claim, metadata=meta))
        self._claims[claim.namespace, claim.name] = None
        self.run()

    # Pods

    def _sync_pod(self, pod: Pod | None) -> None:
        """Create the missing claims of the pod; a pod with a node reserves its claims."""
        if pod is None or pod.is_terminating or is_done(pod):
            return
        made: dict[str, str] = {}
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is not None and self._lacks(pod, entry):
                claim = self._make(pod, entry, entry.resource_claim_template_name)
                if claim is None:
                    return  # until there is a template
                made[entry.name] = claim.name
        if made:
            others = (s for s in pod.status.resource_claim_statuses or () if s.name not in made)
            new = (PodResourceClaimStatus(name=n, resource_claim_name=c) for n, c in made.items())
            status = replace(pod.status, resource_claim_statuses=(*others, *new))
            pod = self._cluster.update(pod.with_status(status))
        if pod.node_name:
            self._reserve(pod)

    def _lacks(self, pod: Pod, entry: PodResourceClaim) -> bool:
        """Whether the claim for an entry was never created, or is gone; one that is not needed is
        not missing."""
        for status in pod.status.resource_claim_statuses or ():
            if status.name == entry.name:
                if status.resource_claim_name is None:
                    return False
                claim = self._cluster.get(CLAIM, pod.namespace, status.resource_claim_name)
                return claim is None or not claim.is_made_for(pod)
        return True

    def _make(self, pod: Pod, entry: PodResourceClaim, template_name: str) -> ResourceClaim | None:
        for key in self._made_for.get(pod.uid, {}):
            known: ResourceClaim | None = self._cluster.get(CLAIM, *key)
            if known is not None and known.annotations.get(POD_CLAIM_NAME) == entry.name:
                return known
        template = self._cluster.get(TEMPLATE, pod.namespace, template_name)
        if template is None:
            waiting = self._waiting.setdefault((pod.namespace, template_name), {})
            waiting[pod.namespace, pod.name] = None
            return None
        return self._cluster.add(make_claim(pod, entry, template))

    def _reserve(self, pod: Pod) -> None:
        """Reserve the claims of a pod that another scheduler bound."""
        names = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
        for entry in pod.spec.resource_claims or ():
            name = entry.resource_claim_name or names.get(entry.name)
            claim = self._cluster.get(CLAIM, pod.namespace, name) if name is not None else None
            if claim is None or claim.allocation is None or claim.is_reserved_for(pod):
                continue
            users = claim.status.reserved_for or ()
            if len(users) < MAX_CONSUMERS:
                user = ResourceClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)
                status = replace(claim.status, reserved_for=(*users, user))
                self._cluster.update(replace(claim, status=status))

    # Claims

    def _sync_claim(self, claim: ResourceClaim | None) -> None:
        """Remove missing consumers; without any, deallocate, and delete a claim generated for a pod."""
        if claim is None:
            return
        users = claim.status.reserved_for or ()
        left = tuple(user for user in users if self._is_used_by(claim, user))
        is_leaving = claim.is_terminating and not left
        if len(left) < len(users) or (is_leaving and claim.allocation is not None):
            status = replace(claim.status, reserved_for=left or None)
            if not left:
                status = replace(status, allocation=None, devices=None)
            claim = self._cluster.update(replace(claim, status=status))
            if not left:
                finalizers = tuple(f for f in claim.metadata.finalizers or () if f != FINALIZER)
                meta = replace(claim.metadata, finalizers=finalizers or None)
                claim = self._cluster.update(replace(claim, metadata=meta))
        if is_leaving or (not left and self._is_orphan(claim)):
            self._remove(claim)

    def _is_used_by(self, claim: ResourceClaim, user: ResourceClaimConsumer) -> bool:
        if user.api_group or user.resource != "pods":
            return True
        pod = self._cluster.get("Pod", claim.namespace, user.name)
        return pod is not None and pod.uid == user.uid and not is_done(pod)

    def _is_orphan(self, claim: ResourceClaim) -> bool:
        """Whether the pod of a generated claim no longer needs it."""
        for owner in claim.owner_references:
            if owner.controller and owner.kind == "Pod":
                pod = self._cluster.get("Pod", claim.namespace, owner.name)
                return pod is None or pod.uid != owner.uid or is_done(pod)
        return False

    def _remove(self, claim: ResourceClaim) -> None:
        for owner in claim.owner_references:
            made = self._made_for.get(owner.uid)
            if made is not None:
                made.pop((claim.namespace, claim.name), None)
                if not made:
                    del self._made_for[owner.uid]
        self._cluster.delete(claim)


def is_done(pod: Pod) -> bool:
    """Whether the pod will not run (again)."""
    return pod.is_finished or (pod.is_terminating and not pod.node_name)


def make_claim(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    """The claim for an entry of the pod; the cluster completes its name."""
    prefix = f"{pod.name}-{entry.name}-"
    if len(prefix) > MAX_NAME:
        size = len(prefix)
        prefix = (
            pod.name[: len(pod.name) * MAX_NAME // size]
            + "-"
            + entry.name[: len(entry.name) * MAX_NAME // size]
        )
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    given = template.spec.metadata
    meta = ObjectMeta(
        generate_name=prefix,
        namespace=pod.namespace,
        labels=given.labels,
        annotations={**(given.annotations or {}), POD_CLAIM_NAME: entry.name},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=meta, spec=template.spec.spec)
