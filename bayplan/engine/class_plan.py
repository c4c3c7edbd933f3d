"""ClassPlan: which plugins of a profile take part for the pods of one class, and how their answers are obtained.

A plugin's answer about a row depends on the node object (cached in a `NodePart`, shared by many classes), on the row
(cached in the `ClassView`), on the row's amounts by a rule (cached there, too, by the kernel), or on more than that
(live: called for every pod, on one row of each group).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from ..amounts.kernel import NO_JUDGE_RULES, JudgeRules, Weighted
from ..api.pod import Pod
from ..framework import (
    CLUSTER,
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    Code,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Settled,
)
from ..runtime import ProfileRuntime
from ..runtime.plugin_calls import (
    ask_hook,
    ask_hooks,
    check_keys,
    has_own,
    ignores_repetition,
    is_normalized,
)
from ..runtime.spec_answers import SpecAnswers
from ..stamped_cache import StampedCache

T = TypeVar("T")


class PlacedFilter(NamedTuple):
    """A Filter plugin and its place in the order of filters."""

    place: int
    plugin: FilterPlugin


class Scorer(NamedTuple):
    """A Score plugin and its weight."""

    plugin: ScorePlugin
    weight: int
    is_raw: bool
    """Whether its scores are normalised over the feasible nodes."""


class ByScope(NamedTuple, Generic[T]):
    """Plugins by what their answers about a row depend on."""

    on_node: list[T]
    by_rule: list[T]
    """Plugins that may give a rule on the row's amounts; the first filter that does has the fit rule."""
    on_row: list[T]
    live: list[T]


class ClassPlan(msgspec.Struct, frozen=True, eq=False):
    """The plan for pods that plugins with cached answers cannot tell apart."""

    pre_filters: dict[str, PreFilterPlugin]
    """Plugins that run for every pod, by name."""
    skip_filter: frozenset[str]
    filters: ByScope[PlacedFilter]
    scores: ByScope[Scorer]
    live_pre_scores: list[PreScorePlugin]
    grouped: tuple[Plugin, ...]
    """The live plugins whose answers are equal for rows of equal marks."""
    is_grouped: bool
    """Whether every live plugin is in `grouped`, and no score on rows is normalised."""
    constant: int
    """The weighted points of every node while all raw scores of node objects are 0."""
    skippable: frozenset[str]
    """Plugins with cached answers that PreFilter may skip for some pods of the class only."""
    rules: JudgeRules = NO_JUDGE_RULES
    object_key: Hashable = None
    """Key on which the node part depends."""


class Planner:
    """Makes plans.

    Specs share a plan if they settle the same plugins and have equal keys for cached answers. Stale: all plans, when
    the stamp changes.
    """

    def __init__(self, profile: ProfileRuntime) -> None:
        self._filtering, self._scoring = profile.filtering, profile.scoring
        scores = [plugin for plugin, _ in self._scoring.scores]
        self._counting = {p for p in scores if is_normalized(p) and not ignores_repetition(p)}
        """The Score plugins whose `normalize` may depend on the number of nodes with a score."""
        every: dict[Plugin, None] = dict.fromkeys((*self._filtering.filters, *scores))
        self._preparing: Sequence[Plugin] = list(
            dict.fromkeys((*self._filtering.pre_filters, *self._scoring.pre_scores))
        )
        on_objects = [(p, p.spec_key) for p in every if p.scope is NODE_OBJECT]
        on_rows = [(p, p.spec_key) for p in every if p.scope is NODE_ROW]
        settling = [(plugin, plugin.settled) for plugin in self._preparing]
        self._keys = [*on_objects, *on_rows]
        self._answers = SpecAnswers([*settling, *self._keys], _codes_of)
        self._of_objects = slice(len(settling), len(settling) + len(on_objects))
        """Positions of the keys for answers on node objects, between the codes and the keys for answers on rows."""
        cached = [plugin for plugin in every if plugin.scope not in (CLUSTER, GROUPS)]
        self._is_by_spec = all(has_own(plugin, Plugin, "spec_key") for plugin in cached)
        """True while every cached answer is keyed by the spec alone."""
        self._plans: StampedCache[Hashable, ClassPlan] = StampedCache("plans", 8192)
        """By spec (or by whole pod), and by declarations, which several specs have in common."""
        self._sorted: StampedCache[Hashable, ClassPlan] = StampedCache("sorted plugins")

    def plan(self, pod: Pod, stamp: Hashable) -> tuple[ClassPlan, bool] | None:
        """The plan for the class of `pod`, which has no pin, and whether it was made for this pod.

        None when a settled PreFilter or PreScore refuses such pods.
        """
        spec = pod.pod_class.spec
        plan = self._plans.get(spec if self._is_by_spec else whole_key(pod), stamp)
        if plan is not None:
            return plan, False
        made = self._make(pod, stamp)
        if made is not None:
            self._plans.put(spec if self._is_by_spec else whole_key(pod), made[0])
        return made

    def _make(self, pod: Pod, stamp: Hashable) -> tuple[ClassPlan, bool] | None:
        answers = self._answers.about(pod.spec, stamp)
        codes = answers[: self._of_objects.start]
        if None in answers:  # for some specs, a plugin reads the whole pod
            self._is_by_spec, whole = False, whole_key(pod)
            answers = tuple([whole if answer is None else answer for answer in answers])
        try:
            plan = self._plans.get(answers, stamp)
        except TypeError:
            check_keys(self._keys, answers[len(codes) :])
            raise
        if plan is not None:
            return plan, False
        plan = self._sorted.get(codes) or self._sort_plugins(codes)
        if plan is None:
            return None
        self._sorted.put(codes, plan)
        plan = _with_rules(plan, pod, (codes, answers[self._of_objects]))
        return self._plans.put(answers, plan), True

    def _sort_plugins(self, settled_codes: Sequence[Any]) -> ClassPlan | None:
        """A plan without the rules on amounts, which differ by spec; None if a settled plugin refuses.

        The plugins that take part are sorted by the dependencies of their answers.
        """
        filtering, scoring = self._filtering, self._scoring
        codes = dict(zip(self._preparing, settled_codes, strict=True))
        filtered: dict[str, Code | None] = {p.name: codes[p][0] for p in filtering.pre_filters}
        scored: dict[str, Code | None] = {p.name: codes[p][1] for p in scoring.pre_scores}
        every = (*filtered.values(), *scored.values())
        if any(code not in (None, Code.Success, Code.Skip) for code in every):
            return None
        called = {p.name: p for p in filtering.pre_filters if filtered[p.name] is None}
        prepared = frozenset(name for name, code in scored.items() if code is None)
        filters: ByScope[PlacedFilter] = ByScope([], [], [], [])
        for placed in map(PlacedFilter._make, enumerate(filtering.filters)):
            if filtered.get(placed.plugin.name) is not Code.Skip:
                may_be_rule = placed.plugin.name not in called
                _list_for(placed.plugin, filters, may_be_rule).append(placed)
        scores: ByScope[Scorer] = ByScope([], [], [], [])
        for plugin, weight in scoring.scores:
            if scored.get(plugin.name) is not Code.Skip:
                is_raw = is_normalized(plugin)
                # PreScore may give another result for every pod.
                is_live = plugin in self._counting or plugin.name in prepared
                found = scores.live if is_live else _list_for(plugin, scores, not is_raw)
                found.append(Scorer(plugin, weight, is_raw))
        live_pre_scores = [p for p in scoring.pre_scores if p.name in prepared]
        judging = (*(p.plugin for p in filters.live), *(s.plugin for s in scores.live))
        live: dict[Plugin, None] = dict.fromkeys((*judging, *live_pre_scores))
        grouped = tuple(p for p in live if p.scope is GROUPS and p not in self._counting)
        cached = {p.plugin.name for p in (*filters.on_node, *filters.on_row)}
        has_row_raws = any(scorer.is_raw for scorer in scores.on_row)
        return ClassPlan(
            pre_filters=called,
            skip_filter=frozenset(n for n, code in filtered.items() if code is Code.Skip),
            filters=filters,
            scores=scores,
            live_pre_scores=live_pre_scores,
            grouped=grouped,
            is_grouped=len(grouped) == len(live) and not has_row_raws,
            # without Score plugins, every node has 1
            constant=_constant(scores.on_node) if scoring.scores else 1,
            skippable=frozenset(cached & called.keys()),
        )


