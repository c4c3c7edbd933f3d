"""ClassPlan: which plugins of a profile take part for the pods of one class, and how their answers are obtained.

A plugin's answer about a row is one of four kinds: it depends on the node object (cached in a `NodePart`, shared by
many classes), on the row (cached in the `ClassView`), by a rule on the row's amounts (cached there, too, by the
kernel), or on more than that (live: called for every pod, on one row of each group).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import NamedTuple

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

SpecHook = tuple[Plugin, Callable[[PodSpec], Hashable]]
Scorer = tuple[ScorePlugin, int]
"""A Score plugin and its weight."""


SettledCodes = tuple[Code | None, Code | None]
"""The codes of PreFilter and PreScore that a spec settles."""


class Placed(NamedTuple):
    """A Filter plugin and its place in the order of filters."""

    place: int
    plugin: FilterPlugin


class Points(NamedTuple):
    """The plugins of a profile, at the points that decide where a pod goes."""

    pre_filters: Sequence[PreFilterPlugin]
    filters: Sequence[FilterPlugin]
    pre_scores: Sequence[PreScorePlugin]
    scores: Sequence[Scorer]
    counting: frozenset[Plugin]
    """The Score plugins that may normalise by how many nodes have a score."""

    @classmethod
    def of(cls, profile: ProfileRuntime) -> Points:
        """The plugins of `profile`."""
        filtering, scoring = profile.filtering, profile.scoring
        normalized = [plugin for plugin, _ in scoring.scores if is_normalized(plugin)]
        counting = frozenset(p for p in normalized if not ignores_repetition(p))
        filters = filtering.pre_filters, filtering.filters
        return cls(*filters, scoring.pre_scores, scoring.scores, counting)


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


class Declared(NamedTuple):
    """Declarations of plugins about a spec, or about all specs of an outline."""

    settled: tuple[SettledCodes, ...]
    of_objects: tuple[Hashable, ...]
    of_rows: tuple[Hashable, ...]


READS_AMOUNTS = object()
"""Stands for the key of a plugin on rows, where it differs between specs of an outline."""


class OutlinePlan(NamedTuple):
    """The plan for specs of one outline, without the rules on amounts."""

    plan: ClassPlan | None
    """None if a settled PreFilter or PreScore refuses such pods."""
    declared: Declared
    amount_hooks: Sequence[SpecHook]
    """`spec_key` of the plugins on rows that read amounts in it."""


class Planner:
    """Makes plans. Specs share one plan where they settle the same plugins and have equal keys for cached answers.

    Hooks that read no amounts are called once per outline; for each further spec only those of plugins on amounts are.
    Stale: everything, when the stamp that is given with a pod is another one.
    """

    def __init__(self, points: Points) -> None:
        self._points = points
        every: dict[Plugin, None] = dict.fromkeys(
            (*points.filters, *(plugin for plugin, _ in points.scores))
        )
        preparing: dict[Plugin, None] = dict.fromkeys((*points.pre_filters, *points.pre_scores))
        self._settled_hooks = [(plugin, plugin.settled) for plugin in preparing]
        self._object_hooks = [(p, p.spec_key) for p in every if p.scope is NODE_OBJECT]
        self._row_hooks = [(p, p.spec_key) for p in every if p.scope is NODE_ROW]
        cached = [plugin for plugin in every if plugin.scope not in (CLUSTER, GROUPS)]
        self._is_by_spec = all(has_own(plugin, Plugin, "spec_key") for plugin in cached)
        """True while every cached answer is keyed by the spec alone."""
        self._plans: StampedCache[Hashable, ClassPlan] = StampedCache("plans", 8192)
        """By spec (or by whole pod), and by declarations, which several specs have in common."""
        self._outlines: StampedCache[Hashable, OutlinePlan] = StampedCache("plans of outlines")
        """By outline, or by spec where `settled`, or `spec_key` on node objects, reads amounts."""

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
        made = self._make(pod, self._outline_plan(spec, stamp), stamp)
        if made is not None:
            self._plans.put(spec if self._is_by_spec else whole_key(pod), made[0])
        return made

    def _make(
        self, pod: Pod, outline: OutlinePlan, stamp: Hashable
    ) -> tuple[ClassPlan, bool] | None:
        if outline.plan is None:
            return None
        settled, of_objects, of_rows = outline.declared
        keys = ask_hooks(outline.amount_hooks, pod.spec)
        object_key: Hashable = (settled, of_objects)
        is_whole = None in of_objects or None in of_rows
        if is_whole or None in keys:
            self._is_by_spec = False  # for some specs, a plugin reads the whole pod
            keys.append(whole_key(pod))
            if is_whole:
                object_key = (object_key, keys[-1])
        try:
            plan = self._plans.get((outline.declared, *keys), stamp)
        except TypeError:
            check_keys(self._object_hooks, of_objects)
            check_keys(self._row_hooks, of_rows)
            check_keys(outline.amount_hooks, keys)
            raise
        if plan is not None:
            return plan, False
        plan = _with_rules(outline.plan, pod, object_key)
        return self._plans.put((outline.declared, *keys), plan), True

    def _outline_plan(self, spec: PodSpec, stamp: Hashable) -> OutlinePlan:
        found = self._outlines.get(spec.outline, stamp) or self._outlines.get(spec, stamp)
        if found is not None:
            return found
        key: Hashable = spec.outline
        declared = of_outline(spec, partial(self._declared, row_keys=self._row_keys))
        if declared is None:
            key, declared = spec, self._declared(spec, partial(_keys, self._row_hooks))
        hooks = zip(self._row_hooks, declared.of_rows, strict=True)
        amount_hooks = [hook for hook, row_key in hooks if row_key is READS_AMOUNTS]
        plan = self._without_rules(declared.settled)
        return self._outlines.put(key, OutlinePlan(plan, declared, amount_hooks))

    def _declared(
        self, spec: PodSpec, row_keys: Callable[[PodSpec], Iterable[Hashable]]
    ) -> Declared:
        settled = tuple([_codes_of(each) for each in ask_hooks(self._settled_hooks, spec)])
        return Declared(settled, _keys(self._object_hooks, spec), tuple(row_keys(spec)))

    def _row_keys(self, outline: PodSpec) -> Iterator[Hashable]:
        for entry in self._row_hooks:
            keys = of_outline(outline, partial(_keys, [entry]))
            yield READS_AMOUNTS if keys is None else keys[0]

    def _without_rules(self, settled: Sequence[SettledCodes]) -> ClassPlan | None:
        """A plan without what depends on the amounts that a spec asks for; None if a settled plugin refuses."""
        codes = dict(zip([plugin for plugin, _ in self._settled_hooks], settled, strict=True))
        filtered = {plugin.name: codes[plugin][0] for plugin in self._points.pre_filters}
        scored = {plugin.name: codes[plugin][1] for plugin in self._points.pre_scores}
        every = (*filtered.values(), *scored.values())
        if any(code not in (None, Code.Success, Code.Skip) for code in every):
            return None
        return _sort_plugins(self._points, filtered, scored)


def _keys(hooks: Sequence[SpecHook], spec: PodSpec) -> tuple[Hashable, ...]:
    return tuple(ask_hooks(hooks, spec))


def _codes_of(settled: Settled) -> SettledCodes:
    first, second, _ = settled
    return None if first is None else first.code, None if second is None else second.code


def _sort_plugins(
    points: Points, filtered: Mapping[str, Code | None], scored: Mapping[str, Code | None]
) -> ClassPlan:
    """The plugins that take part, by what their answers depend on; given are the settled codes by name."""
    asked = frozenset(name for name, code in filtered.items() if code is None)
    prepared = frozenset(name for name, code in scored.items() if code is None)
    filters: dict[On, list[Placed]] = {on: [] for on in On}
    for placed in map(Placed._make, enumerate(points.filters)):
        if filtered.get(placed.plugin.name) is not Code.Skip:
            filters[_filters_on(placed.plugin, asked)].append(placed)
    scores: dict[On, list[Scorer]] = {on: [] for on in On}
    raws: dict[On, list[Scorer]] = {on: [] for on in On}
    for plugin, weight in points.scores:
        if scored.get(plugin.name) is not Code.Skip:
            on = On.MORE if plugin in points.counting else _scores_on(plugin, prepared)
            is_raw = on is not On.MORE and is_normalized(plugin)
            (raws if is_raw else scores)[on].append((plugin, weight))
    live_pre_scores = [p for p in points.pre_scores if p.name in prepared]
    live: list[Plugin] = [*(p.plugin for p in filters[On.MORE]), *live_pre_scores]
    distinct = dict.fromkeys([*live, *(plugin for plugin, _ in scores[On.MORE])])
    by_marks = [plugin for plugin in distinct if plugin.scope is GROUPS]
    grouped = tuple(plugin for plugin in by_marks if plugin not in points.counting)
    cached = [p.plugin.name for p in (*filters[On.NODE], *filters[On.ROW])]
    return ClassPlan(
        pre_filters=[p for p in points.pre_filters if p.name in asked],
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
        constant=_constant(raws[On.NODE]) if points.scores else 1,
        unsettled=asked.intersection(cached),
    )


class On(Enum):
    """Dependencies of a plugin's answer about a row."""

    NODE = "the node object"
    AMOUNTS = "amounts of the row, by a rule"
    ROW = "the row"
    MORE = "more than the row"


def _filters_on(plugin: FilterPlugin, asked: frozenset[str]) -> On:
    if plugin.scope is NODE_OBJECT:
        return On.NODE
    if plugin.scope is not NODE_ROW:
        return On.MORE
    may_be_rule = plugin.name not in asked and has_own(plugin, Plugin, "amount_rules")
    return On.AMOUNTS if may_be_rule else On.ROW


def _scores_on(plugin: ScorePlugin, prepared: frozenset[str]) -> On:
    if plugin.name in prepared:
        return On.MORE  # what PreScore computes may differ for every pod
    if plugin.scope is NODE_OBJECT:
        return On.NODE
    if plugin.scope is not NODE_ROW:
        return On.MORE
    may_be_rule = not is_normalized(plugin) and has_own(plugin, Plugin, "amount_rules")
    return On.AMOUNTS if may_be_rule else On.ROW


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
            fit, fit_place = rule._replace(plugin=placed.plugin.name), placed.place
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
