"""Release changes: what an upgrade changes about each decision, and which facts of the releases do it.

The workload runs with the release before the upgrade. Each pod is also judged by the release after it, in the same
cluster at the same moment, so a pod differs only because the releases do. Then every fact of the releases is changed by
itself: those that change the decision are its causes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

import msgspec

from ..api.pod import Pod
from ..api.pod_groups import pod_group_of
from ..manifests.timeline import InputObject
from ..releases.release import Release
from ..scheduler import Attempt
from ..sim import Simulation
from ..sim.plain_part import PlainPart
from ..sim.settings import Settings
from .release_trials import ReleaseTrials, TrialResult
from .stage import PlaceOf

SEVERAL = "several facts together"


class ChangedDecision(PlainPart, msgspec.Struct, frozen=True):
    """A pod that the two releases decide about differently in the same cluster."""

    PLAIN = (
        "kind pod before after causes plugin victimsBefore victimsAfter messageBefore messageAfter"
    )

    pod: str
    before: str
    """Its node; empty if it has to wait."""
    after: str
    causes: tuple[str, ...]
    """The facts of the release, and feature gates, that make the difference."""
    plugin: str = ""
    """The score that favours the new node most, compared with before; empty if scores do not decide."""
    victims_before: tuple[str, ...] = ()
    victims_after: tuple[str, ...] = ()
    message_before: str = ""
    message_after: str = ""

    @property
    def kind(self) -> str:
        """Kind of the change: `node`, `devices`, `pending`, `schedulable`, `victims` or `message`."""
        if self.before and self.after:
            return "devices" if self.before == self.after else "node"
        if self.before or self.after:
            return "pending" if self.before else "schedulable"
        return "victims" if self.victims_before != self.victims_after else "message"


class ReleaseChanges(PlainPart, msgspec.Struct):
    """Changes to a workload by the upgrade from one release to another."""

    PLAIN = "before after pods leftOut changed causes notes"

    before: str
    after: str
    pods: int = 0
    """The number of pods that were judged."""
    left_out: int = 0
    """The number of members of pod groups that were not judged, because one release alone places them together."""
    changed: list[ChangedDecision] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    """Changes other than decisions: removed and added metrics, and API versions to which objects must be migrated."""

    def counts(self) -> Counter[str]:
        """The number of pods by kind of change."""
        return Counter(each.kind for each in self.changed)

    def causes(self) -> Counter[str]:
        """The number of pods by cause."""
        return Counter(cause for each in self.changed for cause in each.causes)

    def messages(self) -> Counter[tuple[str, str]]:
        """Texts of refusals that change, before and after, with the number of pods."""
        return Counter(
            (each.message_before, each.message_after)
            for each in self.changed
            if each.message_before != each.message_after
            and each.message_before
            and each.message_after
        )


def metric_notes(before: Release, after: Release) -> Iterator[str]:
    """A sentence about the metrics that only the former release has, and one about the added ones."""
    gone = after.missing_metrics - before.missing_metrics
    new = before.missing_metrics - after.missing_metrics
    for names, release in ((gone, before), (new, after)):
        if names:
            yield f"metrics that only {release.patch} has: {', '.join(sorted(names))}"


def version_notes(objects: Iterable[InputObject], before: Release, after: Release) -> Iterator[str]:
    """A sentence for each kind among `objects` that has another API version after the change of the release."""
    counts = Counter(obj.kind for obj in objects)
    for kind, number in sorted(counts.items()):
        old, new = before.api_versions.get(kind), after.api_versions.get(kind)
        if old != new:
            was, now = old or "none", new or "none"
            yield f"API version of {number} {kind}: {was} in {before.patch}, {now} in {after.patch}"


def find_release_changes(
    objects: Sequence[InputObject],
    before: Settings,
    after: Settings,
    place_of: PlaceOf | None = None,
    until_s: float | None = None,
) -> ReleaseChanges:
    """Run `objects` with `before`, and judge each pod by `after`, too, the first time that it is tried.

    Members of a pod group are judged together.
    """
    simulation = before.simulation(objects, place_of)
    watch = _Watch(simulation, before, after)
    scheduler = simulation.scheduler
    releases = before.release, after.release
    watch.found.notes += [*metric_notes(*releases), *version_notes(objects, *releases)]
    scheduler.observer, scheduler.is_observed = watch.on_step, True
    if scheduler.groups is not None:
        scheduler.groups.on_members = watch.on_members
    simulation.run(until_s=until_s)
    watch.found.notes += watch.group_notes()
    return watch.found


class _Watch:
    """Judges every pod that is tried for the first time with both releases."""

    def __init__(self, simulation: Simulation, before: Settings, after: Settings) -> None:
        self._simulation = simulation
        self._trials = ReleaseTrials(simulation, before, after)
        self._seen: set[str] = set()
        self.found = ReleaseChanges(before.release.patch, after.release.patch)

    def on_step(self, what: str, pod: Pod, text: str) -> None:
        """Observe the scheduler."""
        if what != "popped" or pod.uid in self._seen:
            return
        self._seen.add(pod.uid)
        if pod_group_of(pod) is not None and any(self._trials.have_groups):
            self.found.left_out += 1
            return
        self._judge([pod], {pod.key})

    def on_members(self, pods: Sequence[Pod]) -> None:
        """Judge the members of a group, if one of them was not tried before."""
        new = {pod.key for pod in pods if pod.uid not in self._seen}
        self._seen.update(pod.uid for pod in pods)
        if not new:
            return
        if not all(self._trials.have_groups):
            self.found.left_out += len(new)
            return
        self._judge(pods, new, is_group=True)

    def _judge(self, pods: Sequence[Pod], new: Set[str], is_group: bool = False) -> None:
        """Judge pods that are tried together, and note those of the keys `new` that change."""
        self.found.pods += len(new)
        pods = [self._as_given(pod) for pod in pods]
        before, after = self._trials.try_pods(pods, is_group)
        if all(result.decision == after[key].decision for key, result in before.items()):
            return
        causes = self._trials.causes_of(pods, is_group, before, after)
        self.found.changed += [
            _changed(pod, before[pod.key], after[pod.key], causes[pod.key])
            for pod in pods
            if pod.key in new and pod.key in causes
        ]

    def group_notes(self) -> Iterator[str]:
        """A sentence about the members of pod groups that were left out."""
        found = self.found
        if found.left_out:
            names = zip((found.before, found.after), self._trials.have_groups, strict=True)
            alone = next(name for name, has_groups in names if has_groups)
            yield (
                f"left out: members of pod groups, {found.left_out:,} pods, which only {alone} places together "
                "with these feature gates"
            )

    def _as_given(self, pod: Pod) -> Pod:
        """The pod with all fields, including those that only one of the releases reads."""
        return self._simulation.cluster.get("Pod", pod.namespace, pod.name) or pod


def _changed(
    pod: Pod, before: TrialResult, after: TrialResult, causes: tuple[str, ...]
) -> ChangedDecision:
    return ChangedDecision(
        pod.key,
        before.node,
        after.node,
        causes or (SEVERAL,),
        _deciding_plugin(before.attempt, after.attempt),
        before.victims,
        after.victims,
        before.message,
        after.message,
    )


def _deciding_plugin(before: Attempt, after: Attempt) -> str:
    """The plugin whose points changed most in favour of the new node."""
    old, new = before.node_name, after.node_name
    if not (old and new and before.explanation and after.explanation):
        return ""

    def leads(attempt: Attempt) -> dict[str, int]:
        told = attempt.explanation
        assert told is not None
        return {
            each.plugin: each.weight * (each.normalized.get(new, 0) - each.normalized.get(old, 0))
            for each in told.scores
        }

    first, second = leads(before), leads(after)
    gains = {name: second.get(name, 0) - first.get(name, 0) for name in {*first, *second}}
    best = max(sorted(gains), key=gains.__getitem__, default="")
    return best if best and gains[best] > 0 else ""
