"""ClassPlan: which plugins of a profile take part for the pods of one class, and how their answers are obtained.

A plugin's answer about a row is one of four kinds: it depends on the node object (cached in a `NodePart`, shared by
many classes), on the row (cached in the `ClassView`), by a rule on the row's amounts (cached there, too, by the
kernel), or on more than that (live: called for every pod, on one row of each group).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from ..amounts import AmountRules
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
    counting: frozenset[Plugin]
    """The plugins that may normalise by how many nodes have a score."""
    rule_scores: list[Scorer]
    row_scores: list[Scorer]
    row_raws: list[Scorer]
    live_pre_scores: list[PreScorePlugin]
    live_scores: list[Scorer]
    rule_hooks: list[tuple[Plugin, Callable[[Pod], AmountRules]]]
    """`amount_rules` of the plugins of `rule_filters` and `rule_scores`."""
    grouped: tuple[Plugin, ...]
    """The live plugins with scope GROUPS."""
    group_hooks: list[SpecHook]
    """`spec_key` of these."""
    is_plain: bool
    """Whether those are all live plugins, and no score on rows is normalised."""
    constant: int
    """The weighted points that `object_raws` give every node while all their raw scores are 0."""
    unsettled: frozenset[str]
    """Plugins with cached answers that PreFilter may skip for one pod of the class and not for another."""
    rules: JudgeRules = NO_RULES
    has_row_plugins: bool = False
    """Whether plugins are called for changed rows."""
    object_key: Hashable = None
    """Key on which the node part depends."""


class Form(msgspec.Struct, eq=False):
    """Declarations of plugins about specs that differ in amounts only."""

    shape: ClassPlan | None
    """The plan without the rules on amounts; None if a settled PreFilter or PreScore refuses such pods."""
    object_key: Hashable
    is_whole: bool
    """Whether a plugin has no `spec_key`: answers may depend on the whole pod."""
    amount_hooks: Sequence[SpecHook]
    """`spec_key` of the plugins on rows that read amounts in it."""


class Declared(NamedTuple):
    """Declarations of plugins about a spec, or about all specs of an outline."""

    settled: tuple[SettledCodes, ...]
    of_objects: tuple[Hashable, ...]
    of_rows: tuple[Hashable, ...]


READS_AMOUNTS = object()
"""Stands for the key of a plugin on rows, where it differs between specs of an outline."""


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
        self._counting = frozenset(
            p for p, _ in points.scores if is_normalized(p) and not ignores_repetition(p)
        )
        kept = [plugin for plugin in every if plugin.scope not in (CLUSTER, GROUPS)]
        self._is_by_spec = all(has_own(plugin, Plugin, "spec_key") for plugin in kept)
        """True while every cached answer is keyed by the spec alone."""
        self._of_specs: StampedCache[Hashable, ClassPlan] = StampedCache("plans of specs")
        self._plans: StampedCache[Hashable, ClassPlan] = StampedCache("plans")
        self._of_outlines: StampedCache[Hashable, Form] = StampedCache("forms of outlines")
        """By outline, or by spec where `settled`, or `spec_key` on node objects, reads amounts."""
        self._forms: StampedCache[Hashable, Form] = StampedCache("forms")

    def plan(self, pod: Pod, stamp: Hashable) -> tuple[ClassPlan, bool] | None:
        """The plan for the class of `pod`, and whether it was made for this pod.

        None when a settled PreFilter or PreScore refuses such pods.
        """
        key: Hashable = pod.pod_class.spec if self._is_by_spec else whole_key(pod)
        plan = self._of_specs.get(key, stamp)
        if plan is not None:
            return plan, False
        made = self._make(pod, stamp)
        if made is not None:
            key = pod.pod_class.spec if self._is_by_spec else whole_key(pod)
            self._of_specs.put(key, made[0])
        return made

    def _make(self, pod: Pod, stamp: Hashable) -> tuple[ClassPlan, bool] | None:
        spec = pod.pod_class.spec
        if pod.spec.pin:
            pod = pod.replace(spec=spec)  # pods that are equal but for the name share a plan
        form = self._form_of(spec, stamp)
        if form.shape is None:
            return None
        object_key = form.object_key
        keys = ask_hooks(form.amount_hooks, spec)
        if form.is_whole or None in keys:
            self._is_by_spec = False  # for some specs, a plugin reads the whole pod
            keys.append(whole_key(pod))
            if form.is_whole:
                object_key = (object_key, keys[-1])
        try:
            plan = self._plans.get((form, *keys), stamp)
        except TypeError:
            check_keys(form.amount_hooks, keys)
            raise
        if plan is not None:
            return plan, False
        return self._plans.put((form, *keys), _with_rules(form.shape, pod, object_key)), True

    def _form_of(self, spec: PodSpec, stamp: Hashable) -> Form:
        """The part of a plan that does not depend on amounts."""
        form = self._of_outlines.get(spec.outline, stamp)
        if form is not None:
            return form
        form = self._of_outlines.get(spec, stamp)
        if form is not None:
            return form
        declared = of_outline(spec, partial(self._declared, row_keys=self._row_keys))
        if declared is not None:
            return self._of_outlines.put(spec.outline, self._shared_form(declared, stamp))
        declared = self._declared(spec, partial(_keys, self._row_hooks))
        return self._of_outlines.put(spec, self._shared_form(declared, stamp))

    def _declared(
        self, spec: PodSpec, row_keys: Callable[[PodSpec], Iterable[Hashable]]
    ) -> Declared:
        settled = tuple([_codes_of(each) for each in ask_hooks(self._settled_hooks, spec)])
        of_objects = _keys(self._object_hooks, spec)
        return Declared(settled, of_objects, tuple(row_keys(spec)))

    def _row_keys(self, outline: PodSpec) -> Iterator[Hashable]:
        for entry in self._row_hooks:
            keys = of_outline(outline, partial(_keys, [entry]))
            yield READS_AMOUNTS if keys is None else keys[0]

    def _shared_form(self, declared: Declared, stamp: Hashable) -> Form:
        settled, of_objects, of_rows = declared
        try:
            form = self._forms.get(declared, stamp)
        except TypeError:
            check_keys(self._object_hooks, of_objects)
            check_keys(self._row_hooks, of_rows)
            raise
        if form is not None:
            return form
        is_whole = None in of_objects or None in of_rows
        hooks = zip(self._row_hooks, of_rows, strict=True)
        amount_hooks = [hook for hook, key in hooks if key is READS_AMOUNTS]
        made = Form(self._shape_of(settled), (settled, of_objects), is_whole, amount_hooks)
        return self._forms.put(declared, made)

    def _shape_of(self, settled: Sequence[SettledCodes]) -> ClassPlan | None:
        points = self._points
        codes = dict(zip([plugin for plugin, _ in self._settled_hooks], settled, strict=True))
        filtered = [codes[plugin][0] for plugin in points.pre_filters]
        scored = [codes[plugin][1] for plugin in points.pre_scores]
        return _shape(points, self._counting, filtered, scored)


def _keys(hooks: Sequence[SpecHook], spec: PodSpec) -> tuple[Hashable, ...]:
    return tuple(ask_hooks(hooks, spec))


def _codes_of(said: Settled) -> SettledCodes:
    first, second, _ = said
    return None if first is None else first.code, None if second is None else second.code


def _shape(
    points: Points,
    counting: frozenset[Plugin],
    filtered: Sequence[Code | None],
    scored: Sequence[Code | None],
) -> ClassPlan | None:
    """A plan without what depends on the amounts that a spec asks for."""
    if any(code not in (None, Code.Success, Code.Skip) for code in (*filtered, *scored)):
        return None
    pre_filters = list(zip(points.pre_filters, filtered, strict=True))
    pre_scores = list(zip(points.pre_scores, scored, strict=True))
    asked = frozenset(plugin.name for plugin, code in pre_filters if code is None)
    skip_filter = frozenset(p.name for p, code in pre_filters if code is Code.Skip)
    skip_score = frozenset(p.name for p, code in pre_scores if code is Code.Skip)
    live_pre_scores = [plugin for plugin, code in pre_scores if code is None]
    prepared = {plugin.name for plugin in live_pre_scores}
    placed = [Placed(*entry) for entry in enumerate(points.filters)]
    filters = [p for p in placed if p.plugin.name not in skip_filter]
    scores = [entry for entry in points.scores if entry[0].name not in skip_score]

    def filters_on(what: On) -> list[Placed]:
        return [p for p in filters if _filters_on(p.plugin, asked) is what]

    def scores_on(what: On, *, is_raw: bool = False) -> list[Scorer]:
        on = [entry for entry in scores if _scores_on(entry[0], prepared) is what]
        return on if what is On.MORE else [e for e in on if is_normalized(e[0]) is is_raw]

    rule_filters, rule_scores = filters_on(On.AMOUNTS), scores_on(On.AMOUNTS)
    object_filters, object_raws = filters_on(On.NODE), scores_on(On.NODE, is_raw=True)
    row_filters, row_raws = filters_on(On.ROW), scores_on(On.ROW, is_raw=True)
    live_filters, live_scores = filters_on(On.MORE), scores_on(On.MORE)
    live: list[Plugin] = [*(p.plugin for p in live_filters), *live_pre_scores]
    distinct = dict.fromkeys([*live, *(plugin for plugin, _ in live_scores)])
    grouped = tuple(plugin for plugin in distinct if plugin.scope is GROUPS)
    ruled: list[Plugin] = [p.plugin for p in rule_filters]
    ruled += [plugin for plugin, _ in rule_scores]
    cached = [p.plugin.name for p in (*object_filters, *row_filters)]
    return ClassPlan(
        pre_filters=[plugin for plugin, code in pre_filters if code is None],
        asked_names=asked,
        skip_filter=skip_filter,
        object_filters=object_filters,
        rule_filters=rule_filters,
        row_filters=row_filters,
        live_filters=live_filters,
        object_scores=scores_on(On.NODE),
        object_raws=object_raws,
        counting=counting,
        rule_scores=rule_scores,
        row_scores=scores_on(On.ROW),
        row_raws=row_raws,
        live_pre_scores=live_pre_scores,
        live_scores=live_scores,
        rule_hooks=[(plugin, plugin.amount_rules) for plugin in dict.fromkeys(ruled)],
        grouped=grouped,
        group_hooks=[(plugin, plugin.spec_key) for plugin in grouped],
        is_plain=len(grouped) == len(distinct) and not row_raws,
        constant=_constant(object_raws) if points.scores else 1,  # so it is without Score plugins
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


def _scores_on(plugin: ScorePlugin, prepared: set[str]) -> On:
    if plugin.name in prepared or has_own(plugin, ScorePlugin, "normalize_rows"):
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


def _with_rules(shape: ClassPlan, pod: Pod, object_key: Hashable) -> ClassPlan:
    """The shape with the rules on amounts for one spec."""
    said = ask_hooks(shape.rule_hooks, pod)
    rules = {plugin: one for (plugin, _), one in zip(shape.rule_hooks, said, strict=True)}
    fit, fit_place, row_filters = None, 0, shape.row_filters
    for placed in shape.rule_filters:
        rule = rules[placed.plugin].fit
        if rule is not None and rule.is_codable and fit is None:
            fit, fit_place = rule, placed.place
        else:
            row_filters = sorted([*row_filters, placed])
    weighted: list[Weighted] = []
    row_scores, live_scores = shape.row_scores, shape.live_scores
    for plugin, weight in shape.rule_scores:
        score_rule = rules[plugin].score
        if rules[plugin].scores_by_more:
            live_scores = [*live_scores, (plugin, weight)]
        elif score_rule is not None:
            weighted.append(Weighted(score_rule, weight))
        else:
            row_scores = [*row_scores, (plugin, weight)]
    return msgspec.structs.replace(
        shape,
        rules=JudgeRules(fit, fit_place, weighted),
        row_filters=row_filters,
        row_scores=row_scores,
        live_scores=live_scores,
        is_plain=shape.is_plain and live_scores is shape.live_scores,
        has_row_plugins=bool(row_filters or row_scores or shape.row_raws),
        object_key=object_key,
    )


def whole_key(pod: Pod) -> Hashable:
    """All of a pod that a plugin which declares nothing may read: its class, its claims and its annotations."""
    annotations = frozenset(pod.annotations.items()) if pod.annotations else None
    return pod.pod_class, pod.spec.claims, annotations
