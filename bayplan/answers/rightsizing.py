"""Rightsizing: requests that follow the measured use, and what they would free. Nothing is applied.

The proposals are verified by the scheduler: it tries the waiting pods in the cluster with the proposed requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..api.pod import Pod
from ..api.resources import CPU, allocatable_units
from ..api.text.quantity import format_quantity
from ..api.workloads import workload_of
from ..errors import counted
from ..manifests.measured_use import RESOURCES, MeasuredUse, Units
from ..manifests.timeline import InputObject
from ..sim.plain_part import PlainPart
from ..sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ..sim.totals import ClusterTotals, TotalsChange
from ..trials import NONE_WAITED, SettledAnswer, Settlement
from .measured import nodes_and_pods, used_by_containers, with_requests
from .stage import PlaceOf, Stage

DEFAULT_MARGIN = 0.15
STEP = {CPU: 10, "memory": 1 << 20}
"""Proposals are whole multiples of this."""
Place: TypeAlias = tuple[str, str, str, str]
"""Namespace, kind and name of a workload, and a container."""


@dataclass(frozen=True, slots=True)
class RequestProposal(PlainPart):
    """A container of a workload whose request of a resource should be changed."""

    PLAIN = "workload container resource pods requested# used# proposed# frees#"

    workload: str
    """`deployment/shop/web`."""
    container: str
    resource: str
    pods: int
    requested: int
    """Per pod: cpu in milli, memory in bytes."""
    used: int
    """The highest use of any of the pods."""
    proposed: int

    @property
    def frees(self) -> int:
        """The amounts that all pods together free; negative where the use is above the request."""
        return (self.requested - self.proposed) * self.pods


@dataclass(slots=True, repr=False)
class Rightsizing(PlainPart, SettledAnswer):
    """The proposals, and the cluster with them."""

    PLAIN = "settled proposals unmeasuredPods=unmeasured waiting placed overcommittedNodes=displaced totals"

    proposals: list[RequestProposal]
    """Recommendations, those that free most first."""
    unmeasured: int
    """Running pods without a measured use."""
    waiting: int
    """Pods that wait with the requests of today."""
    placed: list[str] = field(default_factory=list)
    """The pods that get a node with the proposed requests."""
    displaced: list[str] = field(default_factory=list)
    """Nodes whose pods would request more than they have."""
    totals: TotalsChange = field(default_factory=TotalsChange)
    settled: Settlement = NONE_WAITED

    def freed(self, resource: str) -> int:
        """Sum of the amounts that the proposals free."""
        return sum(one.frees for one in self.proposals if one.resource == resource)

    def headline(self) -> str:
        """`8 proposals free 12 cpu and 40Gi of memory; 2 of 3 waiting pods get a node then`."""
        parts = [
            f"{format_quantity(self.freed(name), name)} {name}"
            for name in RESOURCES
            if self.freed(name) > 0
        ]
        text = counted(len(self.proposals), "proposal")
        text += f" would free {' and '.join(parts)}" if parts else " would free nothing"
        if self.waiting:
            pods = "pod gets" if self.waiting == 1 else "pods get"
            text += f"; {len(self.placed):,} of {self.waiting:,} waiting {pods} a node then"
        return text

    def shown_rows(self) -> list[dict[str, Any]]:
        """The proposals."""
        return [one.to_dict() for one in self.proposals]


def find_rightsizing(
    objects: Sequence[InputObject],
    use: MeasuredUse,
    settings: Settings = DEFAULT_SETTINGS,
    *,
    margin: float = DEFAULT_MARGIN,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
) -> Rightsizing:
    """Proposals for all workloads of which pods were measured: the highest use and `margin` of it."""
    peaks, pods, unmeasured = _peaks(objects, use)
    wanted = {
        place: {name: _rounded(amount * (1 + margin), name) for name, amount in peak.items()}
        for place, peak in peaks.items()
    }
    proposals = [
        one
        for place, amounts in wanted.items()
        for one in _proposals(place, pods[place], peaks[place], amounts)
    ]
    before = Stage(objects, settings, place_of)
    before.begin(on_progress)
    resized = with_requests(objects, lambda pod: _requests_of(pod, wanted))
    after = Stage(resized, settings)
    after.begin(on_progress)
    waited, waits = before.places().waiting, after.places().waiting
    totals = TotalsChange(before.totals(), after.totals())
    return Rightsizing(
        sorted(proposals, key=lambda one: -_weight(one, totals.before)),
        unmeasured,
        len(waited),
        [key for key in waited if key not in waits],
        _overcommitted(after),
        totals,
        before.settlement,
    )


def _peaks(
    objects: Iterable[InputObject], use: MeasuredUse
) -> tuple[dict[Place, Units], dict[Place, list[Pod]], int]:
    """The highest use per container of a workload, the pods that have it, and the number of pods without a use."""
    peaks: dict[Place, Units] = {}
    pods: dict[Place, list[Pod]] = {}
    unmeasured = 0
    for pod in nodes_and_pods(objects)[1]:
        found = used_by_containers(pod, use)
        unmeasured += found is None
        for container in pod.spec.containers or ():
            place = (pod.namespace, *workload_of(pod), container.name)
            pods.setdefault(place, []).append(pod)
            for name, amount in (found or {}).get(container.name, {}).items():
                peak = peaks.setdefault(place, {})
                peak[name] = max(peak.get(name, 0), amount)
    return peaks, pods, unmeasured


def _requests_of(pod: Pod, wanted: dict[Place, Units]) -> dict[str, Units] | None:
    kind, name = workload_of(pod)
    found = {
        container.name: wanted[place]
        for container in pod.spec.containers or ()
        if (place := (pod.namespace, kind, name, container.name)) in wanted
    }
    return found or None


def _proposals(
    place: Place, pods: Sequence[Pod], peak: Units, amounts: Units
) -> Iterable[RequestProposal]:
    namespace, kind, name, container = place
    for resource, proposed in amounts.items():
        requested = _requested(pods[0], container, resource)
        if proposed != requested:
            workload = f"{kind.lower()}/{namespace}/{name}"
            yield RequestProposal(
                workload, container, resource, len(pods), requested, peak[resource], proposed
            )


def _requested(pod: Pod, container: str, resource: str) -> int:
    for one in pod.spec.containers or ():
        if one.name == container and one.resources is not None:
            return allocatable_units(one.resources.requests).get(resource, 0)
    return 0


def _rounded(amount: float, resource: str) -> int:
    step = STEP[resource]
    return max(-int(-amount // step), 1) * step


def _weight(proposal: RequestProposal, totals: ClusterTotals) -> float:
    """Amount that a proposal frees, as a share of the cluster."""
    whole = totals.of(proposal.resource).allocatable
    return proposal.frees / whole if whole else 0.0


def _overcommitted(stage: Stage) -> list[str]:
    table = stage.simulation.scheduler.cache.table
    return [
        name
        for name, row in table.row_of.items()
        if any(table.requested[r][row] > table.allocatable[r][row] for r in RESOURCES)
    ]
