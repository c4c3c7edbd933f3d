"""Decision account: judged decisions counted per scheduler, and the differences among them. Bounded in size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ..answers.judged_decision import Agreement, JudgedDecision, plugins_of, reason_of
from ..api.text.refusal_message import is_known_reason, refusals_of
from ..sim.replay_report import ReplayVerdict

MOST_DIFFERENCES = 200
"""Differences that are kept, the latest ones; all are counted."""
MOST_REASONS = 50
"""Distinct foreign reasons that are counted."""


class AccountPart(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=False):
    """A part of the account that is written to JSON and read again."""


class PointRange(AccountPart):
    """Points that one plugin's scores lost, summed over decisions: lowest and highest over the draws of ties."""

    low: int = 0
    high: int = 0


class SchedulerAccount(AccountPart):
    """The decisions of the pods with one `schedulerName`."""

    name: str
    has_profile: bool = True
    """Whether the configuration has a profile of that name; else the default profile judged."""
    bound: int = 0
    refused: int = 0
    preemptions: int = 0
    """Number of refusals whose victims were compared."""
    agreements: dict[str, int] = msgspec.field(
        default_factory=lambda: dict.fromkeys(map(str, Agreement), 0)
    )
    """Number of decisions per verdict."""
    points_lost: int = 0
    """Sum over the sampled decisions of the best total minus the total of the chosen node."""
    points_lost_by_plugin: dict[str, PointRange] = msgspec.field(default_factory=dict)
    split_decisions: int = 0
    """Number of sampled decisions in `points_lost_by_plugin`, without those of busy times."""
    different_by_plugin: dict[str, int] = msgspec.field(default_factory=dict)
    """Number of different decisions per plugin that is named as the reason."""
    foreign_reasons: dict[str, int] = msgspec.field(default_factory=dict)
    """Reasons in the scheduler's messages that no plugin of the profile gave, with their number of messages."""

    @property
    def decisions(self) -> int:
        """Number of judged decisions."""
        return sum(self.agreements.values())

    def count_of(self, agreement: Agreement) -> int:
        """Number of decisions with this verdict."""
        return self.agreements.get(agreement, 0)

    def add(self, decision: JudgedDecision, agreement: Agreement) -> None:
        """Count a decision."""
        self.has_profile = decision.has_profile
        self.agreements[agreement] = self.agreements.get(agreement, 0) + 1
        if decision.node_name:
            self.bound += 1
        else:
            self.refused += 1
            self.preemptions += decision.preemption is not None
        if agreement is Agreement.SAMPLED:
            self._add_points(decision)
        elif agreement is Agreement.DIFFERENT:
            for plugin in plugins_of(decision):
                self.different_by_plugin[plugin] = self.different_by_plugin.get(plugin, 0) + 1
            self._add_reasons(decision)

    def _add_points(self, decision: JudgedDecision) -> None:
        found = decision.assessment
        if found is None or found.total is None or found.best_total is None:
            return
        self.points_lost += found.best_total - found.total
        self.split_decisions += bool(found.behind_range)
        for plugin, low, high in found.behind_range:
            one = self.points_lost_by_plugin.setdefault(plugin, PointRange())
            one.low += low
            one.high += high

    def _add_reasons(self, decision: JudgedDecision) -> None:
        """Count the reasons of a refusal that neither our plugins nor those of kube-scheduler give."""
        found = decision.assessment
        ours = {reason for _, reason in found.refusal_reasons} if found is not None else set()
        for reason in refusals_of(decision.message):
            is_new = reason not in self.foreign_reasons
            if reason in ours or is_known_reason(reason):
                continue
            if not is_new or len(self.foreign_reasons) < MOST_REASONS:
                self.foreign_reasons[reason] = self.foreign_reasons.get(reason, 0) + 1


class DecisionDifference(AccountPart):
    """A decision that no state around it explains."""

    time: str
    """Time when it became visible: wall clock, or seconds after the start of a recording."""
    pod: str
    scheduler: str
    result: str
    """The kind of difference: `other node`, `pending here`, `pending then`, `other reason`, `other victims`."""
    node: str = ""
    here: str = ""
    plugins: list[str] = msgspec.field(default_factory=list)
    reason: str = ""
    evidence: str = ""
    """The file with the objects that reproduce it; "" if none was written."""