def _codes_of(answer: Any) -> Any:
    """The key unchanged; for `settled` the codes of PreFilter and PreScore, None if absent."""
    if not isinstance(answer, Settled):
        return answer
    first, second, _ = answer
    return None if first is None else first.code, None if second is None else second.code


def _list_for(plugin: Plugin, lists: ByScope[T], may_be_rule: bool) -> list[T]:
    if plugin.scope is NODE_OBJECT:
        return lists.on_node
    if plugin.scope is not NODE_ROW:
        return lists.live
    is_rule = may_be_rule and has_own(plugin, Plugin, "amount_rules")
    return lists.by_rule if is_rule else lists.on_row


def _constant(scores: Sequence[Scorer]) -> int:
    """The weighted points of every node while all raw scores are 0."""
    nothing = np.zeros(1, dtype=np.int64)
    raws = [(plugin, weight) for plugin, weight, is_raw in scores if is_raw]
    return sum(int(ask_hook(p, p.normalize, nothing)[0]) * weight for p, weight in raws)


def _with_rules(plan: ClassPlan, pod: Pod, object_key: Hashable) -> ClassPlan:
    """The plan of an outline with the rules on amounts for one spec."""
    (_, may_fit, on_row, _), (_, may_score, scores_on_row, live) = plan.filters, plan.scores
    plugins = dict.fromkeys([*(p.plugin for p in may_fit), *(s.plugin for s in may_score)])
    hooks = [(plugin, plugin.amount_rules) for plugin in plugins]
    rules = dict(zip(plugins, ask_hooks(hooks, pod), strict=True))
    fit, fit_place = None, 0
    for placed in may_fit:
        rule = rules[placed.plugin].fit
        if rule is not None and rule.is_codable and fit is None:
            fit, fit_place = rule, placed.place
        else:
            on_row = sorted([*on_row, placed])
    weighted: list[Weighted] = []
    for scorer in may_score:
        found = rules[scorer.plugin]
        if found.scores_by_more:
            live = [*live, scorer]
        elif found.score is not None:
            weighted.append(Weighted(found.score, scorer.weight))
        else:
            scores_on_row = [*scores_on_row, scorer]
    return msgspec.structs.replace(
        plan,
        rules=JudgeRules(fit, fit_place, weighted),
        filters=plan.filters._replace(on_row=on_row),
        scores=plan.scores._replace(on_row=scores_on_row, live=live),
        is_grouped=plan.is_grouped and live is plan.scores.live,
        object_key=object_key,
    )


def whole_key(pod: Pod) -> Hashable:
    """The key of a pod for plugins that declare nothing: its class, its claims and its annotations."""
    annotations = frozenset(pod.annotations.items()) if pod.annotations else None
    return pod.pod_class, pod.spec.claims, annotations
