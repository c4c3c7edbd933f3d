"""Release changes: what an upgrade changes about each decision, and which facts of the releases do it.

The workload runs with the release before the upgrade. Each pod is also judged by the release after it, in the same
cluster at the same moment, so a pod differs only because the releases do. Then every fact of the releases is changed by
itself: those that change the decision are its causes.

A trial has a scheduler per release, and one per fact in which the releases differ: the first release with this fact of
the second. All of them follow the cluster of a simulation, and their writes are discarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ..api.pod import Pod
from ..api.pod_groups import pod_group_of
from ..config.defaults import default_config
from ..manifests.timeline import InputObject
from ..releases.feature_gates import FeatureGates
from ..releases.gate_effects import EFFECTS
from ..releases.release import Release
from ..scheduler import (
    Attempt,
    FirstByName,
    GroupAttempt,
    GroupInquiry,
    Inquiry,
    Scheduler,
    SchedulerSettings,
    build_scheduler,
)
from ..scheduler.gated_pods import reading_of
from ..sim import Simulation
from ..sim.plain_part import PlainPart
from ..sim.settings import Settings
from ..trials import StillCluster
from .stage import PlaceOf

SEVERAL = "several facts together"
NO_FACTS = frozenset(
    {"version", "patch", "refused_gates", "merged_gates", "missing_metrics", "api_versions"}
)
"""Fields of a release that change nothing by themselves."""
CONFIG_FACTS = frozenset({"checks_gate_needs", "missing_config_fields", "fit_strategy_is_strict"})
"""Facts about reading a configuration: they change no decision of one that was read."""


class TrialResult(NamedTuple):
    """The visible part of a decision about a pod: its node with or without devices, or the victims of preemption and
    the message.
    """

    node: str
    victims: tuple[str, ...]
    message: str
    has_devices: bool
    """Whether devices are allocated to its claims; a release without them binds the pod without looking at claims."""
    attempt: Attempt
    """With the points of the plugins, if the trial was to explain itself."""

    @property
    def decision(self) -> tuple[str, tuple[str, ...], str, bool]:
        """The part that is compared."""
        return self[:4]

    def changes_with(self, after: TrialResult, cause: TrialResult) -> bool:
        """Whether a cause alone changes the part of the decision that the upgrade changes.

        The node comes first, then the victims; the message counts only if both stay the same. If nothing but the
        devices changes, a cause may also leave the pod pending: one of several gates that they need.
        """
        if self.decision[:-1] == after.decision[:-1]:
            return self.decision != cause.decision
        place = next(i for i, (was, now) in enumerate(zip(self, after, strict=True)) if was != now)
        return self[place] != cause[place]


class ReleaseTrials:
    """Trials of pods and of pod groups with the releases of two settings, in the cluster of a running simulation."""

    def __init__(self, simulation: Simulation, before: Settings, after: Settings) -> None:
        self._simulation = simulation
        self._settings = before, after
        self._still = StillCluster.of(simulation.cluster)
        self._feeds: dict[tuple[bool, ...], Scheduler] = {}
        """Schedulers whose caches follow the cluster, by the way in which they read pods."""
        readings = [reading_of(FeatureGates.of(each.feature_gates)) for each in self._settings]
        if readings[0] == readings[1]:
            self._feeds[readings[0]] = simulation.scheduler
        self._judges = tuple(self._judge(each) for each in self._settings)
        self._explaining = tuple(self._judge(each, explain=True) for each in self._settings)
        self._by_cause: dict[bool, list[tuple[str, Scheduler]]] = {}

    @property
    def have_groups(self) -> tuple[bool, ...]:
        """Whether each of the releases places members of pod groups together."""
        return tuple(judge.groups is not None for judge in self._judges)

    def try_pods(self, pods: Sequence[Pod], is_group: bool) -> list[dict[str, TrialResult]]:
        """Try one pod, or the waiting members of a group, with each of the releases; returns results by pod key. They
        are explained if the releases differ, or if a single pod gets no node.
        """
        found = [_try(judge, pods, is_group) for judge in self._judges]
        if _decisions(found[0]) == _decisions(found[1]) and (is_group or _all_placed(found[0])):
            return found
        return [_try(judge, pods, is_group, explains=True) for judge in self._explaining]

    def causes_of(
        self,
        pods: Sequence[Pod],
        is_group: bool,
        was: dict[str, TrialResult],
        now: dict[str, TrialResult],
    ) -> dict[str, tuple[str, ...]]:
        """The facts and gates of the second release, each of which by itself changes the decision, for each pod whose
        decision changes, by its key.
        """
        changed = [key for key, result in was.items() if result.decision != now[key].decision]
        causes: dict[str, tuple[str, ...]] = dict.fromkeys(changed, ())
        for cause, judge in self._judges_by_cause(not is_group and not _all_placed(was)):
            if is_group and judge.groups is None:
                continue  # a gate without which there are no groups: the members are not tried together
            found = _try(judge, pods, is_group)
            for key in changed:
                if was[key].changes_with(now[key], found[key]):
                    causes[key] += (cause,)
        return causes

    def _judge(self, settings: Settings, explain: bool = False) -> Scheduler:
        """A scheduler with these settings, on the cluster of the simulation, whose writes are discarded."""
        options = SchedulerSettings(
            clock=self._simulation.clock,
            cache=self._feed(settings).cache,
            ties=FirstByName(),
            explain=explain,
            feature_gates=settings.feature_gates,
            plugins=settings.plugins,
        )
        return build_scheduler(settings.effective_config, self._still, options)

    def _feed(self, settings: Settings) -> Scheduler:
        """A scheduler that has the nodes with their pods as the settings read them: others may count other requests."""
        reading = reading_of(FeatureGates.of(settings.feature_gates))
        if reading not in self._feeds:
            feed = self._feeds[reading] = build_scheduler(
                settings.effective_config,
                self._still,
                clock=self._simulation.clock,
                feature_gates=settings.feature_gates,
                plugins=settings.plugins,
            )
            self._simulation.cluster.watch(feed)
        return self._feeds[reading]

    def _judges_by_cause(self, explains: bool) -> list[tuple[str, Scheduler]]:
        """A judge per difference of the releases; only those that explain have the victims of a single pod."""
        if explains not in self._by_cause:
            self._by_cause[explains] = [
                (cause, self._judge(settings, explains))
                for cause, settings in _single_settings(*self._settings)
            ]
        return self._by_cause[explains]


def single_changes(
    old: FeatureGates, new: FeatureGates, left_out: Set[str] = NO_FACTS
) -> Iterator[tuple[str, FeatureGates]]:
    """Each difference by itself: its name, and the old gates with this fact of the new release, or this gate."""
    for fact in Release.__struct_fields__:
        value = getattr(new.release, fact)
        if fact not in left_out and value != getattr(old.release, fact):
            release = replace(old.release, **{fact: value})
            yield fact, FeatureGates(old.settings, release=release, version=old.version)
    for gate in EFFECTS:
        if old.enabled(gate) is not new.enabled(gate):
            yield gate, old.with_position(gate, new.enabled(gate))


def _single_settings(before: Settings, after: Settings) -> Iterator[tuple[str, Settings]]:
    """The settings before with one difference to those after: by the name of the fact or feature gate."""
    old, new = FeatureGates.of(before.feature_gates), FeatureGates.of(after.feature_gates)
    for name, gates in single_changes(old, new, NO_FACTS | CONFIG_FACTS):
        yield name, _with(before, gates)


def _with(settings: Settings, gates: FeatureGates) -> Settings:
    """The settings with other gates; a default configuration is that of the gates."""
    config = settings.config
    if config == default_config(settings.feature_gates):
        config = None
    return replace(settings, config=config, feature_gates=gates)


def _try_pod(judge: Scheduler, pod: Pod) -> TrialResult:
    attempt = Inquiry(judge, pod).decide()
    told = attempt.explanation
    account = told.post_filter[0].preemption if told and told.post_filter else None
    victims = () if account is None or account.chosen is None else account.chosen.pods
    return _result(judge, attempt, victims)


def _try(
    judge: Scheduler, pods: Sequence[Pod], is_group: bool, explains: bool = False
) -> dict[str, TrialResult]:
    if not is_group:
        return {pod.key: _try_pod(judge, pod) for pod in pods}
    account = GroupInquiry(judge, pods).decide(explains=explains)
    victims = _victims(account)
    return {
        member.attempt.pod.key: _result(judge, member.attempt, victims)
        for member in account.result.members
    }


def _victims(account: GroupAttempt) -> list[Pod]:
    """The pods that leave for the group as a whole, or for one of its members."""
    found = [] if account.preemption is None else [*account.preemption.victims]
    if account.result.waits_for_preemption:
        found += [pod for eviction in account.result.held for pod in eviction.victims.pods]
    return found


def _result(judge: Scheduler, attempt: Attempt, victims: Iterable[Pod]) -> TrialResult:
    if attempt.status is None:
        gives_devices = judge.feature_gates.enabled("DynamicResourceAllocation")
        has_devices = gives_devices and bool(attempt.pod.spec.resource_claims)
        return TrialResult(attempt.node_name, (), "", has_devices, attempt)
    evicted = tuple(sorted(pod.key for pod in victims))
    return TrialResult("", evicted, attempt.message, False, attempt)


def _decisions(results: dict[str, TrialResult]) -> dict[str, tuple[object, ...]]:
    return {key: result.decision for key, result in results.items()}


def _all_placed(results: dict[str, TrialResult]) -> bool:
    return all(result.node for result in results.values())


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