class WaitAccount(AccountPart):
    """Pods that waited although a node had room, found by checks of waiting pods every few seconds."""

    pods: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    longest_pod: str = ""
    every_s: float = 0.0
    """Time between two questions: the resolution of the figures."""

    def add(self, pod: str, seconds: float) -> None:
        """Count a pod that has waited for `seconds` while a node was feasible."""
        self.pods += 1
        self.seconds += seconds
        if seconds > self.longest_s:
            self.longest_s, self.longest_pod = seconds, pod


class DecisionAccount(AccountPart):
    """All judged decisions."""

    schedulers: dict[str, SchedulerAccount] = msgspec.field(default_factory=dict)
    differences: list[DecisionDifference] = msgspec.field(default_factory=list)
    """The latest of them."""
    waits: WaitAccount = msgspec.field(default_factory=WaitAccount)
    skipped: dict[str, int] = msgspec.field(default_factory=dict)
    """Number of decisions that were not judged, per cause."""
    watched_s: float = 0.0
    avoided: dict[str, str] = msgspec.field(default_factory=dict)
    """By name of a scheduler: a label of the nodes that it left out although they are best here."""

    def add(self, decision: JudgedDecision, time: str, evidence: str = "") -> Agreement | None:
        """Count a decision; returns its verdict, None if nothing was decided."""
        agreement = decision.agreement
        if agreement is None:
            return None
        name = decision.pod.scheduler_name
        one = self.schedulers.setdefault(name, SchedulerAccount(name=name))
        one.add(decision, agreement)
        if agreement is Agreement.DIFFERENT:
            self.differences.append(difference_of(decision, time, evidence))
            del self.differences[:-MOST_DIFFERENCES]
        return agreement

    def skip(self, cause: str, number: int) -> None:
        """Count decisions that were not judged."""
        if number:
            self.skipped[cause] = self.skipped.get(cause, 0) + number

    def count_of(self, agreement: Agreement) -> int:
        """Number of decisions with this verdict."""
        return sum(one.count_of(agreement) for one in self.schedulers.values())

    @property
    def decisions(self) -> int:
        """Number of judged decisions."""
        return sum(one.decisions for one in self.schedulers.values())

    @property
    def skipped_decisions(self) -> int:
        """Number of decisions that were not judged."""
        return sum(self.skipped.values())

    def hints(self) -> Iterable[str]:
        """Sentences about causes that are no placement rule of the profiles."""
        for one in self.schedulers.values():
            if one.foreign_reasons:
                reasons = ", ".join(f'"{reason}"' for reason in one.foreign_reasons)
                yield (
                    f"{one.name}: refuses nodes for reasons that no plugin of the profile gives ({reasons}): "
                    "an extender or a plugin that is not in the configuration"
                )
        yield from _hints_of_nodes(self.differences, self.avoided)


def _hints_of_nodes(
    differences: Iterable[DecisionDifference], avoided: Mapping[str, str]
) -> Iterable[str]:
    """Sentences about nodes that the rules here do not explain."""
    refused: dict[str, set[str]] = {}
    lower: set[str] = set()
    for one in differences:
        is_bound = one.result in (ReplayVerdict.OTHER, ReplayVerdict.PENDING_HERE)
        if is_bound and is_refused_here(one):
            refused.setdefault(one.scheduler, set()).update(one.plugins)
        elif one.result == ReplayVerdict.OTHER and one.here:
            lower.add(one.scheduler)
    for name, plugins in sorted(refused.items()):
        yield (
            f"{name}: pods are bound to nodes that are refused here ({', '.join(sorted(plugins))}): a webhook that"
            " changes bindings, pods that are bound by hand, or plugins that are off in its configuration"
        )
    for name in sorted(lower):
        label = f", and none with the label {avoided[name]}" if name in avoided else ""
        yield (
            f"{name}: chose nodes with a lower total although it compares all nodes{label}: an extender, a plugin, a"
            " weight or an argument that is not in the configuration, or a webhook that changes bindings; bayplan"
            " doctor finds what it can"
        )


def is_refused_here(difference: DecisionDifference) -> bool:
    """Whether the node of a binding is refused here; totals begin with a number."""
    return ": " in difference.reason and not difference.reason[0].isdigit()


def difference_of(decision: JudgedDecision, time: str, evidence: str = "") -> DecisionDifference:
    """The decision as a row of the differences."""
    return DecisionDifference(
        time=time,
        pod=decision.pod.key,
        scheduler=decision.pod.scheduler_name,
        result=str(decision.verdict),
        node=decision.node_name or decision.nominated_node,
        here=decision.chosen_node,
        plugins=list(plugins_of(decision)),
        reason=reason_of(decision),
        evidence=evidence,
    )
