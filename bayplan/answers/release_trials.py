"""Release trials: the same pod, or the same pod group, judged by the schedulers of two releases in one cluster.

A trial has a scheduler per release, and one per fact in which the releases differ: the first release with this fact of
the second. All of them follow the cluster of a simulation, and their writes are discarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from msgspec.structs import replace

from ..api.pod import Pod
from ..config.defaults import default_config
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
from ..sim.settings import Settings
from ..trials import StillCluster

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
