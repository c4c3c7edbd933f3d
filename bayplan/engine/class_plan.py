"""ClassPlan: which plugins of a profile take part for the pods of one class, and how their answers are obtained.

A plugin's answer about a row is one of four kinds: it depends on the node object (cached in a `NodePart`, shared by
many classes), on the row (cached in the `ClassView`), by a rule on the row's amounts (cached there, too, by the
kernel), or on more than that (live: called for every pod, on one row of each group).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..amounts.kernel import NO_RULES, JudgeRules, Weighted
from ..api.outline import of_outline
from ..api.pod import Pod
from ..api.pod_spec import PodSpec
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
from ..stamped_cache import StampedCache

SpecHook = tuple[Plugin, Callable[[PodSpec], Any]]
Scorer = tuple[ScorePlugin, int]
"""A Score plugin and its weight."""
OutlineAnswers = tuple[Sequence[Hashable], Sequence[int], Sequence[SpecHook]]
"""An answer of each hook that holds for all specs of an outline, and the hooks that have none, with their numbers."""


class Placed(NamedTuple):
    """A Filter plugin and its place in the order of filters."""

    place: int
    plugin: FilterPlugin


class ClassPlan(msgspec.Struct, frozen=True, eq=False):
    """The plan for pods that plugins with cached answers cannot tell apart."""

    pre_filters: list[PreFilterPlugin]
    """Those that are run for every pod."""
    asked_names: frozenset[str]
    skip_filter: frozenset[str]
    object_filters: list[Placed]
    rule_filters: list[Placed]
    """Filters that may give a rule; the first to do so has the fit rule."""
    row_filters: list[Placed]
    live_filters: list[Placed]
    object_scores: list[Scorer]
    object_raws: list[Scorer]
    """Scores that are normalised over the feasible nodes."""
    rule_scores: list[Scorer]
    row_scores: list[Scorer]
    row_raws: list[Scorer]
    live_pre_scores: list[PreScorePlugin]
    live_scores: list[Scorer]
    grouped: tuple[Plugin, ...]
    """The live plugins whose answers are equal for rows of equal marks."""
    is_plain: bool
    """Whether those are all live plugins, and no score on rows is normalised."""
    constant: int
    """The weighted points that `object_raws` give every node while all their raw scores are 0."""
    unsettled: frozenset[str]
    """Plugins with cached answers that PreFilter may skip for one pod of the class and not for another."""
    rules: JudgeRules = NO_RULES
    object_key: Hashable = None
    """Key on which the node part depends."""


class Planner:
    """Makes plans. Specs share one plan where they settle the same plugins and have equal keys for cached answers.

    Hooks that read no amounts are called once per outline; for each further spec only the others are. Stale:
    everything, when the stamp that is given with a pod is another one.
    """

    def __init__(self, profile: ProfileRuntime) -> None:
        self._filtering, self._scoring = profile.filtering, profile.scoring
        scores = [plugin for plugin, _ in self._scoring.scores]
        self._counting = {p for p in scores if is_normalized(p) and not ignores_repetition(p)}
        """The Score plugins that may normalise by how many nodes have a score."""
        every: dict[Plugin, None] = dict.fromkeys((*self._filtering.filters, *scores))
        self._preparing: Sequence[Plugin] = list(
            dict.fromkeys((*self._filtering.pre_filters, *self._scoring.pre_scores))
        )
        on_objects = [(p, p.spec_key) for p in every if p.scope is NODE_OBJECT]
        on_rows = [(p, p.spec_key) for p in every if p.scope is NODE_ROW]
        settling = [(plugin, plugin.settled) for plugin in self._preparing]
        self._hooks: Sequence[SpecHook] = [*settling, *on_objects, *on_rows]
        self._of_objects = slice(len(settling), len(settling) + len(on_objects))
        """Where the keys for answers on node objects are; codes come before, keys for answers on rows after them."""
        self._reading: set[int] = set()
        """The hooks, by their numbers, that read the amounts of some spec."""
        cached = [plugin for plugin in every if plugin.scope not in (CLUSTER, GROUPS)]
        self._is_by_spec = all(has_own(plugin, Plugin, "spec_key") for plugin in cached)
        """True while every cached answer is keyed by the spec alone."""
        self._plans: StampedCache[Hashable, ClassPlan] = StampedCache("plans", 8192)
        """By spec (or by whole pod), and by declarations, which several specs have in common."""
        self._outlines: StampedCache[Hashable, OutlineAnswers] = StampedCache(
            "answers about outlines"
        )
        self._sorted: StampedCache[Hashable, ClassPlan] = StampedCache("sorted plugins")

    def plan(self, pod: Pod, stamp: Hashable) -> tuple[ClassPlan, bool] | None:
        """The plan for the class of `pod`, and whether it was made for this pod.

        None when a settled PreFilter or PreScore refuses such pods.
        """
        spec = pod.pod_class.spec
        plan = self._plans.get(spec if self._is_by_spec else whole_key(pod), stamp)
        if plan is not None:
            return plan, False
        if pod.spec.pin:
            pod = pod.replace(spec=spec)  # pods that are equal but for the name share a plan
        made = self._make(pod, stamp)
        if made is not None:
            self._plans.put(spec if self._is_by_spec else whole_key(pod), made[0])
        return made

    def _make(self, pod: Pod, stamp: Hashable) -> tuple[ClassPlan, bool] | None:
        answers = self._answers(pod.spec, stamp)
        first = self._of_objects.start
        codes, of_objects = answers[:first], answers[self._of_objects]
        key, object_key = [*answers], [*codes, *of_objects]
        if None in answers:
            self._is_by_spec = False  # for some specs, a plugin reads the whole pod
            key.append(whole_key(pod))
        if None in of_objects:
            object_key.append(whole_key(pod))
        try:
            plan = self._plans.get(tuple(key), stamp)
        except TypeError:
            check_keys(self._hooks[first:], answers[first:])
            raise
        if plan is not None:
            return plan, False
        plan = self._sorted.get(tuple(codes))
        if plan is None:
            plan = self._sort_plugins(codes)
            if plan is None:
                return None
            self._sorted.put(tuple(codes), plan)
        plan = _with_rules(plan, pod, tuple(object_key))
        return self._plans.put(tuple(key), plan), True

    def _answers(self, spec: PodSpec, stamp: Hashable) -> list[Hashable]:
        """The answer of each hook about a spec; of `settled` the codes."""
        known = self._outlines.get(spec.outline, stamp)
        if known is None:
            known = self._outlines.put(spec.outline, self._answers_of_outline(spec))
        answers, reading, hooks = list(known[0]), known[1], known[2]
        for number, answer in zip(reading, _ask(hooks, spec), strict=True):
            answers[number] = answer
        return answers

    def _answers_of_outline(self, spec: PodSpec) -> OutlineAnswers:
        every = range(len(self._hooks))
        quiet = [number for number in every if number not in self._reading]
        found = of_outline(spec, partial(_ask, [self._hooks[number] for number in quiet]))
        known = {} if found is None else dict(zip(quiet, found, strict=True))
        for number in quiet if found is None else ():
            answer = of_outline(spec, partial(_ask, [self._hooks[number]]))
            if answer is None:
                self._reading.add(number)
            else:
                known[number] = answer[0]
        reading = [number for number in every if number not in known]
        answers = [known.get(number) for number in every]
        return answers, reading, [self._hooks[number] for number in reading]

    def _sort_plugins(self, settled: Sequence[Any]) -> ClassPlan | None:
        """A plan without what depends on the amounts that a spec asks for; None if a settled plugin refuses.

        The plugins that take part are sorted by what their answers depend on.
        """
        filtering, scoring = self._filtering, self._scoring
        codes = dict(zip(self._preparing, settled, strict=True))
        filtered: dict[str, Code | None] = {p.name: codes[p][0] for p in filtering.pre_filters}
        scored: dict[str, Code | None] = {p.name: codes[p][1] for p in scoring.pre_scores}
        every = (*filtered.values(), *scored.values())
        if any(code not in (None, Code.Success, Code.Skip) for code in every):
            return None
        asked = frozenset(name for name, code in filtered.items() if code is None)
        prepared = frozenset(name for name, code in scored.items() if code is None)
        filters: dict[On, list[Placed]] = {on: [] for on in On}
        for placed in map(Placed._make, enumerate(filtering.filters)):
            if filtered.get(placed.plugin.name) is not Code.Skip:
                on = _depends_on(placed.plugin, may_be_rule=placed.plugin.name not in asked)
                filters[on].append(placed)
        scores: dict[On, list[Scorer]] = {on: [] for on in On}
        raws: dict[On, list[Scorer]] = {on: [] for on in On}
        for plugin, weight in scoring.scores:
            if scored.get(plugin.name) is not Code.Skip:
                on, is_raw = On.MORE, False
                # PreScore may compute something else for every pod.
                if plugin not in self._counting and plugin.name not in prepared:
                    on = _depends_on(plugin, may_be_rule=not is_normalized(plugin))
                    is_raw = on is not On.MORE and is_normalized(plugin)
                (raws if is_raw else scores)[on].append((plugin, weight))
        live_pre_scores = [p for p in scoring.pre_scores if p.name in prepared]
        live: list[Plugin] = [*(p.plugin for p in filters[On.MORE]), *live_pre_scores]
        distinct = dict.fromkeys([*live, *(plugin for plugin, _ in scores[On.MORE])])
        by_marks = [plugin for plugin in distinct if plugin.scope is GROUPS]
        grouped = tuple(plugin for plugin in by_marks if plugin not in self._counting)
        cached = [p.plugin.name for p in (*filters[On.NODE], *filters[On.ROW])]
        return ClassPlan(
            pre_filters=[p for p in filtering.pre_filters if p.name in asked],
            asked_names=asked,
            skip_filter=frozenset(n for n, code in filtered.items() if code is Code.Skip),
            object_filters=filters[On.NODE],
            rule_filters=filters[On.AMOUNTS],
            row_filters=filters[On.ROW],
            live_filters=filters[On.MORE],
            object_scores=scores[On.NODE],
            object_raws=raws[On.NODE],
            rule_scores=scores[On.AMOUNTS],
            row_scores=scores[On.ROW],
            row_raws=raws[On.ROW],
            live_pre_scores=live_pre_scores,
            live_scores=scores[On.MORE],
            grouped=grouped,
            is_plain=len(grouped) == len(distinct) and not raws[On.ROW],
            # without Score plugins, every node has 1
            constant=_constant(raws[On.NODE]) if scoring.scores else 1,
            unsettled=asked.intersection(cached),
        )


def _ask(hooks: Sequence[SpecHook], spec: PodSpec) -> tuple[Hashable, ...]:
    """The answers of hooks about a spec; of `settled` the codes of PreFilter and PreScore, None where none is given."""
    return tuple([_codes_of(a) if isinstance(a, Settled) else a for a in ask_hooks(hooks, spec)])


def _codes_of(settled: Settled) -> tuple[Code | None, Code | None]:
    first, second, _ = settled
    return None if first is None else first.code, None if second is None else second.code


class On(Enum):
    """Dependencies of a plugin's answer about a row."""

    NODE = "the node object"
    AMOUNTS = "amounts of the row, by a rule"
    ROW = "the row"
    MORE = "more than the row"


