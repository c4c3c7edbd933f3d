"""Claim writes: write the devices and users of a pod's claims, and wait until the devices are ready.

Mirrors bindClaim, PreBind, Unreserve and PostFilter of
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Generator
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ...api.dra import (
    FINALIZER,
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumer,
    ResourceClaimStatus,
)
from ...api.pod import Pod
from ...api.pod_status import ExtendedResourceClaimStatus, NodeClaimStatuses
from ...clock import Clock, rfc3339
from ...errors import ApiError, BayplanError, ConflictError, NotFoundError
from ...framework import SUCCESS, Handle, Status, failure
from ...framework.devices import Devices
from ...framework.handle import PodEvent
from ...framework.turns import Turns
from .extended import SPECIAL_NAME, ExtendedRequests, to_create

log = logging.getLogger(__name__)

RETRIES = 5
POLL_S = 5.0
T = TypeVar("T")
Steps = Generator[Any, Any, T]
"""A generator that yields results of a client, finished or awaitable, and is resumed with their values."""


class ClaimBindingError(BayplanError):
    """The devices of a pod cannot be bound; `result` is the label in metrics."""

    def __init__(self, message: str, result: str = "error") -> None:
        super().__init__(message)
        self.result = result


class Given(msgspec.Struct, eq=False):
    """A claim of the pod, and its devices on the node (None if it has them already)."""

    claim: ResourceClaim
    user: ResourceClaimConsumer
    """The consumer that the claim is reserved for: the pod, or its group."""
    allocation: AllocationResult | None = None
    extended: ExtendedRequests | None = None
    """The requests of the claim that stands for extended resources."""
    pending_uid: str = msgspec.field(default="")


class ClaimBinder:
    """Writes claims."""

    def __init__(
        self, handle: Handle, devices: Devices, timeout_s: float, has_group_claims: bool
    ) -> None:
        self._handle = handle
        self._has_group_claims = has_group_claims
        self._devices = devices
        self._timeout_s = timeout_s
        self._turns = Turns()

    def do(self, steps: Steps[Any]) -> None:
        """Run the steps; those with an asynchronous client run while other pods are scheduled."""
        rest = drive(steps, lambda _: SUCCESS)
        if rest is not SUCCESS and self._handle.executor is not None:
            self._handle.executor.run(lambda: rest, lambda status: None)

    # PreBind

    def bind(
        self, pod: Pod, given: list[Given], statuses: NodeClaimStatuses | None = None
    ) -> Steps[None]:
        """Write every claim that the pod does not use yet, and `statuses` into the pod's status."""
        for one in given:
            if not self._is_reserved_for(pod, one.claim):
                yield from self._bind_one(pod, one)
        if statuses is not None:
            yield from self._write_node_claims(pod, statuses)

    def _write_node_claims(self, pod: Pod, claims: NodeClaimStatuses | None) -> Steps[None]:
        """Write the node resources that its devices use up into the pod's status; None to remove them."""
        stored: Pod | None = self._handle.lister.get("Pod", pod.namespace, pod.name)
        if stored is None:
            return
        status = replace(stored.status, node_allocatable_resource_claim_statuses=claims)
        yield self._handle.client.update_status(stored.with_status(status))

    def _is_reserved_for(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Whether the pod may use the claim as it is: for itself, or as a member of its group."""
        by_group = self._has_group_claims and claim.is_reserved_for_group_of(pod)
        return by_group or claim.is_reserved_for(pod)

    def _bind_one(self, pod: Pod, one: Given) -> Steps[None]:
        """Write one claim. The assumed state of the claim ends here, with any result."""
        if one.extended is not None and one.allocation is None:
            return  # the node has all of the resources itself
        try:
            if one.claim.name == SPECIAL_NAME:
                assert one.extended is not None, "only extended resources have a claim without name"
                one.claim = yield from self._create(one.claim, one.extended)
                self._devices.claims.created(one.claim)
            yield from self._write_in_turn(pod, one)
        finally:
            if one.pending_uid:
                self._devices.claims.end(one.pending_uid)
                one.pending_uid = ""
        if one.extended is not None:
            yield from self._tell_pod(pod, one.claim, one.extended)

    def _create(self, claim: ResourceClaim, requests: ExtendedRequests) -> Steps[ResourceClaim]:
        result = "failure"
        try:
            created: ResourceClaim = yield self._handle.client.create(to_create(claim, requests))
            result = "success"
        finally:
            self._handle.metrics.claim_creates.labels(result).count += 1
        return created

    def _write_in_turn(self, pod: Pod, one: Given) -> Steps[None]:
        """Write the claim after all earlier writers in the line, so that none of them causes a conflict."""
        key = one.claim.key
        turn = self._turns.join(key)
        try:
            waits = not turn.is_due
            if waits:
                yield turn.wait()
            one.claim = yield from self._write(pod, one, is_stale=waits)
            self._devices.claims.wrote(one.claim, one.pending_uid)
            one.pending_uid = ""
        finally:
            self._turns.leave(key, turn)

    def _write(self, pod: Pod, one: Given, is_stale: bool) -> Steps[ResourceClaim]:
        """Write the claim with its devices and its user; after a conflict, once more from the current object."""
        claim, allocation = one.claim, one.allocation
        decided = allocation or claim.allocation
        for attempt in range(RETRIES):
            if attempt or is_stale:
                found = self._devices.claims.get(claim.namespace, claim.name)
                if found is None:
                    raise ClaimBindingError(
                        f"get updated claim {claim.key} after conflict: not found"
                    )
                claim = found
                shares = self._handle.group_options.share_pending_allocations
                if shares and _has(claim, allocation):  # another pod of the group wrote it
                    if self._is_reserved_for(pod, claim):
                        return claim
                    allocation = None
            _check(claim, allocation, decided)
            try:
                finalizers = claim.metadata.finalizers or ()
                if allocation is not None and FINALIZER not in finalizers:
                    metadata = replace(claim.metadata, finalizers=(*finalizers, FINALIZER))
                    claim = yield self._handle.client.update(replace(claim, metadata=metadata))
                status = self._status(claim, one.user, allocation)
                written: ResourceClaim = yield self._handle.client.update_status(
                    replace(claim, status=status)
                )
            except ConflictError as error:
                conflict = error
                continue
            return written
        what = "reservation" if allocation is None else "allocation and reservation"
        raise ClaimBindingError(f"add {what} to claim {claim.key}: {conflict}")

    def _status(
        self, claim: ResourceClaim, user: ResourceClaimConsumer, allocation: AllocationResult | None
    ) -> ResourceClaimStatus:
        has = claim.allocation if allocation is None else allocation
        assert has is not None, "checked before"
        if has.allocation_timestamp is None and self._devices.features.binding_conditions:
            has = replace(has, allocation_timestamp=rfc3339(self._handle.clock.now()))
        users = (*(claim.status.reserved_for or ()), user)
        return replace(claim.status, allocation=has, reserved_for=users)

    def _tell_pod(self, pod: Pod, claim: ResourceClaim, requests: ExtendedRequests) -> Steps[None]:
        """Write the claim for the pod's extended resources into the pod's status."""
        if not requests.mappings:  # the node has the resources itself; kube-scheduler fails here
            raise ClaimBindingError(
                f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
            )
        stored: Pod | None = self._handle.lister.get("Pod", pod.namespace, pod.name)
        if stored is None:
            return
        said = ExtendedResourceClaimStatus(
            request_mappings=requests.mappings, resource_claim_name=claim.name
        )
        status = replace(stored.status, extended_resource_claim_status=said)
        yield self._handle.client.update_status(stored.with_status(status))

    # Until the devices are ready

    def waits(self, given: list[Given]) -> bool:
        """Whether the binding has to wait for a device to become ready."""
        if not self._devices.features.binding_conditions:
            return False
        return any(result.binding_conditions for one in given for result in _results(one.claim))

    async def wait(self, pod: Pod, given: list[Given]) -> Status:
        """Wait until all devices are ready; raises ClaimBindingError when that fails or takes too long."""
        self._handle.client.record_event(_waiting_event(pod, self._handle.profile_name))
        now = self._handle.clock.monotonic
        started, result = now(), "error"
        try:
            await self._until_ready(given, started + self._timeout_s)
            result = "success"
        except ClaimBindingError as error:
            result = error.result
            raise
        finally:
            self._note_wait(given, result, now() - started)
        return SUCCESS

    def _note_wait(self, given: list[Given], result: str, seconds: float) -> None:
        metrics, profile = self._handle.metrics, self._handle.profile_name
        for device in (device for one in given for device in _results(one.claim)):
            metrics.device_wait.labels(profile, device.driver, result).observe(seconds)
            if device.binding_conditions:
                metrics.device_allocations.labels(profile, device.driver, result).count += 1

    async def _until_ready(self, given: list[Given], deadline: float) -> None:
        now = self._handle.clock.monotonic
        while True:
            if self._are_ready(given):
                return
            if now() >= deadline:
                text = "device binding timeout: context deadline exceeded"
                raise ClaimBindingError(text, "timeout")
            await self._handle.sleep(min(POLL_S, max(deadline - now(), 0)))

    def _are_ready(self, given: list[Given]) -> bool:
        for one in given:
            claim = self._devices.claims.get(one.claim.namespace, one.claim.name)
            if claim is None:
                raise ClaimBindingError(f'could not find ResourceClaim "{one.claim.key}"')
            one.claim = claim
            if not is_ready(claim):
                if is_late(claim, self._handle.clock, self._timeout_s):
                    raise ClaimBindingError(
                        f"device binding timeout: claim={claim.name}", "timeout"
                    )
                return False
        return True

    # Undoing

    def undo(self, pod: Pod, given: list[Given], has_written_pod: bool = False) -> Steps[None]:
        """Release assumed devices, and remove the pod from the users. A claim that cannot be written is not changed."""
        for one in given:
            if one.pending_uid:
                self._devices.claims.end(one.pending_uid)
        for one in given:
            try:
                yield from self._undo_one(pod, one)
            except ApiError as error:
                log.warning("claim %s: cannot be unreserved: %s", one.claim.key, error)
        if has_written_pod:
            try:
                yield from self._write_node_claims(pod, None)
            except ApiError as error:
                log.warning("pod %s: cannot write its status: %s", pod.key, error)

    def _undo_one(self, pod: Pod, one: Given) -> Steps[None]:
        claim = one.claim
        if one.extended is not None:
            if claim.name != SPECIAL_NAME:
                yield from self.remove(claim)
        elif claim.allocation is not None and claim.is_reserved_for(pod):
            yield from self.release(claim, pod.uid)

    def release(self, claim: ResourceClaim, uid: str) -> Steps[None]:
        """No longer reserve the claim for the pod or group with this uid."""
        left = tuple(user for user in claim.status.reserved_for or () if user.uid != uid)
        status = replace(claim.status, reserved_for=left or None)
        written = yield self._handle.client.update_status(replace(claim, status=status))
        self._devices.claims.wrote(written)

    def deallocate(self, claim: ResourceClaim) -> Steps[None]:
        """Deallocate an unused claim."""
        written = yield self._handle.client.update_status(
            replace(claim, status=ResourceClaimStatus())
        )
        self._devices.claims.wrote(written)

    def remove(self, claim: ResourceClaim) -> Steps[None]:
        """Delete the claim for extended resources; no error if it was deleted already."""
        try:
            if FINALIZER in (claim.metadata.finalizers or ()):
                finalizers = tuple(f for f in claim.metadata.finalizers or () if f != FINALIZER)
                meta = replace(claim.metadata, finalizers=finalizers or None)
                claim = yield self._handle.client.update(replace(claim, metadata=meta))
            yield self._handle.client.delete(claim)
        except NotFoundError:
            pass
        self._devices.claims.deleted(claim)


def drive(steps: Steps[T], finish: Callable[[T], Any] = lambda value: value) -> Any:
    """Run the steps at once; if a client is asynchronous, return an awaitable that runs the rest."""
    try:
        answer = next(steps)
        while not hasattr(answer, "__await__"):
            answer = steps.send(answer)
    except StopIteration as stop:
        return finish(stop.value)
    return _drive_later(steps, answer, finish)


async def _drive_later(steps: Steps[T], answer: Any, finish: Callable[[T], Any]) -> Any:
    try:
        while True:
            try:
                value = await answer if inspect.isawaitable(answer) else answer
            except BayplanError as error:
                answer = steps.throw(error)
            else:
                answer = steps.send(value)
    except StopIteration as stop:
        finished = finish(stop.value)
        return await finished if inspect.isawaitable(finished) else finished
    finally:
        steps.close()  # the devices of a cancelled pod are released now, not by the garbage collector


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all devices of the claim are ready; raises ClaimBindingError if one cannot become ready."""
    if claim.allocation is None:
        return False
    for result in _results(claim):
        if not result.binding_conditions:
            continue
        device = result.driver, result.pool, result.device
        given = claim.status.devices or ()
        said = next((d for d in given if (d.driver, d.pool, d.device) == device), None)
        if said is None:
            return False
        conditions = {c.get("type"): c for c in said.conditions or ()}
        for name in result.binding_failure_conditions or ():
            found = conditions.get(name)
            if found is not None and found.get("status") == "True":
                reason, message = found.get("reason", ""), found.get("message", "")
                text = f'claim={claim.name}, reason={reason}, message="{message}"'
                raise ClaimBindingError(f"device binding failed: {text}", "failure")
        if any(conditions.get(n, {}).get("status") != "True" for n in result.binding_conditions):
            return False
    return True


def is_late(claim: ResourceClaim, clock: Clock, timeout_s: float) -> bool:
    """Whether the devices of the claim should have been ready by now."""
    allocation = claim.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    if not any(result.binding_conditions is not None for result in _results(claim)):
        return False
    since = parse_time(allocation.allocation_timestamp)
    return since is not None and clock.now().timestamp() > since + timeout_s


def parse_time(text: str) -> float | None:
    """The seconds since 1970 of a timestamp; None when it is invalid."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.allocation
    return () if allocation is None else allocation.devices.results or ()


def _check(
    claim: ResourceClaim, allocation: AllocationResult | None, decided: AllocationResult | None
) -> None:
    """Raise ClaimBindingError if the claim changed since the devices were `decided`; `allocation` is to be written.

    kube-scheduler does not compare devices that the claim had before: after a conflict the pod may run on a node
    without them, if they were freed for another pod and allocated on another node.
    """
    problem = None
    if claim.is_terminating:
        problem = "got deleted"
    elif claim.allocation is None:
        problem = "got deallocated elsewhere" if allocation is None else None
    elif allocation is not None or not _has(claim, decided):
        problem = "got allocated elsewhere"
    if problem is not None:
        raise ClaimBindingError(f"claim {claim.key} {problem} in the meantime")


def _has(claim: ResourceClaim, allocation: AllocationResult | None) -> bool:
    """Whether the claim has the devices of an allocation."""
    has = claim.allocation
    return has is not None and allocation is not None and has.devices == allocation.devices


def _waiting_event(pod: Pod, profile: str) -> PodEvent:
    note = f"waiting for binding conditions for device on node {pod.node_name}"
    return PodEvent(pod, "Normal", "BindingConditionsPending", "Scheduling", note, profile)


def is_unready(claim: ResourceClaim, clock: Clock, timeout_s: float) -> bool:
    """True if the devices of the claim will not be ready in time."""
    try:
        return not is_ready(claim) and is_late(claim, clock, timeout_s)
    except ClaimBindingError:
        return True


async def or_failure(answer: Awaitable[Status]) -> Status:
    """Turn an error of `answer` into a failed status."""
    try:
        return await answer
    except BayplanError as error:
        return failure(error)
