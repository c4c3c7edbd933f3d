"""Release changes: what an upgrade changes about each decision, and which facts of the releases do it.

The workload runs with the release before the upgrade. Each pod is also judged by the release after it, in the same
cluster at the same moment, so a pod differs only because the releases do. Then every fact of the releases is changed by
itself: those that change the decision are its causes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import msgspec
from msgspec.structs import replace

from ..api.pod import Pod
from ..config import FeatureGates, default_config
from ..config.releases import Release
from ..framework.gate_effects import EFFECTS
from ..manifests.timeline import InputObject
from ..scheduler import Attempt, FirstByName, Scheduler, SchedulerSettings, build_scheduler
from ..scheduler.inquiry import Inquiry
from ..sim import Simulation
from ..sim.settings import Settings
from ..trials import StillCluster
from .stage import PlaceOf

NO_FACTS = frozenset(
    {"version", "patch", "refused_gates", "merged_gates", "missing_metrics", "api_versions"}
)
"""Fields of a release that change nothing by themselves."""
CONFIG_FACTS = frozenset(
    {"checks_gate_needs", "missing_config_fields", "fit_strategy_is_strict", "faults_name_fields"}
)
"""Facts about reading a configuration: they change no decision of one that was read."""
SEVERAL = "several facts together"


class ChangedDecision(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that the two releases decide about differently in the same cluster."""

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
        """Kind of the change: `node`, `pending`, `schedulable`, `victims` or `message`."""
        if self.before and self.after:
            return "node"
        if self.before or self.after:
            return "pending" if self.before else "schedulable"
        return "victims" if self.victims_before != self.victims_after else "message"


class ReleaseChanges(msgspec.Struct, rename="camel"):
    """Changes to a workload by the upgrade from one release to another."""

    before: str
    after: str
    pods: int = 0
    """The number of pods that were judged."""
    changed: list[ChangedDecision] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    """Changes beside decisions: metrics that go or come, and API versions that objects have to move to."""

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

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        changed = [
            {"kind": each.kind, **msgspec.to_builtins(each, str_keys=True)} for each in self.changed
        ]
        return {
            "before": self.before,
            "after": self.after,
            "pods": self.pods,
            "changed": changed,
            "causes": dict(self.causes()),
            "notes": self.notes,
        }


def metric_notes(before: Release, after: Release) -> Iterator[str]:
    """A sentence about the metrics that go with the change of the release, and one about those that come."""
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
    """Run `objects` with `before`, and judge each pod by `after`, too, the first time that it is tried."""
    simulation = before.simulation(objects, place_of)
    watch = _Watch(simulation, before, after)
    scheduler = simulation.scheduler
    releases = before.release, after.release
    watch.found.notes += [*metric_notes(*releases), *version_notes(objects, *releases)]
    scheduler.observer, scheduler.is_observed = watch.on_step, True
    simulation.run(until_s=until_s)
    return watch.found


class _Watch:
    """Judges every pod that is tried for the first time with both releases."""

    def __init__(self, simulation: Simulation, before: Settings, after: Settings) -> None:
        self._simulation = simulation
        self._settings = before, after
        self._still = StillCluster.of(simulation.cluster)
        self._judges = self._judge(before), self._judge(after)
        self._explaining = self._judge(before, explain=True), self._judge(after, explain=True)
        self._made: dict[bool, list[tuple[str, Scheduler]]] = {}
        self._seen: set[str] = set()
        names = [settings.release.patch for settings in (before, after)]
        self.found = ReleaseChanges(names[0], names[1])

    def on_step(self, what: str, pod: Pod, text: str) -> None:
        """Observe the scheduler."""
        if what != "popped" or pod.uid in self._seen:
            return
        self._seen.add(pod.uid)
        self.found.pods += 1
        before, after = (Inquiry(judge, pod).decide() for judge in self._judges)
        if before.node_name and before.node_name == after.node_name:
            return
        before, after = (Inquiry(judge, pod).decide() for judge in self._explaining)
        if _outcome(before) != _outcome(after):
            self.found.changed.append(self._explain(pod, before, after))

    def _judge(self, settings: Settings, explain: bool = False) -> Scheduler:
        """A scheduler with these settings, on the cluster of the simulation, whose writes are discarded."""
        running = self._simulation.scheduler
        options = SchedulerSettings(
            clock=self._simulation.clock,
            cache=running.cache,
            ties=FirstByName(),
            explain=explain,
            feature_gates=settings.feature_gates,
            plugins=settings.plugins,
        )
        return build_scheduler(settings.effective_config, self._still, options)

    def _by_cause(self, explains: bool) -> list[tuple[str, Scheduler]]:
        """A judge per difference of the releases; only those that explain tell the victims of preemption."""
        if explains not in self._made:
            self._made[explains] = [
                (cause, self._judge(settings, explains))
                for cause, settings in _single_settings(*self._settings)
            ]
        return self._made[explains]

    def _explain(self, pod: Pod, before: Attempt, after: Attempt) -> ChangedDecision:
        was, now = _outcome(before), _outcome(after)
        judges = self._by_cause(explains=not before.node_name)
        causes = tuple(
            cause for cause, judge in judges if _outcome(Inquiry(judge, pod).decide()) != was
        )
        return ChangedDecision(
            pod.key,
            before.node_name,
            after.node_name,
            causes or (SEVERAL,),
            _deciding_plugin(before, after),
            was[1],
            now[1],
            before.message,
            after.message,
        )


def _single_settings(before: Settings, after: Settings) -> Iterator[tuple[str, Settings]]:
    """The settings before with one difference to those after: by the name of the fact or feature gate."""
    old, new = FeatureGates.of(before.feature_gates), FeatureGates.of(after.feature_gates)
    for name, gates in single_changes(old, new, NO_FACTS | CONFIG_FACTS):
        yield name, _with(before, gates)


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


def _with(settings: Settings, gates: FeatureGates) -> Settings:
    """The settings with other gates; a default configuration is that of the gates."""
    config = settings.config
    if config == default_config(settings.feature_gates):
        config = None
    return replace(settings, config=config, feature_gates=gates)


def _outcome(attempt: Attempt) -> tuple[str, tuple[str, ...], str]:
    """The visible part of a decision: the node, or the node and victims of preemption, or the message."""
    if attempt.node_name:
        return attempt.node_name, (), ""
    told = attempt.explanation
    account = told.post_filter[0].preemption if told and told.post_filter else None
    victims: tuple[str, ...] = ()
    if account is not None and account.chosen is not None:
        victims = tuple(sorted(pod.key for pod in account.chosen.pods))
    return "", victims, attempt.message


def _deciding_plugin(before: Attempt, after: Attempt) -> str:
    """The plugin whose points speak for the new node against the old one more than they did."""
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
