"""Capacity: how many more pods of a mix fit, on which nodes, and which resource runs out first.

Copies are placed one after the other by the scheduler until one does not fit. They do not preempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ..api.meta import ObjectMeta
from ..api.pod import Pod
from ..api.workloads import Namespace
from ..cluster.memory import Admission, AdmissionError
from ..errors import InputError
from ..scheduler import Inquiry, Outcome
from ..scheduler.collector import rare_collections
from ..sim.frames import make_frame
from ..sim.world import InputObject
from .pod_kinds import PodKind, on_nodes
from .references import find_node
from .room import ResourceRoom, known_resources, totals
from .settings import DEFAULT_SETTINGS, OnProgress, Settings
from .stage import PlaceOf, Stage

DEFAULT_LIMIT = 100_000
NEVER = "Never"
INSUFFICIENT, TOO_MANY_PODS = "Insufficient ", "Too many pods"


@dataclass(slots=True)
class KindCapacity:
    """Result for one kind of pod: how many fit, and the reasons why one more does not."""

    name: str
    ratio: int
    fits: int = 0
    nodes: Counter[str] = field(default_factory=Counter)
    """Copies per node."""
    fits_alone: bool = False
    """Whether one more of this kind alone would fit."""
    refusals: Counter[str] = field(default_factory=Counter)
    """For the copy that did not fit: number of nodes per reason."""
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "pod": self.name,
            "ratio": self.ratio,
            "fits": self.fits,
            "fitsAlone": self.fits_alone,
            "refusals": [{"reason": r, "nodes": n} for r, n in self.refusals.most_common()],
            "message": self.message,
            "nodes": dict(self.nodes),
        }


@dataclass(slots=True)
class Capacity:
    """Result of a capacity question."""

    kinds: list[KindCapacity]
    rounds: int
    """How many times the whole mix fits."""
    is_limited: bool
    """The search stopped at the limit, not because the cluster was full."""
    resources: list[ResourceRoom]
    node_count: int
    first_refused: str = ""
    """The kind that no longer fitted."""

    @property
    def fits(self) -> int:
        """Total number of pods."""
        return sum(kind.fits for kind in self.kinds)

    @property
    def bottleneck(self) -> str:
        """The resource that most nodes lack for the first kind that does not fit; empty if no
        resource is short."""
        counts: Counter[str] = Counter()
        for kind in self.kinds:
            if kind.name == self.first_refused:
                counts.update(_shortages(kind.refusals))
        return counts.most_common(1)[0][0] if counts else ""

    def histogram(self) -> dict[int, int]:
        """Number of nodes by number of pods received, zero included."""
        per_node: Counter[str] = Counter()
        for kind in self.kinds:
            per_node.update(kind.nodes)
        counts = Counter(per_node.values())
        counts[0] = self.node_count - len(per_node)
        return {number: counts[number] for number in sorted(counts, reverse=True) if counts[number]}

    def to_frame(self) -> Any:
        """Pods per node, one column per kind, as a pandas DataFrame."""
        names = dict.fromkeys(name for kind in self.kinds for name in kind.nodes)
        return make_frame(
            {"node": name, **{kind.name: kind.nodes[name] for kind in self.kinds}} for name in names
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        return {
            "fits": self.fits,
            "rounds": self.rounds,
            "limited": self.is_limited,
            "firstRefused": self.first_refused or None,
            "bottleneck": self.bottleneck or None,
            "kinds": [kind.to_dict() for kind in self.kinds],
            "histogram": [{"pods": k, "nodes": n} for k, n in self.histogram().items()],
            "resources": [room.to_dict() for room in self.resources],
        }


def find_capacity(
    objects: Iterable[InputObject],
    kinds: Sequence[PodKind],
    settings: Settings = DEFAULT_SETTINGS,
    *,
    nodes: Sequence[str] = (),
    limit: int = DEFAULT_LIMIT,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
) -> Capacity:
    """Return how many times the mix of `kinds` fits into the cluster of `objects`, up to `limit` pods.

    Pending pods of the cluster are tried first. `nodes` restricts the copies to nodes with these
    names or labels (`key=value`), as a node affinity would. Raises InputError when an API server
    would reject a kind.
    """
    if not kinds:
        raise InputError("expected at least one kind of pods; got none")
    stage = Stage(objects, settings, place_of)
    stage.settle()
    for name in nodes:
        if "=" not in name:
            find_node(stage.cluster, name)
    if nodes:
        kinds = [on_nodes(kind, nodes) for kind in kinds]
    with rare_collections():
        return _Filling(stage, kinds, limit).run(on_progress)


class _Filling:
    """Fills a cluster with copies, round by round."""

    def __init__(self, stage: Stage, kinds: Sequence[PodKind], limit: int) -> None:
        self._stage = stage
        self._scheduler = stage.simulation.scheduler
        self._limit = limit
        self._templates = [self._admit(kind) for kind in kinds]
        self._found = [KindCapacity(kind.name, kind.ratio) for kind in kinds]
        self._placed = 0

    def run(self, on_progress: OnProgress | None) -> Capacity:
        """Fill the cluster and collect why no more fits."""
        table = self._scheduler.cache.table
        names = known_resources(table)
        before = totals(table, names)
        size, rounds, first = sum(kind.ratio for kind in self._found), 0, ""
        while self._placed + size <= self._limit:
            first = self._place_round()
            if first:
                break
            rounds += 1
            if on_progress is not None:
                on_progress(self._placed, self._limit)
        after = totals(table, names)
        if first:
            for kind, template in zip(self._found, self._templates, strict=True):
                kind.fits_alone = self._fits(template)
        resources = [
            ResourceRoom(name, after[name][0], before[name][1], after[name][1]) for name in names
        ]
        return Capacity(self._found, rounds, not first, resources, table.node_count, first)

    def _admit(self, kind: PodKind) -> Pod:
        """The pod as the API server would store it, with preemption disabled."""
        stage, pod = self._stage, kind.pod
        if stage.cluster.get("Namespace", "", pod.namespace) is None:
            stage.add((Namespace(metadata=ObjectMeta(name=pod.namespace)),))
        try:
            admitted = Admission(stage.cluster).admit(pod)
        except AdmissionError as error:
            raise InputError(f"{kind.name}: {error}") from None
        if admitted.scheduler_name not in self._scheduler.profiles:
            known = ", ".join(self._scheduler.profiles)
            expected = f'{kind.name}: spec.schedulerName: expected one of {known}; got "{admitted.scheduler_name}"'
            raise InputError(expected)
        return admitted.with_spec(replace(admitted.spec, preemption_policy=NEVER))

    def _place_round(self) -> str:
        """Place the whole mix once; if a kind does not fit, undo the round and return its name."""
        placed: list[tuple[KindCapacity, Pod]] = []
        for kind, template in zip(self._found, self._templates, strict=True):
            for _ in range(kind.ratio):
                pod = self._place(template)
                if pod is None:
                    self._ask_why(kind, template)
                    self._take_back(placed)
                    return kind.name
                placed.append((kind, pod))
        for kind, pod in placed:
            kind.fits += 1
            kind.nodes[pod.node_name] += 1
        return ""

    def _place(self, template: Pod) -> Pod | None:
        """Place one more copy; return None and delete it when it fits nowhere."""
        cluster = self._stage.cluster
        self._placed += 1
        name = f"{template.name}-{self._placed}"
        copy = cluster.add(template.replace(name=name, uid=f"capacity/{self._placed}"))
        while (attempt := self._scheduler.schedule_one()) is not None:
            if attempt.pod.uid == copy.uid:
                break
        if attempt is None or attempt.outcome is not Outcome.BOUND:
            if attempt is None or not attempt.is_failed:
                self._stage.simulation.run()  # binding takes time: for volumes, or for other pods
            stored = cluster.get("Pod", copy.namespace, copy.name)
            assert isinstance(stored, Pod), "the copy still exists"
            if not stored.node_name:
                self._placed -= 1
                cluster.delete(stored)
                return None
            return stored
        return attempt.pod.with_node(attempt.node_name)

    def _take_back(self, placed: Iterable[tuple[KindCapacity, Pod]]) -> None:
        for _, pod in placed:
            self._placed -= 1
            stored = self._stage.cluster.get("Pod", pod.namespace, pod.name)
            if stored is not None:
                self._stage.cluster.delete(stored)

    def _ask_why(self, kind: KindCapacity, template: Pod) -> None:
        """The reasons why one more of the kind does not fit."""
        diagnosis = Inquiry(self._scheduler, _more(template)).diagnosis
        kind.refusals = diagnosis.histogram()
        kind.message = diagnosis.fit_error()

    def _fits(self, template: Pod) -> bool:
        return Inquiry(self._scheduler, _more(template)).feasible_nodes > 0


def _more(template: Pod) -> Pod:
    return template.replace(name=f"{template.name}-more", uid="capacity/more")


def _shortages(refusals: Counter[str]) -> Counter[str]:
    """The reasons about a lack of resources, with their number of nodes."""
    found: Counter[str] = Counter()
    for reason, count in refusals.items():
        if reason.startswith(INSUFFICIENT):
            found[reason.removeprefix(INSUFFICIENT)] += count
        elif reason == TOO_MANY_PODS:
            found["pods"] += count
    return found
