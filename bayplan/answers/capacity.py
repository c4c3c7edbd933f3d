"""Capacity: how many more pods of some kinds fit, in a given mix, where they go and what runs out first.

Copies are placed one after the other by the scheduler itself, until one does not fit. They push nobody out.
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
from ..scheduler import Outcome
from ..scheduler.collector import rare_collections
from ..sim.frames import make_frame
from ..sim.world import InputObject
from .judging import judge
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
    """One kind of pods: how many fit in the mix, and what nodes say to one more."""

    name: str
    ratio: int
    fits: int = 0
    nodes: Counter[str] = field(default_factory=Counter)
    """How many of them are on each node."""
    fits_alone: bool = False
    """Whether one more would fit, if it need not be the whole mix."""
    refusals: Counter[str] = field(default_factory=Counter)
    """For the one that did not fit any more: on how many nodes each reason was given."""
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
    """How many more pods fit."""

    kinds: list[KindCapacity]
    rounds: int
    """How many times the whole mix fits."""
    is_limited: bool
    """The search ended because so many were asked for, not because the cluster was full."""
    resources: list[ResourceRoom]
    node_count: int
    first_refused: str = ""
    """The kind that did not fit any more."""

    @property
    def fits(self) -> int:
        """How many pods in all."""
        return sum(kind.fits for kind in self.kinds)

    @property
    def bottleneck(self) -> str:
        """The resource that most nodes are short of for the first kind that does not fit; empty if it is none."""
        counts: Counter[str] = Counter()
        for kind in self.kinds:
            if kind.name == self.first_refused:
                counts.update(_shortages(kind.refusals))
        return counts.most_common(1)[0][0] if counts else ""

    def histogram(self) -> dict[int, int]:
        """How many nodes got each number of pods, those that got none included."""
        per_node: Counter[str] = Counter()
        for kind in self.kinds:
            per_node.update(kind.nodes)
        counts = Counter(per_node.values())
        counts[0] = self.node_count - len(per_node)
        return {number: counts[number] for number in sorted(counts, reverse=True) if counts[number]}

    def to_frame(self) -> Any:
        """How many pods each node takes, a column per kind, as a pandas DataFrame."""
        names = dict.fromkeys(name for kind in self.kinds for name in kind.nodes)
        return make_frame(
            {"node": name, **{kind.name: kind.nodes[name] for kind in self.kinds}} for name in names
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/answers.md describes it."""
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
    """How many times the mix of `kinds` fits into the cluster of `objects`, up to `limit` pods.

    First the pods that wait there are tried. `nodes` keeps the copies to nodes with these names or labels
    (`key=value`), as if they asked for them. InputError when a kind would be refused by an API server.
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
        """Fill it, and ask why no more fits."""
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
        """The pod as the API server would store it, but for that it pushes nobody out."""
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
        """Place the whole mix once; the name of the kind that does not fit takes back what was placed."""
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
        """One more copy on its node; None when it fits nowhere, and is taken away again."""
        cluster = self._stage.cluster
        self._placed += 1
        name = f"{template.name}-{self._placed}"
        copy = cluster.add(template.replace(name=name, uid=f"capacity/{self._placed}"))
        while (attempt := self._scheduler.schedule_one()) is not None:
            if attempt.pod.uid == copy.uid:
                break
        if attempt is None or attempt.outcome is not Outcome.BOUND:
            if attempt is None or not attempt.is_failed:
                self._stage.simulation.run()  # it needs time: for its volumes, or for others
            stored = cluster.get("Pod", copy.namespace, copy.name)
            assert isinstance(stored, Pod), "nobody deletes it"
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
        """What nodes say to one more of the kind."""
        diagnosis = judge(self._scheduler, _more(template)).diagnosis
        kind.refusals = diagnosis.histogram()
        kind.message = diagnosis.fit_error()

    def _fits(self, template: Pod) -> bool:
        found = judge(self._scheduler, _more(template)).rows
        return self._scheduler.cache.table.count(found) > 0


def _more(template: Pod) -> Pod:
    return template.replace(name=f"{template.name}-more", uid="capacity/more")


def _shortages(refusals: Counter[str]) -> Counter[str]:
    """Of the reasons, those that a resource is short: on how many nodes."""
    found: Counter[str] = Counter()
    for reason, count in refusals.items():
        if reason.startswith(INSUFFICIENT):
            found[reason.removeprefix(INSUFFICIENT)] += count
        elif reason == TOO_MANY_PODS:
            found["pods"] += count
    return found
