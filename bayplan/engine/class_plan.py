"""ClassPlan: which plugins of a profile take part for the pods of one class, and how their answers are obtained.

A plugin's answer about a row is one of four kinds: it depends on the node object (cached in a `NodePart`, shared by
many classes), on the row (cached in the `ClassView`), by a rule on the row's amounts (cached there, too, by the
kernel), or on more than that (live: called for every pod, on one row of each group).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ..amounts import AmountRules, FitRule
from ..amounts.kernel import Weighted
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
from ..framework.interface import goes_by_outline
from ..runtime.plugin_calls import ask_hook, ask_hooks, check_keys, has_own, is_normalized
from ..stamped_cache import StampedCache

SpecHook = tuple[Plugin, Callable[[PodSpec], Hashable]]
Scorer = tuple[ScorePlugin, int]
"""A Score plugin and its weight."""


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


class ClassPlan(msgspec.Struct, eq=False):
    """The plan for pods that plugins with cached answers cannot tell apart."""

    pre_filters: list[PreFilterPlugin] = msgspec.field(default_factory=list)
    """Those that are run for every pod."""
    asked_names: frozenset[str] = frozenset()
    skip_filter: frozenset[str] = frozenset()
    skip_score: frozenset[str] = frozenset()
    object_filters: list[Placed] = msgspec.field(default_factory=list)
    object_scores: list[Scorer] = msgspec.field(default_factory=list)
    object_raws: list[Scorer] = msgspec.field(default_factory=list)
    """Scores that are normalised over the feasible nodes."""
    fit: FitRule | None = None
    fit_place: int = 0
    rules: list[Weighted] = msgspec.field(default_factory=list)
    rule_filters: list[Placed] = msgspec.field(default_factory=list)
    """Filters that may give a rule; the first to do so is `fit`."""
    rule_scores: list[Scorer] = msgspec.field(default_factory=list)
    rule_hooks: list[tuple[Plugin, Callable[[Pod], AmountRules]]] = msgspec.field(
        default_factory=list
    )
    """`amount_rules` of the plugins of both."""
    row_filters: list[Placed] = msgspec.field(default_factory=list)
    row_scores: list[Scorer] = msgspec.field(default_factory=list)
    row_raws: list[Scorer] = msgspec.field(default_factory=list)
    live_filters: list[Placed] = msgspec.field(default_factory=list)
    live_pre_scores: list[PreScorePlugin] = msgspec.field(default_factory=list)
    live_scores: list[Scorer] = msgspec.field(default_factory=list)
    grouped: tuple[Plugin, ...] = ()
    """The live plugins with scope GROUPS."""
    group_hooks: list[SpecHook] = msgspec.field(default_factory=list)
    """`spec_key` of these."""
    is_plain: bool = True
    """Whether those are all live plugins, and no score on rows is normalised."""
    has_row_plugins: bool = False
    """Whether plugins are called for changed rows."""
    constant: int = 0
    """The weighted points that `object_raws` give every node while all their raw scores are 0."""
    unsettled: frozenset[str] = frozenset()
    """Plugins with cached answers that PreFilter may skip for one pod of the class and not for another."""
    object_key: Hashable = None
    """What the node part depends on."""


class Form(msgspec.Struct, eq=False):
    """What plugins declare about specs that differ in amounts only."""

    shape: ClassPlan | None
    """The plan without the rules on amounts; None if a settled PreFilter or PreScore refuses such pods."""
    object_key: Hashable
    is_whole: bool
    """Whether a plugin has no `spec_key`: answers may depend on the whole pod."""


class Planner:
    """Makes plans. Specs share one plan where they settle the same plugins and have equal keys for cached answers.

    Hooks that read no amounts (`by_outline`) are called once per outline; for each further spec only those of plugins
    on amounts are. Stale: everything, when the stamp that is given with a pod is another one.
    """

    def __init__(self, points: Points) -> None:
        self._points = points
        every: dict[Plugin, None] = dict.fromkeys(
            (*points.filters, *(plugin for plugin, _ in points.scores))
        )
        preparing: dict[Plugin, None] = dict.fromkeys((*points.pre_filters, *points.pre_scores))
        self._settled_hooks = [(plugin, plugin.settled) for plugin in preparing]
        self._object_hooks = [(p, p.spec_key) for p in every if p.scope is NODE_OBJECT]
        rows = [(p, p.spec_key) for p in every if p.scope is NODE_ROW]
        self._row_hooks = [entry for entry in rows if goes_by_outline(entry[1])]
        self._amount_hooks = [entry for entry in rows if not goes_by_outline(entry[1])]
        self._is_by_outline = all(
            goes_by_outline(hook) for _, hook in (*self._settled_hooks, *self._object_hooks)
        )
        kept = [plugin for plugin in every if plugin.scope not in (CLUSTER, GROUPS)]
        self._is_by_spec = all(has_own(plugin, Plugin, "spec_key") for plugin in kept)
        """True while every cached answer is keyed by the spec alone."""
        self._of_specs: StampedCache[Hashable, ClassPlan] = StampedCache("plans of specs")
        self._plans: StampedCache[Hashable, ClassPlan] = StampedCache("plans")
        self._of_outlines: StampedCache[Hashable, Form] = StampedCache("forms of outlines")
        """By outline, or by spec where a hook may read amounts."""
        self._forms: StampedCache[Hashable, Form] = StampedCache("forms")

    def plan(self, pod: Pod, stamp: Hashable) -> ClassPlan | None:
        """The plan for the class of `pod`; None when a settled PreFilter or PreScore refuses such pods."""
        key: Hashable = pod.pod_class.spec if self._is_by_spec else whole_key(pod)
        plan = self._of_specs.get(key, stamp)
        if plan is None:
            plan = self._make(pod, stamp)
            if plan is not None:
                key = pod.pod_class.spec if self._is_by_spec else whole_key(pod)
                self._of_specs.put(key, plan)
        return plan

    def _make(self, pod: Pod, stamp: Hashable) -> ClassPlan | None:
        spec = pod.pod_class.spec
        if pod.spec.pin:
            pod = pod.replace(spec=spec)  # pods that are equal but for the name share a plan
        form = self._form_of(spec, stamp)
        if form.shape is None:
            return None
        object_key = form.object_key
        keys = ask_hooks(self._amount_hooks, spec)
        if form.is_whole or None in keys:
            self._is_by_spec = False  # for some specs, a plugin reads the whole pod
            keys.append(whole_key(pod))
            if form.is_whole:
                object_key = (object_key, keys[-1])
        try:
            plan = self._plans.get((form, *keys), stamp)
        except TypeError:
            check_keys(self._amount_hooks, keys)
            raise
        if plan is None:
            plan = self._plans.put((form, *keys), _with_rules(form.shape, pod, object_key))
        return plan

    def _form_of(self, spec: PodSpec, stamp: Hashable) -> Form:
        """What does not depend on amounts."""
        key: Hashable = spec.outline if self._is_by_outline else spec
        form = self._of_outlines.get(key, stamp)
        if form is not None:
            return form
        settled = tuple([_codes_of(said) for said in ask_hooks(self._settled_hooks, spec)])
        of_objects = tuple(ask_hooks(self._object_hooks, spec))
        of_rows = tuple(ask_hooks(self._row_hooks, spec))
        try:
            form = self._forms.get((settled, of_objects, of_rows), stamp)
        except TypeError:
            check_keys(self._object_hooks, of_objects)
            check_keys(self._row_hooks, of_rows)
            raise
        if form is None:
            is_whole = None in of_objects or None in of_rows
            made = Form(self._shape_of(settled), (settled, of_objects), is_whole)
            form = self._forms.put((settled, of_objects, of_rows), made)
        return self._of_outlines.put(key, form)

    def _shape_of(self, settled: Sequence[SettledCodes]) -> ClassPlan | None:
        points = self._points
        codes = dict(zip([plugin for plugin, _ in self._settled_hooks], settled, strict=True))
        filtered = [codes[plugin][0] for plugin in points.pre_filters]
        scored = [codes[plugin][1] for plugin in points.pre_scores]
        return _shape(points, filtered, scored)


SettledCodes = tuple[Code | None, Code | None]
"""The codes of PreFilter and PreScore that a spec settles."""


def _codes_of(said: Settled) -> SettledCodes:
    first, second, _ = said
    return None if first is None else first.code, None if second is None else second.code


def _shape(
    points: Points, filtered: Sequence[Code | None], scored: Sequence[Code | None]
) -> ClassPlan | None:
    """A plan without what depends on the amounts that a spec asks for."""
    if any(code not in (None, Code.Success, Code.Skip) for code in (*filtered, *scored)):
        return None
    plan = ClassPlan()
    pre_filters = list(zip(points.pre_filters, filtered, strict=True))
    plan.pre_filters = [plugin for plugin, code in pre_filters if code is None]
    plan.asked_names = frozenset(plugin.name for plugin in plan.pre_filters)
    plan.skip_filter = frozenset(p.name for p, code in pre_filters if code is Code.Skip)
    pre_scores = list(zip(points.pre_scores, scored, strict=True))
    plan.live_pre_scores = [plugin for plugin, code in pre_scores if code is None]
    plan.skip_score = frozenset(p.name for p, code in pre_scores if code is Code.Skip)
    _sort_filters(plan, points)
    _sort_scores(plan, points)
    live = [*(p.plugin for p in plan.live_filters), *plan.live_pre_scores]
    live += [plugin for plugin, _ in plan.live_scores]
    distinct: dict[Plugin, None] = dict.fromkeys(live)
    plan.grouped = tuple(plugin for plugin in distinct if plugin.scope is GROUPS)
    plan.group_hooks = [(plugin, plugin.spec_key) for plugin in plan.grouped]
    plan.is_plain = len(plan.grouped) == len(distinct) and not plan.row_raws
    nothing = np.zeros(1, dtype=np.int64)
    plan.constant = sum(
        int(ask_hook(p, p.normalize, nothing)[0]) * weight for p, weight in plan.object_raws
    )
    if not points.scores:
        plan.constant = 1  # so it is without Score plugins
    ruled = dict.fromkeys([p.plugin for p in plan.rule_filters] + [p for p, _ in plan.rule_scores])
    plan.rule_hooks = [(plugin, plugin.amount_rules) for plugin in ruled]
    kept = [p.plugin.name for p in (*plan.object_filters, *plan.row_filters)]
    plan.unsettled = frozenset(p.name for p in plan.pre_filters).intersection(kept)
    return plan


def _sort_filters(plan: ClassPlan, points: Points) -> None:
    asked = {plugin.name for plugin in plan.pre_filters}
    for place, plugin in enumerate(points.filters):
        if plugin.name in plan.skip_filter:
            continue
        placed = Placed(place, plugin)
        if plugin.scope is NODE_OBJECT:
            plan.object_filters.append(placed)
        elif plugin.scope is NODE_ROW:
            may_be_rule = plugin.name not in asked and has_own(plugin, Plugin, "amount_rules")
            (plan.rule_filters if may_be_rule else plan.row_filters).append(placed)
        else:
            plan.live_filters.append(placed)


def _sort_scores(plan: ClassPlan, points: Points) -> None:
    asked = {plugin.name for plugin in plan.live_pre_scores}
    for scorer, weight in points.scores:
        if scorer.name in plan.skip_score:
            continue
        entry = (scorer, weight)
        if scorer.name in asked or has_own(scorer, ScorePlugin, "normalize_rows"):
            plan.live_scores.append(entry)  # what PreScore computes may differ for every pod
        elif scorer.scope is NODE_OBJECT:
            (plan.object_raws if is_normalized(scorer) else plan.object_scores).append(entry)
        elif scorer.scope is NODE_ROW and is_normalized(scorer):
            plan.row_raws.append(entry)
        elif scorer.scope is NODE_ROW:
            may_be_rule = has_own(scorer, Plugin, "amount_rules")
            (plan.rule_scores if may_be_rule else plan.row_scores).append(entry)
        else:
            plan.live_scores.append(entry)


def _with_rules(shape: ClassPlan, pod: Pod, object_key: Hashable) -> ClassPlan:
    """The shape with the rules on amounts for one spec."""
    plan = msgspec.structs.replace(shape, rules=[], object_key=object_key)
    said = ask_hooks(shape.rule_hooks, pod)
    rules = {plugin: one for (plugin, _), one in zip(shape.rule_hooks, said, strict=True)}
    for placed in shape.rule_filters:
        rule = rules[placed.plugin].fit
        if rule is not None and rule.is_codable and plan.fit is None:
            plan.fit, plan.fit_place = rule, placed.place
        else:
            plan.row_filters = sorted([*plan.row_filters, placed])
    for plugin, weight in shape.rule_scores:
        score_rule = rules[plugin].score
        if rules[plugin].scores_by_more:
            plan.live_scores, plan.is_plain = [*plan.live_scores, (plugin, weight)], False
        elif score_rule is not None:
            plan.rules.append(Weighted(score_rule, weight))
        else:
            plan.row_scores = [*plan.row_scores, (plugin, weight)]
    plan.has_row_plugins = bool(plan.row_filters or plan.row_scores or plan.row_raws)
    return plan


def whole_key(pod: Pod) -> Hashable:
    """All of a pod that a plugin which declares nothing may read: its class, its claims and its annotations."""
    annotations = frozenset(pod.annotations.items()) if pod.annotations else None
    return pod.pod_class, pod.spec.claims, annotations
