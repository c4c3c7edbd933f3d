"""DynamicResources: the claims of a pod must have, or be given, devices that the node can reach.

Mirrors pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go. `plans.py` says what a claim asks for,
`search.py` finds devices on one node, `answers.py` keeps what was found for all of them, `binding.py` writes it down;
`extended.py` is about extended resources that devices stand in for. What is known of the devices of the cluster is in
`framework/devices`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from ...api.dra import ClaimNotReadyError, ResourceClaim
from ...api.pod import Pod, PodSpec
from ...config.plugin_args import DynamicResourcesArgs
from ...errors import BayplanError
from ...framework import (
    GROUPS,
    NOT_SETTLED,
    SKIP,
    SUCCESS,
    CycleState,
    Diagnosis,
    FilterPlugin,
    Handle,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
    Settled,
    Status,
    Verdict,
    failure,
    scale_to_max,
    unresolvable,
    unschedulable,
)
from ...framework.devices import Devices
from ...framework.events import EventWithHint
from ...table import Bools, Ints, NodeTable, Rows, RowValues
from ...table.node_selection import match_selector
from .answers import FITS, REASONS, Codes, KeptAnswers, Wanted, rows_in
from .binding import ClaimBinder, ClaimBindingError, Given, drive, is_late, is_ready
from .extended import SPECIAL_NAME, make_claim
from .hints import ClaimHints
from .plans import AllocationError, NoSuchClassError, plan_claim
from .pod_claims import pod_claims
from .results import make_allocation, score_allocated

STATE = "DynamicResources"
WITHOUT_DEVICES = Settled(pre_filter=SKIP, commits=False)
NOT_AVAILABLE = "resourceclaim not available on the node"
STALE_CLAIM = "cannot schedule extended resource claim"
TRIES_PER_SECOND = 500_000
"""How far a search may go in a second that the configuration gives it; a count, so that a run can be repeated."""
MAX_CELLS = 16_000_000
"""Answers kept at most (kinds of pods times rows)."""


@dataclass(slots=True)
class ClaimState:
    """The pod's claims in an attempt; the one for extended resources comes last."""

    claims: list[ResourceClaim] = field(default_factory=list)
    extended: ResourceClaim | None = None
    answers: KeptAnswers | None = None
    """None when there is nothing to allocate."""
    keys: list[str] = field(default_factory=list)
    unavailable: set[int] = field(default_factory=set)
    """Allocated claims, by position, that some node cannot use."""
    given: list[Given] = field(default_factory=list)

    @property
    def is_stale(self) -> bool:
        """Whether the claim for extended resources is left from an earlier attempt."""
        return self.extended is not None and self.extended.name != SPECIAL_NAME


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Devices are found for all nodes; for the node that is chosen they are found once more and assumed."""

    name = "DynamicResources"
    scope = GROUPS
    acts_on_placements = (
        False  # for pods with claims only, for which Reserve has something to do, too
    )
    allow_parallel = True
    may_block = False

    def __init__(self, filter_timeout_s: float = 10, binding_timeout_s: float = 600) -> None:
        self._tries = int(filter_timeout_s * TRIES_PER_SECOND) or None
        self._timeout_s = binding_timeout_s
        self._hints = ClaimHints(self._claims)
        self._answers: dict[object, KeptAnswers] = {}  # in order of last use
        self._devices: Devices | None = None
        self._kept_for: Handle | None = None
        self._class_version = -1

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or DynamicResourcesArgs()
        is_limited = handle.feature_gates.enabled("DRASchedulerFilterTimeout")
        filter_timeout_s = (args.filter_timeout_s or 0) if is_limited else 0
        plugin = cls(filter_timeout_s, args.binding_timeout_s or 0)
        plugin.handle = handle
        return plugin

    def events_to_register(self) -> Sequence[EventWithHint]:
        return self._hints.events()

    def _claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        return pod_claims(pod, self._keep().claims.get)

    def _keep(self) -> Devices:
        """The devices of the cluster; answers about another cluster, or other classes, are forgotten."""
        devices = self._devices
        if devices is None or self._kept_for is not self.handle:
            devices, self._kept_for = Devices.of(self.handle), self.handle
            self._devices, self._class_version = devices, -1
            self._binder = ClaimBinder(self.handle, devices, self._timeout_s)
        if self._class_version != devices.classes.version:
            self._class_version = devices.classes.version
            self._answers.clear()
        return devices

    def spec_key(self, spec: PodSpec) -> Hashable:
        return bool(spec.resource_claims), spec.device_resources

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues] | None:
        spec = pod.spec
        devices = self._keep()
        devices.follow()
        has_devices = spec.resource_claims or devices.classes.backed(spec.device_resources)
        return None if has_devices else ()

    def settled(self, spec: PodSpec) -> Settled:
        return NOT_SETTLED if _may_use_devices(spec) else WITHOUT_DEVICES

    # PreEnqueue

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.spec.resource_claims:
            return SUCCESS
        self._hints.saw(pod)
        try:
            for _ in self._claims(pod):
                pass
        except ClaimNotReadyError as error:
            return unresolvable(str(error))
        return SUCCESS

    # PreFilter

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        if not _may_use_devices(pod.spec):
            return SKIP
        devices = self._keep()
        devices.follow()
        devices.inventory.follow_nodes()
        devices = self._keep()
        known = ClaimState()
        state.write(STATE, known)  # empty until all is well
        try:
            claims = list(self._claims(pod))
            extended = self._extended_claim(pod, devices)
            found = ClaimState(claims, extended)
            if extended is not None:
                claims.append(extended)
            if not claims:
                return SKIP
            refusal = self._prepare(found, pod, devices)
        except (ClaimNotReadyError, NoSuchClassError) as error:
            return unresolvable(str(error))
        except AllocationError as error:
            return failure(error)
        if refusal is not None:
            return refusal
        state.write(STATE, found)
        return SUCCESS

    def _extended_claim(self, pod: Pod, devices: Devices) -> ResourceClaim | None:
        """The claim that stands for extended resources; from an earlier attempt, or a new one."""
        if not devices.classes.backed(pod.spec.device_resources):
            return None
        return devices.claims.for_resources_of(pod.uid) or make_claim(pod)

    def _prepare(self, found: ClaimState, pod: Pod, devices: Devices) -> Status | None:
        """Sort out what is to be allocated; a status when the pod has to wait."""
        wanted = [claim for claim in found.claims if claim.allocation is None]
        for claim in wanted:
            if devices.claims.pending(claim.uid) is not None:
                text = f"resource claim {claim.key} is in the process of being allocated"
                return unresolvable(text)
        if wanted and not found.is_stale:
            found.answers = self._answers_for(wanted, found.extended, pod, devices)
            found.keys = [claim.key for claim in wanted]
        return None

    def _answers_for(
        self,
        wanted: list[ResourceClaim],
        extended: ResourceClaim | None,
        pod: Pod,
        devices: Devices,
    ) -> KeptAnswers:
        own = [claim for claim in wanted if claim is not extended]
        spec = pod.spec if extended is not None else None
        key = (spec, *[claim.spec.key for claim in own])
        answers = self._answers.pop(key, None)
        if answers is None:
            plans = [plan_claim(c.spec.devices, devices.classes, c.key) for c in own]
            names = pod.spec.device_resources if spec is not None else ()
            resources = {name: devices.classes.for_resource(name) is not None for name in names}
            answers = KeptAnswers(Wanted(plans, devices, spec, resources), devices, self._tries)
            while self._answers and (len(self._answers) + 1) * len(devices.table) > MAX_CELLS:
                del self._answers[next(iter(self._answers))]
        self._answers[key] = answers
        return answers

    # Filter

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        known: ClaimState | None = state.get(STATE)
        if known is None or not known.claims:
            return verdict
        if known.is_stale:
            verdict.reject(np.ones(len(verdict), dtype=np.bool_), STALE_CLAIM, unresolvable=True)
            return verdict
        codes: Codes | None = None
        if known.answers is not None:
            known.answers.follow()
            try:
                codes = known.answers.judge(rows_in(self._keep(), table, rows), known.keys)
            except AllocationError as error:
                verdict.error = failure(error)
                return verdict
            if codes.any():
                for code, reason in REASONS.items():
                    verdict.reject(codes == code, reason, unresolvable=True)
        for position, claim in enumerate(known.claims):
            if claim.allocation is not None:
                missed = ~self._reaches(claim, table, rows)
                if codes is not None:
                    missed &= codes == FITS  # where devices are lacking, nothing else is looked at
                if missed.any():
                    known.unavailable.add(position)
                    verdict.reject(missed, NOT_AVAILABLE, unresolvable=True)
        return verdict

    def _reaches(self, claim: ResourceClaim, table: NodeTable, rows: Rows) -> Bools:
        """bool per row: the devices of the claim can be used from there, and are or will be ready."""
        allocation = claim.allocation
        assert allocation is not None, "only claims that have devices are asked about"
        everywhere: Bools = np.ones(table.count(rows), dtype=np.bool_)
        if self._keep().features.binding_conditions and self._is_unready(claim):
            return ~everywhere
        if allocation.node_selector is None:
            return everywhere
        return match_selector(table, allocation.node_selector, rows)

    def _is_unready(self, claim: ResourceClaim) -> bool:
        """Whether the devices of the claim will not be ready in time."""
        try:
            return not is_ready(claim) and is_late(claim, self.handle.clock, self._timeout_s)
        except ClaimBindingError:
            return True

    # PostFilter

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        if self.name in state.unreached:
            return PostFilterResult(), failure("not found")
        known: ClaimState | None = state.get(STATE)
        if known is None or not known.claims:
            return PostFilterResult(), unschedulable("no new claims to deallocate")
        return PostFilterResult(), self._give_up(known, pod)

    def _give_up(self, known: ClaimState, pod: Pod) -> Status:
        """Give back one claim that keeps the pod from its node; it may get other devices then."""
        binder = self._binder
        try:
            for position in sorted(known.unavailable):
                claim = known.claims[position]
                users = claim.status.reserved_for or ()
                is_used = len(users) > 1 or any(user.uid != pod.uid for user in users)
                if claim is not known.extended and not is_used:
                    self._do(drive(binder.deallocate(claim)))
                    return unschedulable("deallocation of ResourceClaim completed")
            if known.is_stale and known.extended is not None:
                self._do(drive(binder.remove(known.extended)))
                return unschedulable("deletion of ResourceClaim completed")
        except BayplanError as error:
            return failure(error)
        return unschedulable("still not schedulable")

    def _do(self, rest: object) -> None:
        """Let what a client still has to do be done beside the scheduling of other pods."""
        if rest is None or self.handle.executor is None:
            return

        async def finish() -> Status:
            try:
                await cast("Awaitable[None]", rest)
            except BayplanError as error:
                return failure(error)
            return SUCCESS

        self.handle.executor.run(finish, lambda status: None)

    # Score

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        known: ClaimState | None = state.get(STATE)
        if known is None or known.answers is None:
            return np.zeros(table.count(rows), dtype=np.int64)
        if not self._keep().features.prioritized_list:
            return np.zeros(table.count(rows), dtype=np.int64)
        scores = known.answers.scores(rows_in(self._keep(), table, rows))
        had = sum(score_allocated(claim) for claim in known.claims if claim.allocation is not None)
        return scores + had if had else scores

    def normalize(self, scores: Ints) -> Ints:
        return scale_to_max(scores)

    # Reserve

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        known: ClaimState | None = state.get(STATE)
        if known is None or not known.claims:
            return SUCCESS
        known.given = [Given(claim) for claim in known.claims]
        if known.answers is None:
            return SUCCESS
        devices = self._keep()
        row = devices.table.row_of[node_name]
        try:
            taken = known.answers.find(row, known.keys)
        except AllocationError as error:
            return failure(error)
        if taken is None:
            return failure("claim allocation not found for node")
        extended = known.answers.wanted.requests_at(row)
        plans = list(known.answers.wanted.claims)
        to_allocate = [one for one in known.given if one.claim.allocation is None]
        if extended is not None and not isinstance(extended, str):
            to_allocate[-1].extended = extended[0]
            plans.append(extended[1])
        elif known.extended is not None:
            known.given = [one for one in known.given if one.claim is not known.extended]
            to_allocate = to_allocate[:-1]
        for one, plan, found in zip(to_allocate, plans, taken, strict=True):
            one.allocation = make_allocation(plan, found, node_name, self.handle.random)
            one.pending_uid = one.claim.uid
            devices.claims.begin(one.claim, one.allocation)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        known: ClaimState | None = state.get(STATE)
        if known is not None and known.given:
            self._do(drive(self._binder.undo(pod, known.given)))
            known.given = []

    # PreBind

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        known: ClaimState | None = state.get(STATE)
        return SUCCESS if known is not None and known.given else SKIP

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        known: ClaimState | None = state.get(STATE)
        if known is None or not known.given:
            return SUCCESS
        given, binder = known.given, self._binder

        def finish(_: None) -> Status | Awaitable[Status]:
            return self._wait(binder, pod, given) if binder.waits(given) else SUCCESS

        try:
            answer = drive(binder.bind(pod, given), finish)
        except BayplanError as error:
            return failure(error)
        return answer if isinstance(answer, Status) else _or_failure(answer)

    async def _wait(self, binder: ClaimBinder, pod: Pod, given: list[Given]) -> Status:
        await binder.wait(pod, given)
        return SUCCESS


async def _or_failure(answer: Awaitable[Status]) -> Status:
    try:
        return await answer
    except BayplanError as error:
        return failure(error)


def _may_use_devices(spec: PodSpec) -> bool:
    """Whether pods of the spec may be given devices."""
    return bool(spec.resource_claims or spec.device_resources)