def _depends_on(plugin: Plugin, may_be_rule: bool) -> On:
    if plugin.scope is NODE_OBJECT:
        return On.NODE
    if plugin.scope is not NODE_ROW:
        return On.MORE
    is_rule = may_be_rule and has_own(plugin, Plugin, "amount_rules")
    return On.AMOUNTS if is_rule else On.ROW


def _constant(raws: Sequence[Scorer]) -> int:
    """The weighted points of every node while all raw scores are 0."""
    nothing = np.zeros(1, dtype=np.int64)
    return sum(int(ask_hook(p, p.normalize, nothing)[0]) * weight for p, weight in raws)


def _with_rules(plan: ClassPlan, pod: Pod, object_key: Hashable) -> ClassPlan:
    """The plan of an outline with the rules on amounts for one spec."""
    ruled = [p.plugin for p in plan.rule_filters] + [plugin for plugin, _ in plan.rule_scores]
    hooks = [(plugin, plugin.amount_rules) for plugin in dict.fromkeys(ruled)]
    answers = zip(hooks, ask_hooks(hooks, pod), strict=True)
    rules = {plugin: answer for (plugin, _), answer in answers}
    fit, fit_place, row_filters = None, 0, plan.row_filters
    for placed in plan.rule_filters:
        rule = rules[placed.plugin].fit
        if rule is not None and rule.is_codable and fit is None:
            fit, fit_place = rule, placed.place
        else:
            row_filters = sorted([*row_filters, placed])
    weighted: list[Weighted] = []
    row_scores, live_scores = plan.row_scores, plan.live_scores
    for plugin, weight in plan.rule_scores:
        score_rule = rules[plugin].score
        if rules[plugin].scores_by_more:
            live_scores = [*live_scores, (plugin, weight)]
        elif score_rule is not None:
            weighted.append(Weighted(score_rule, weight))
        else:
            row_scores = [*row_scores, (plugin, weight)]
    return msgspec.structs.replace(
        plan,
        rules=JudgeRules(fit, fit_place, weighted),
        row_filters=row_filters,
        row_scores=row_scores,
        live_scores=live_scores,
        is_plain=plan.is_plain and live_scores is plan.live_scores,
        object_key=object_key,
    )


def whole_key(pod: Pod) -> Hashable:
    """All of a pod that a plugin which declares nothing may read: its class, its claims and its annotations."""
    annotations = frozenset(pod.annotations.items()) if pod.annotations else None
    return pod.pod_class, pod.spec.claims, annotations
