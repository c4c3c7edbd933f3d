"""DynamicResources: the claims of a pod must have, or be given, devices that the node can reach.

Mirrors pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go. `claim_plans.py` has the requests of a
claim, `search.py` finds devices on one node, `node_answers.py` caches the results for all of them, `claim_writes.py`
writes them; `extended.py` is about extended resources that devices stand in for, `pod_claims.py` about claims that
the pods of a group share. The state of the cluster's devices is in `framework/devices`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection, Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from ...amounts.domain_rules import NO_DOMAIN_RULES, DomainRules
from ...api.dra import AllocationResult, ClaimNotReadyError, DeviceClass, ResourceClaim
from ...api.pod import Pod, PodSpec
from ...api.pod_groups import PodGroup
from ...config.plugin_args import DynamicResourcesArgs
from ...errors import BayplanError
from ...framework import (
    GROUPS,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    PodGroupPostFilterPlugin,
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
from ...framework.diagnosis import Diagnosis
from ...framework.events import EventWithHint
from ...framework.interface import NOT_SETTLED
from ...framework.placement import GroupTrial, TryGroup
from ...stamped_cache import Budget, BudgetedCache
from ...table import Bools, Ints, NodeTable, Rows
from ...table.node_selection import match_selector
from ...table.what_if import rows_in
from .allocation_results import has_alternatives, make_allocation, score_allocated
from .claim_plans import AllocationError, NoSuchClassError, plan_claim
from .claim_state import GROUP_DONE, ClaimState, Giving
from .claim_writes import ClaimBinder, Given, drive, is_unready, or_failure
from .extended import make_claim
from .hints import ClaimHints
from .node_answers import REASONS, CachedAnswers, Wanted
from .node_resources import NodeResources
from .pod_claims import consumers, pending_in, pod_claims

log = logging.getLogger(__name__)

STATE = "DynamicResources"
NO_CLAIMS = ClaimState()
WITHOUT_DEVICES = Settled(pre_filter=SKIP, commits=False)
PREPARES_ONLY = Settled(commits=False)
"""For pods without devices at present: PreFilter may refuse them, or a class may be added for their resources."""
NOT_AVAILABLE = "resourceclaim not available on the node"
STALE_CLAIM = "cannot schedule extended resource claim"
TRIES_PER_SECOND = 500_000
"""Steps of a search per second of the configured time limit; a count, so that a run can be repeated."""
MAX_CELLS = 16_000_000
"""Answers kept at most (kinds of pods times rows)."""


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PodGroupPostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Devices are found for all nodes; for the node that is chosen they are found once more and assumed."""

    name = "DynamicResources"
    scope = GROUPS
    allow_parallel = True
    _is_enabled = True
    """Feature gate DynamicResourceAllocation; without it the plugin does nothing."""
    _has_group_claims = False
    """Feature gate DRAWorkloadResourceClaims: claims can belong to pod groups."""

    def __init__(self, filter_timeout_s: float = 10, binding_timeout_s: float = 600) -> None:
        self._tells_claims_kept = True
        """Fact of the release."""
        self._tries = int(filter_timeout_s * TRIES_PER_SECOND) or None
        self._timeout_s = binding_timeout_s
        self._hints = ClaimHints(self._claims)
        self._budget = Budget(MAX_CELLS)
        self._answers: BudgetedCache[Hashable, CachedAnswers] = BudgetedCache(
            "device answers", self._budget
        )
        self._devices: Devices | None = None
        self._kept_for: Handle | None = None
        self._node_resources: NodeResources | None = None
        self._class_version = -1

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or DynamicResourcesArgs()
        is_limited = handle.feature_gates.enabled("DRASchedulerFilterTimeout")
        filter_timeout_s = (args.filter_timeout_s or 0) if is_limited else 0
        plugin = cls(filter_timeout_s, args.binding_timeout_s or 0)
        plugin.handle = handle
        plugin._hints.wakes_on_delete = handle.release.claim_delete_event
        plugin._tells_claims_kept = handle.release.tells_claims_kept
        plugin.helps_groups = handle.release.groups_are_entries
        plugin._is_enabled = handle.feature_gates.enabled("DynamicResourceAllocation")
        plugin._has_group_claims = handle.feature_gates.enabled("DRAWorkloadResourceClaims")
        return plugin

    def events_to_register(self) -> Sequence[EventWithHint]:
        return self._hints.events() if self._is_enabled else ()

    def _claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        return (claim for _, claim in self._named_claims(pod))

    def _named_claims(self, pod: Pod) -> Iterator[tuple[str, ResourceClaim]]:
        get, word = self._keep().claims.get, self.handle.release.pod_word
        return pod_claims(pod, get, of_groups=self._has_group_claims, word=word)

    def _keep(self) -> Devices:
        """The devices of the cluster."""
        devices = self._devices
        if devices is None or self._kept_for is not self.handle:
            devices, self._kept_for = Devices.of(self.handle), self.handle
            self._devices, self._class_version = devices, -1
            self._binder = ClaimBinder(
                self.handle, devices, self._timeout_s, self._has_group_claims
            )
            self._node_resources = (
                NodeResources(devices) if devices.features.node_resources else None
            )
        return devices

    def _follow(self) -> Devices:
        """Update the devices of the cluster; answers about another cluster, or other classes, are dropped."""
        devices = self._keep()
        devices.follow()
        if self._class_version != devices.classes.version:
            self._class_version = devices.classes.version
            self._budget.drop()
        return devices

    def spec_key(self, spec: PodSpec) -> Hashable:
        return bool(spec.resource_claims), spec.device_resources

    def cluster_key(self, table: NodeTable) -> Hashable:
        return self.handle.lister.version_of(DeviceClass.kind)

    def row_groups(self, pod: Pod, table: NodeTable) -> DomainRules | None:
        return None if self._uses_devices(pod.spec) else NO_DOMAIN_RULES

    def _uses_devices(self, spec: PodSpec) -> bool:
        """Whether pods of the spec have claims, or resources that a class of devices stands for."""
        if spec.resource_claims or not self._is_enabled:
            return self._is_enabled
        names = spec.device_resources
        return bool(names) and bool(self._follow().classes.backed(names))

    def settled(self, spec: PodSpec) -> Settled:
        if self._uses_devices(spec):
            return NOT_SETTLED
        is_unsettled = self._may_use_devices(spec) or self._needs_group(spec)
        return PREPARES_ONLY if is_unsettled else WITHOUT_DEVICES

    def _may_use_devices(self, spec: PodSpec) -> bool:
        """Whether pods of the spec may be given devices."""
        return self._is_enabled and bool(spec.resource_claims or spec.device_resources)

    def _needs_group(self, spec: PodSpec) -> bool:
        """Whether pods of the spec are refused while their pod group is not there."""
        return self._has_group_claims and spec.scheduling_group is not None

    # PreEnqueue

    def pre_enqueue(self, pod: Pod) -> Status:
        if not self._is_enabled or not pod.spec.resource_claims:
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
        if not self._may_use_devices(pod.spec) and not self._needs_group(pod.spec):
            return SKIP
        devices = self._follow()
        devices.inventory.follow_nodes()
        state.write(STATE, NO_CLAIMS)  # replaced on success
        state.node_claims = {} if self._node_resources is not None else None
        try:
            named = list(self._named_claims(pod))
            claims = [claim for _, claim in named]
            extended = self._extended_claim(pod, devices)
            found = ClaimState(claims, extended, names=[name for name, _ in named])
            if self._has_group_claims:
                users = consumers(pod, self.handle.lister)
                found.users = [users[name] for name, _ in named]
            if extended is not None:
                claims.append(extended)
            if not claims:
                return SKIP
            refusal = self._prepare(state, found, pod, devices)
        except (ClaimNotReadyError, NoSuchClassError) as error:
            return unresolvable(str(error))
        except AllocationError as error:
            return failure(error)
        if refusal is not None:
            return refusal
        state.write(STATE, found)
        if not has_alternatives(claims):
            state.skip_score.add(self.name)
        return SUCCESS

    def _extended_claim(self, pod: Pod, devices: Devices) -> ResourceClaim | None:
        """The claim that stands for extended resources; from an earlier attempt, or a new one."""
        spec = pod.spec.template or pod.spec  # pods that name other claims share it
        if not devices.classes.backed(spec.device_resources):
            return None
        return devices.claims.for_resources_of(pod.uid) or make_claim(pod)

    def _prepare(
        self, state: CycleState, found: ClaimState, pod: Pod, devices: Devices
    ) -> Status | None:
        """Sort out the claims to allocate; a status if the pod has to wait."""
        wanted, by_group = [], pending_in(state)
        for position, claim in enumerate(found.claims):
            if claim.allocation is not None:
                continue
            pending = devices.claims.pending(claim.uid)
            if pending is None:
                wanted.append(claim)
            elif claim.uid in by_group:
                found.pending[position] = pending
            else:
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
    ) -> CachedAnswers:
        own = [claim for claim in wanted if claim is not extended]
        spec = pod.spec if extended is not None else None
        key = (spec, *[claim.spec.key for claim in own])
        answers = self._answers.get(key)
        if answers is None:
            plans = [plan_claim(c.spec.devices, devices.classes, c.key) for c in own]
            names = pod.spec.device_resources if spec is not None else ()
            resources = {name: devices.classes.for_resource(name) is not None for name in names}
            made = CachedAnswers(Wanted(plans, devices, spec, resources), devices, self._tries)
            answers = self._answers.put(key, made, len(devices.table))
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
        if self._node_resources is not None:
            self._node_resources.refuse_shared(known, pod, table, rows, verdict)
        if known.answers is not None:
            try:
                self._find_devices(state, known, pod, table, rows, verdict)
            except AllocationError as error:
                verdict.error = failure(error)
                return verdict
        fixed = [i for i in range(len(known.claims)) if self._is_fixed(known, i)]
        if not fixed:
            return verdict
        may_fit = verdict.feasible  # where devices are lacking, nothing else is checked
        for position in fixed:
            missed = ~self._reaches(known, position, table, rows) & may_fit
            if missed.any():
                known.unavailable.add(position)
                verdict.reject(missed, NOT_AVAILABLE, unresolvable=True)
        return verdict

    def _find_devices(
        self,
        state: CycleState,
        known: ClaimState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        verdict: Verdict,
    ) -> None:
        """Refuse the nodes without devices for the claims, and without the resources that the devices use up."""
        assert known.answers is not None, "there is something to allocate"
        known.answers.follow()
        codes = known.answers.judge(rows_in(self._keep().table, table, rows), known.keys)
        if np.count_nonzero(codes):
            codes = codes * verdict.feasible  # FITS where the node is refused already
            for code, reason in REASONS.items():
                verdict.reject(codes == code, reason, unresolvable=True)
        if self._node_resources is not None:
            self._node_resources.judge(state, known, pod, table, rows, verdict)

    def _is_fixed(self, known: ClaimState, position: int) -> bool:
        """Whether the devices of a claim limit the nodes. kube-scheduler v1.36 ignores those that are pending."""
        if position in known.pending:
            return self.handle.group_options.share_pending_allocations
        return known.claims[position].allocation is not None

    def _reaches(self, known: ClaimState, position: int, table: NodeTable, rows: Rows) -> Bools:
        """bool per row: the devices of the claim can be used from there, and are or will be ready."""
        claim, pending = known.claims[position], known.pending.get(position)
        allocation = pending or claim.allocation
        assert allocation is not None, "called for claims with devices only"
        everywhere: Bools = np.ones(table.count(rows), dtype=np.bool_)
        has_conditions = pending is None and self._keep().features.binding_conditions
        if has_conditions and is_unready(claim, self.handle.clock, self._timeout_s):
            return ~everywhere
        if allocation.node_selector is None:
            return everywhere
        return match_selector(table, allocation.node_selector, rows)

    # PostFilter

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        if not self._is_enabled:
            return PostFilterResult(), self._refused("plugin disabled")
        if self.name in state.unreached:
            return PostFilterResult(), failure("not found")
        known: ClaimState | None = state.get(STATE)
        if known is None or not known.claims:
            return PostFilterResult(), self._refused("no new claims to deallocate")
        giver = Giving(self.handle, self._binder)
        try:
            given = giver.give_back(known, pod, self._has_group_claims)
        except BayplanError as error:
            return PostFilterResult(), failure(error)
        return PostFilterResult(), self._refused(
            "still not schedulable"
        ) if given is None else given

    def post_filter_group(
        self, group: PodGroup, pods: Sequence[Pod], trial: GroupTrial, try_group: TryGroup
    ) -> tuple[Sequence[Pod], Status]:
        """Release claims of the members that were tried, as for single pods."""
        has_placements = self.handle.feature_gates.enabled("TopologyAwareWorkloadScheduling")
        if not self._is_enabled or (has_placements and group.spec.scheduling_constraints):
            return (), unschedulable()
        states = try_group.states().items()
        reached = {key: state for key, state in states if self.name not in state.unreached}
        if not reached:
            return (), failure("not found")
        known = {key: found for key, state in reached.items() if (found := state.get(STATE))}
        if any(found.claims for found in known.values()):
            return (), Giving(self.handle, self._binder).give_back_of_group(pods, known)
        return (), unschedulable(GROUP_DONE)

    def _refused(self, reason: str) -> Status:
        """The status if no claim is deallocated; whether it has a reason depends on the release."""
        return unschedulable(reason) if self._tells_claims_kept else unschedulable()

    # Score

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        known: ClaimState | None = state.get(STATE)
        none: Ints = np.zeros(table.count(rows), dtype=np.int64)
        if known is None or (known.answers is None and not known.pending):
            return none
        if not self._keep().features.prioritized_list:
            return none
        scores = none
        if known.answers is not None:
            scores = known.answers.scores(rows_in(self._keep().table, table, rows))
        had = sum(
            score_allocated(claim, claim.allocation or known.pending.get(position))
            for position, claim in enumerate(known.claims)
        )
        return scores + had if had else scores

    def normalize(self, scores: Ints) -> Ints:
        return scale_to_max(scores)

    # Reserve

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        known: ClaimState | None = state.get(STATE)
        if known is None or not known.claims:
            return SUCCESS
        claims = zip(known.claims, known.users_for(pod), strict=True)
        known.given = [Given(claim, user) for claim, user in claims]
        shared: list[Given] = []
        for position, allocation in known.pending.items():
            shared.append(known.given[position])
            self._take(state, known.given[position], allocation)
        return self._allocate(state, known, node_name, shared)

    def _take(self, state: CycleState, one: Given, allocation: AllocationResult) -> None:
        """Assume the allocation of a claim: the one made by another pod of the group, or else `allocation`."""
        one.allocation = self._keep().claims.begin(one.claim, allocation)
        one.pending_uid = one.claim.uid
        if state.group is not None:
            pending_in(state).add(one.pending_uid)

    def _allocate(
        self, state: CycleState, known: ClaimState, node_name: str, shared: Collection[Given]
    ) -> Status:
        """Give devices to the claims that have none; those that are `shared` with another pod are about to get them."""
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
        to_allocate = [
            one for one in known.given if one.claim.status.allocation is None and one not in shared
        ]
        if extended is not None and not isinstance(extended, str):
            to_allocate[-1].extended = extended[0]
            plans.append(extended[1])
        elif known.extended is not None:
            known.given = [one for one in known.given if one.claim is not known.extended]
            to_allocate = to_allocate[:-1]
        for one, plan, found in zip(to_allocate, plans, taken, strict=True):
            made = make_allocation(
                plan, found, node_name, self.handle.random, self._keep().features.release
            )
            self._take(state, one, made)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        known: ClaimState | None = state.get(STATE)
        if known is not None and known.given:
            self._binder.do(self._binder.undo(pod, known.given, known.has_written_pod))
            known.has_written_pod = False
            by_group, claims = pending_in(state), self._keep().claims
            by_group -= {uid for uid in by_group if claims.pending(uid) is None}
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
            return binder.wait(pod, given) if binder.waits(given) else SUCCESS

        try:
            statuses = (
                pod.status.node_allocatable_resource_claim_statuses if pod.counts_claims else None
            )
            known.has_written_pod = statuses is not None
            answer = drive(binder.bind(pod, given, statuses), finish)
        except BayplanError as error:
            return failure(error)
        return answer if isinstance(answer, Status) else or_failure(answer)
