"""Resource claims: create claims from templates, for pods and pod groups, and deallocate unused ones.

Mirrors pkg/controller/resourceclaim/controller.go. Objects of the input stay: a claim is
deallocated when the last pod that uses it ends or is deleted while the cluster is watched, or the group that uses it is
deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from ...api.dra import (
    FINALIZER,
    MAX_CONSUMERS,
    POD_CLAIM_NAME,
    POD_GROUPS,
    ResourceClaim,
    ResourceClaimConsumer,
    ResourceClaimTemplate,
    consumer_of,
    is_shared,
)
from ...api.meta import ObjectMeta, controller_of
from ...api.pod import Pod
from ...api.pod_groups import SCHEDULING_GROUP, PodGroup, pod_group_of
from ...api.pod_spec import PodResourceClaim
from ...api.pod_status import PodResourceClaimStatus
from ..objects.object_index import ControllerCluster
from .deployments import owner_reference

CLAIM, TEMPLATE = ResourceClaim.kind, ResourceClaimTemplate.kind
MAX_NAME = 57
OWNERS = ("Pod", PodGroup.kind)
Key = tuple[str, str]
"""Namespace and name."""


class ClaimController:
    """The claims of one cluster. Watches it and records changes; `run` does the resulting work."""

    def __init__(self, cluster: ControllerCluster) -> None:
        self._cluster = cluster
        self._noted: dict[str, dict[Key, None]] = {PodGroup.kind: {}, "Pod": {}, CLAIM: {}}
        """By kind: the objects to process, in the order of the kinds."""
        self._waiting: dict[tuple[str, Key], dict[Key, None]] = {}
        """By kind, and template that is not there: the pods or groups that need it."""
        self._members: dict[Key, dict[Key, None]] = {}
        """By group: its pods that lack a claim."""
        self._made_for: dict[str, dict[Key, None]] = {}

    # Changes

    def on_add(self, obj: Any) -> None:
        """Record a pod or group that needs claims, or a new template."""
        match obj:
            case Pod() | PodGroup() if obj.spec.resource_claims:
                self._noted[obj.kind][obj.namespace, obj.name] = None
            case ResourceClaimTemplate():
                for kind in OWNERS:
                    waiting = self._waiting.pop((kind, (obj.namespace, obj.name)), {})
                    self._noted[kind].update(waiting)
            case ResourceClaim():
                for owner in obj.owner_references:
                    if owner.controller and owner.kind in OWNERS:
                        made = self._made_for.setdefault(owner.uid, {})
                        made[obj.namespace, obj.name] = None

    def on_add_many(self, pods: Iterable[Pod]) -> None:
        """Record the pods that need claims."""
        for pod in pods:
            if pod.spec.resource_claims:
                self.on_add(pod)

    def on_update(self, old: Any, new: Any) -> None:
        """Record a finished pod, which no longer uses its claims, or one bound by another scheduler."""
        match new:
            case Pod() if new.spec.resource_claims or new.uid in self._made_for:
                if is_done(new):
                    self._note_claims_of(new)
                elif new.node_name and not old.node_name:
                    self._noted["Pod"][new.namespace, new.name] = None

    def on_delete(self, obj: Any) -> None:
        """Record a deleted pod or group, whose claims are released, and its generated ones deleted."""
        match obj:
            case Pod() | PodGroup() if obj.spec.resource_claims or obj.uid in self._made_for:
                self._note_claims_of(obj)

    def _note_claims_of(self, user: Pod | PodGroup) -> None:
        self._noted[CLAIM].update(self._made_for.get(user.uid, {}))
        for entry in user.spec.resource_claims or ():
            if entry.resource_claim_name is not None:
                self._noted[CLAIM][user.namespace, entry.resource_claim_name] = None

    @property
    def has_work(self) -> bool:
        """Whether there is recorded work."""
        return any(self._noted.values())

    def run(self) -> None:
        """Do the recorded work until nothing is left."""
        syncs: tuple[Callable[[Any], None], ...]
        syncs = self._sync_group, self._sync_pod, self._sync_claim
        while self.has_work:
            for kind, sync in zip(tuple(self._noted), syncs, strict=True):
                noted, self._noted[kind] = self._noted[kind], {}
                for key in noted:
                    sync(self._cluster.get(kind, *key))

    run_once = run

    def delete(self, claim: ResourceClaim, now: str) -> None:
        """Delete a claim as a user does: one in use is terminating from `now` on."""
        if claim.is_terminating:
            return
        if FINALIZER not in (claim.metadata.finalizers or ()) and not claim.status.reserved_for:
            self._remove(claim)
            return
        meta = replace(claim.metadata, deletion_timestamp=now)
        self._cluster.update(replace(claim, metadata=meta))
        self._noted[CLAIM][claim.namespace, claim.name] = None
        self.run()

    # Pods

    def _sync_pod(self, pod: Pod | None) -> None:
        """Create the missing claims of the pod; a pod with a node reserves its claims."""
        if pod is None or pod.is_terminating or is_done(pod):
            return
        made = self._claims_for(pod)
        if made is None:
            return  # until there is a template, or the claim of the group
        if made:
            others = (s for s in pod.status.resource_claim_statuses or () if s.name not in made)
            new = (PodResourceClaimStatus(name=n, resource_claim_name=c) for n, c in made.items())
            status = replace(pod.status, resource_claim_statuses=(*others, *new))
            pod = self._cluster.update(pod.with_status(status))
        if pod.node_name:
            self._reserve(pod)

    def _claims_for(self, pod: Pod) -> dict[str, str] | None:
        """By entry of the pod: the name of a claim that its status lacks. None if one of them cannot be made yet."""
        made: dict[str, str] = {}
        group = self._group_of(pod)
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is None or not self._lacks(pod, entry):
                continue
            if group is not None and is_shared(group, entry):
                claim = self._made(group, entry.name)
                if claim is None:
                    members = self._members.setdefault((group.namespace, group.name), {})
                    members[pod.namespace, pod.name] = None
            else:
                claim = self._make(pod, entry, entry.resource_claim_template_name)
            if claim is None:
                return None
            made[entry.name] = claim.name
        return made

    def _group_of(self, pod: Pod) -> PodGroup | None:
        name = pod_group_of(pod)
        return None if name is None else self._cluster.get(PodGroup.kind, pod.namespace, name)

    def _lacks(self, user: Pod | PodGroup, entry: PodResourceClaim) -> bool:
        """Whether the claim for an entry was never created, or is gone; one that is not needed is
        not missing."""
        for status in user.status.resource_claim_statuses or ():
            if status.name == entry.name:
                if status.resource_claim_name is None:
                    return False
                claim = self._cluster.get(CLAIM, user.namespace, status.resource_claim_name)
                return claim is None or not _is_for(claim, user)
        return True

    def _made(self, owner: Pod | PodGroup, entry_name: str) -> ResourceClaim | None:
        """The claim that was made for an entry of the owner."""
        for key in self._made_for.get(owner.uid, {}):
            known: ResourceClaim | None = self._cluster.get(CLAIM, *key)
            if known is not None and known.annotations.get(POD_CLAIM_NAME) == entry_name:
                return known
        return None

    def _make(
        self, owner: Pod | PodGroup, entry: PodResourceClaim, template_name: str
    ) -> ResourceClaim | None:
        known = self._made(owner, entry.name)
        if known is not None:
            return known
        template = self._cluster.get(TEMPLATE, owner.namespace, template_name)
        if template is None:
            key = owner.kind, (owner.namespace, template_name)
            waiting = self._waiting.setdefault(key, {})
            waiting[owner.namespace, owner.name] = None
            return None
        return self._cluster.add(make_claim(owner, entry, template))

    # Groups

    def _sync_group(self, group: PodGroup | None) -> None:
        """Create the missing claims of the group; its pods that wait for them get their names."""
        if group is None or group.is_terminating:
            return
        made: list[PodResourceClaimStatus] = []
        for entry in group.spec.resource_claims or ():
            if entry.resource_claim_template_name is not None and self._lacks(group, entry):
                claim = self._make(group, entry, entry.resource_claim_template_name)
                if claim is None:
                    return  # until there is a template
                made.append(PodResourceClaimStatus(entry.name, claim.name))
        if made:
            names = {status.name for status in made}
            before = group.status.resource_claim_statuses or ()
            others = [status for status in before if status.name not in names]
            status = replace(group.status, resource_claim_statuses=(*others, *made))
            self._cluster.update(replace(group, status=status))
        self._noted["Pod"].update(self._members.pop((group.namespace, group.name), {}))

    def _reserve(self, pod: Pod) -> None:
        """Reserve the claims of a pod that another scheduler bound."""
        group = self._group_of(pod)
        names = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
        for entry in pod.spec.resource_claims or ():
            name = entry.resource_claim_name or names.get(entry.name)
            claim = self._cluster.get(CLAIM, pod.namespace, name) if name is not None else None
            if claim is None or claim.allocation is None:
                continue
            by_group = group is not None and claim.is_reserved_for_group_of(pod)
            if by_group or claim.is_reserved_for(pod):
                continue
            users = claim.status.reserved_for or ()
            if len(users) < MAX_CONSUMERS:
                user = consumer_of(pod, group, entry)
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
        if (user.api_group, user.resource) == (SCHEDULING_GROUP, POD_GROUPS):
            group = self._cluster.get(PodGroup.kind, claim.namespace, user.name)
            return group is not None and group.uid == user.uid
        if user.api_group or user.resource != "pods":
            return True
        pod = self._cluster.get("Pod", claim.namespace, user.name)
        return pod is not None and pod.uid == user.uid and not is_done(pod)

    def _is_orphan(self, claim: ResourceClaim) -> bool:
        """Whether the pod or group of a generated claim no longer needs it."""
        for owner in claim.owner_references:
            if owner.controller and owner.kind == PodGroup.kind:
                group = self._cluster.get(PodGroup.kind, claim.namespace, owner.name)
                return group is None or group.uid != owner.uid
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


def _is_for(claim: ResourceClaim, user: Pod | PodGroup) -> bool:
    """Whether the claim was made for the pod or its group, or for the group."""
    if isinstance(user, Pod):
        return claim.is_made_for(user) or claim.is_made_for_group_of(user)
    owner = controller_of(claim.owner_references)
    return owner is not None and owner.uid == user.uid


def make_claim(
    owned_by: Pod | PodGroup, entry: PodResourceClaim, template: ResourceClaimTemplate
) -> ResourceClaim:
    """The claim for an entry of the pod or group; the cluster completes its name."""
    name = owned_by.name
    prefix = f"{name}-{entry.name}-"
    if len(prefix) > MAX_NAME:
        size = len(prefix)
        prefix = (
            name[: len(name) * MAX_NAME // size]
            + "-"
            + entry.name[: len(entry.name) * MAX_NAME // size]
        )
    given = template.spec.metadata
    meta = ObjectMeta(
        generate_name=prefix,
        namespace=owned_by.namespace,
        labels=given.labels,
        annotations={**(given.annotations or {}), POD_CLAIM_NAME: entry.name},
        owner_references=(owner_reference(owned_by),),
    )
    return ResourceClaim(metadata=meta, spec=template.spec.spec)
