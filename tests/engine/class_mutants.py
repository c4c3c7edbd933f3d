"""Mutants of the keys by which pods share answers, and of nominated pods."""

from tests.rig.mutants import Mutant

WRITER = "table/writer.py"
ENGINE = "engine/engine.py"
VIEW = "engine/class_view.py"
PLAN = "engine/class_plan.py"
ANSWERS = "runtime/spec_answers.py"
MARKS = "engine/marks.py"
GROUPS = "engine/row_groups.py"
RESERVED = "framework/reserved.py"
CLASS_MUTANTS = [
    # Which answers are shared
    Mutant(
        "answers are kept by spec for all",
        PLAN,
        "self._is_by_spec, whole = False, whole_key(pod)",
        "self._is_by_spec, whole = True, whole_key(pod)",
    ),
    Mutant(
        "a spec_key that is None is a key",
        PLAN,
        "        if None in answers:",
        "        if False:",
    ),
    Mutant(
        "a spec_key that is None is a key for rows",
        PLAN,
        "        if None in answers:",
        "        if None in answers[self._of_objects]:",
    ),
    Mutant(
        "a spec_key that is None is a key for node parts",
        PLAN,
        "(codes, answers[self._of_objects])",
        "(codes, self._answers.about(pod.spec, stamp)[self._of_objects])",
    ),
    Mutant(
        "hooks that read amounts are asked once per outline",
        ANSWERS,
        "self._known.put(spec.outline, self._about_outline(spec))",
        "self._known.put(spec.outline, (self._ask(self._hooks, spec), [], []))",
    ),
    Mutant(
        "a hook that catches the exception for reading amounts reads none",
        "runtime/spec_answers.py",
        "return None if reads.happened else made",
        "return made",
    ),
    Mutant(
        "what is settled for some amounts holds for none",
        "api/pod_spec.py",
        "{name: 1 if parse_quantity(amounts[name]) else 0 for name in amounts}",
        "dict.fromkeys(amounts, 1)",
    ),
    Mutant(
        "annotations do not tell pods apart",
        PLAN,
        "return pod.pod_class, pod.spec.claims, annotations",
        "return pod.pod_class, pod.spec.claims, None",
    ),
    Mutant(
        "claims do not tell pods apart",
        PLAN,
        "return pod.pod_class, pod.spec.claims, annotations",
        "return pod.pod_class, (), annotations",
    ),
    Mutant(
        "plans are shared whatever plugins read of rows",
        PLAN,
        "            plan = self._plans.get(answers, stamp)",
        "            answers = answers[: self._of_objects.stop]\n"
        "            plan = self._plans.get(answers, stamp)",
    ),
    Mutant(
        "plans are shared whatever plugins read of nodes",
        PLAN,
        "            plan = self._plans.get(answers, stamp)",
        "            answers = (*codes, *answers[self._of_objects.stop :])\n"
        "            plan = self._plans.get(answers, stamp)",
    ),
    Mutant(
        "node parts are shared by all",
        ENGINE,
        "of_part = len(self._table), (plan.object_key, skipped)",
        "of_part = len(self._table), skipped",
    ),
    Mutant(
        "PreFilter that skips some pods is ignored",
        ENGINE,
        "skipped = plan.skippable & state.skip_filter if plan.skippable else frozenset()",
        "skipped: frozenset[str] = frozenset()",
    ),
    Mutant(
        "node parts are shared by skipped and not",
        ENGINE,
        "of_part = len(self._table), (plan.object_key, skipped)",
        "of_part = len(self._table), (plan.object_key, frozenset())",
    ),
    Mutant(
        "marks are shared whatever the labels",
        MARKS,
        "labels = None in keys, tuple(pod.labels.items())",
        "labels = None in keys, ()",
    ),
    Mutant("marks are shared by owners", MARKS, "labels, pod.owner_references", "labels"),
    Mutant("marks are shared by namespaces", MARKS, "pod.namespace, labels", "'', labels"),
    Mutant(
        "marks are shared whatever plugins read",
        MARKS,
        "(plan.grouped, *keys,",
        "(plan.grouped,",
    ),
    Mutant(
        "marks are shared whatever the claims",
        MARKS,
        "if not (is_whole and claims):",
        "if True:",
    ),
    Mutant(
        "what filters on rows refuse is forgotten",
        GROUPS,
        "return values if rows is before else restricted(values, rows)",
        "return values",
    ),
    # Pods that differ from their class
    Mutant(
        "a pod's own nomination is ignored",
        ENGINE,
        "(are_nominated and self._nominator.node_of(pod))",
        "False",
    ),
    Mutant(
        "a status with resources is ignored",
        ENGINE,
        "if pod.status is not EMPTY_STATUS and pod.status.has_resources:",
        "if False:",
    ),
    Mutant(
        "a nomination in the status is ignored",
        ENGINE,
        "if pod.status.nominated_node_name or (",
        "if (",
    ),
    Mutant("a pod's node is ignored", ENGINE, "if pod.node_name:", "if False:"),
    Mutant(
        "a plugin that reads the name of the node is ignored",
        ENGINE,
        "return key is None or key != ask_hook(plugin, plugin.spec_key, pod.pod_class.spec)",
        "return key is None",
    ),
    Mutant(
        "a plugin that may read the whole pod does not read the name of the node",
        ENGINE,
        "return key is None or key != ask_hook(plugin, plugin.spec_key, pod.pod_class.spec)",
        "return key != ask_hook(plugin, plugin.spec_key, pod.pod_class.spec)",
    ),
    Mutant(
        "a live filter is not asked about the node that a pod names",
        ENGINE,
        "for plugin in (*readers, *live):",
        "for plugin in readers:",
    ),
    Mutant(
        "a view is read stale",
        ENGINE,
        "        view.refresh(class_calls, reserved)",
        "        if not len(view.values):\n            view.refresh(class_calls, reserved)",
    ),
    Mutant(
        "a pod that names its node leaves no room",
        ENGINE,
        "            reserved is not None or pod.spec.claims",
        "            pod.spec.claims",
    ),
    Mutant(
        "a pod that names its node leaves its own marks to its class",
        ENGINE,
        "found = self._find_class(state, class_pod)",
        "found = self._find_class(state, pod)",
    ),
    # Nominated pods
    Mutant(
        "nominated pods need no room",
        ENGINE,
        "(self._filtering.reserved(pod, self._table) or None) if are_nominated else None",
        "None",
    ),
    Mutant(
        "nominated pods use nothing",
        VIEW,
        "        if reserved is not None and plan.rules.fit is not None:",
        "        if False:",
    ),
    Mutant(
        "nominated pods matter by amounts only",
        ENGINE,
        "for row in rows[values[rows] >= 0].tolist():",
        "for row in []:",
    ),
    Mutant(
        "refusals because of nominated pods pass for those of the view",
        ENGINE,
        "if within is not None or ready.nominated is not None or",
        "if within is not None or",
    ),
    Mutant(
        "refusals of live filters pass for those of the view",
        ENGINE,
        " or _any_runs(live, state):",
        ":",
    ),
    Mutant(
        "pods of all priorities leave the same room",
        ENGINE,
        "None if reserved is None else pod.priority",
        "None",
    ),
    Mutant(
        "a nomination is not logged",
        WRITER,
        "table.row_changes.mark(row)  # no column changes, but nominated pods reserve room",
        "pass",
    ),
    Mutant(
        "nominations are not followed",
        RESERVED,
        "self._nominations == nominator.version and self._nodes",
        "self._nominations >= 0 and self._nodes",
    ),
    Mutant(
        "nodes of nominated pods are not followed",
        RESERVED,
        " and self._nodes == table.node_changes.version:",
        ":",
    ),
    Mutant(
        "the state is not cleared before the reference",
        "scheduler/deciding.py",
        "state.clear()  # the reference starts with PreFilter",
        "pass",
    ),
    Mutant(
        "PreFilter does not run when plugins are called instead of rules",
        ENGINE,
        "if not _run_pre_filters(calls, view.plan, view.plan.pre_filters.keys() - rules.plugins):",
        "if False:",
    ),
]
