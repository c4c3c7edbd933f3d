"""Break it: the engine with one thing broken at a time, and whether the quick tests see it.

Every version, stamp and log entry by which answers become stale is broken once.

    python -m tests.engine.break_it [--only TEXT] [--jobs N]
"""

from __future__ import annotations

import sys

from tests.rig.mutants import Mutant, MutantSuite, dropped

WRITER, ENGINE, VIEW = "table/writer.py", "engine/engine.py", "engine/class_view.py"
PART, PLAN, MARKS = "engine/node_part.py", "engine/class_plan.py", "engine/marks.py"
GROUPS, RESERVED, CODES = "engine/row_groups.py", "framework/reserved.py", "engine/status_codes.py"
TABLE = "table/node_table.py"
RULES = "plugins/pod_topology_spread/spread_rules.py"
ELIGIBILITY = "plugins/pod_topology_spread/eligibility.py"
SPREAD_PLANS = "plugins/pod_topology_spread/spread_plans.py"
SPREAD_RULES = "plugins/pod_topology_spread/spread_rules.py"
COUNTED = """            table.carried.add_pod(row, pod, change, hidden or NONE_HIDDEN)
        table.row_changes.mark(row)
"""
MUTANTS = [
    # What the table logs
    Mutant(
        "a pod that comes is not logged",
        WRITER,
        COUNTED,
        COUNTED.replace("        table.row", "        if change < 0:\n            table.row"),
    ),
    Mutant(
        "a pod that leaves is not logged",
        WRITER,
        COUNTED,
        COUNTED.replace("        table.row", "        if change > 0:\n            table.row"),
    ),
    dropped(
        "annotations of a pod are not logged",
        WRITER,
        "table.row_changes.mark(row)  # a plugin may read them",
    ),
    dropped(
        "labels of a pod are not logged",
        WRITER,
        "table.row_changes.mark(row)  # terms count pods by their labels",
    ),
    dropped("new labels of a pod are not counted", WRITER, "table.terms.add_pod(row, new, 1)"),
    dropped("old labels of a pod stay counted", WRITER, "table.terms.add_pod(row, old, -1)"),
    dropped("a pod that is being deleted stays", WRITER, "table.terms.pod_leaves(row, new)"),
    dropped(
        "a port that is taken again is not logged",
        WRITER,
        "table.row_changes.mark(row)  # the removal of another holder had freed a port",
    ),
    dropped("a node is not in the log of nodes", WRITER, "self.table.node_changes.mark(row)"),
    dropped("a node is not in the log of rows", WRITER, "self.table.row_changes.mark(row)"),
    Mutant(
        "a new row is not logged",
        WRITER,
        "table.row_of[name] = row\n        self._node_changed(row)",
        "table.row_of[name] = row",
    ),
    Mutant(
        "a node that goes is not logged",
        WRITER,
        "self._node_changed(row)\n        self._release(row)",
        "self._release(row)",
    ),
    Mutant(
        "a node that is set is not logged",
        WRITER,
        "self._node_changed(row)\n        return row\n\n    def remove_node",
        "return row\n\n    def remove_node",
    ),
    Mutant(
        "a namespace has no version",
        WRITER,
        "= dict(labels)\n            self.table.namespaces_version += 1",
        "= dict(labels)",
    ),
    Mutant(
        "a log that was cut says nothing of it",
        "table/changes.py",
        "        if start < 0:\n            return None\n        return self._entries[start",
        "        start = max(start, 0)\n        return self._entries[start",
    ),
    Mutant(
        "a carried term that appears has no version",
        "table/carried.py",
        "            bucket.add(key)\n        self.version += 1",
        "            bucket.add(key)",
    ),
    Mutant(
        "a carried term that vanishes has no version",
        "table/carried.py",
        "            bucket.discard(key)\n        self.version += 1",
        "            bucket.discard(key)",
    ),
    dropped("a dropped term is not counted", "table/terms.py", "self.dropped += 1"),
    Mutant(
        "rows with and without a host name are told apart by their count alone",
        "table/terms.py",
        "return counts.column, label.presence",
        "return (counts.column,)",
    ),
    Mutant(
        "the domains of a spread stay when a node changed",
        SPREAD_PLANS,
        "plan.version != table.node_changes.version",
        "plan.version < 0",
    ),
    Mutant(
        "images have no version",
        "table/images.py",
        "self._moment += 1\n        self.version += 1",
        "self._moment += 1",
    ),
    # The version of the cluster
    Mutant("objects are not in the version", ENGINE, "            self._lister.version,\n", ""),
    Mutant("nodes are not in the version", ENGINE, "            table.node_changes.version,\n", ""),
    Mutant(
        "carried terms are not in the version", ENGINE, "            table.carried.version,\n", ""
    ),
    Mutant(
        "namespaces are not in the version", ENGINE, "            table.namespaces_version,\n", ""
    ),
    Mutant("images are not in the version", ENGINE, "            table.images.version,\n", ""),
    Mutant(
        "dropped terms are not in the version", ENGINE, "            table.terms.dropped,\n", ""
    ),
    Mutant(
        "counts of a node that is relabelled stay in its old domain",
        WRITER,
        "if changed and table.pods[row]:",
        "if not changed and table.pods[row]:",
    ),
    Mutant(
        "a domain that appears is in no key of nodes",
        "table/labels.py",
        "            self.domains_version += self._uses[code] == 1\n",
        "",
    ),
    Mutant(
        "a domain that vanishes is in no key of nodes",
        "table/labels.py",
        "            self.domains_version += self._uses[old] == 0\n",
        "",
    ),
    Mutant(
        "new values of a label are in no key of nodes",
        "table/labels.py",
        "return len(self.values), self._shared == 0, self.labelled == nodes",
        "return 0, self._shared == 0, self.labelled == nodes",
    ),
    Mutant(
        "nodes without a label are in no key of nodes",
        "table/labels.py",
        "return len(self.values), self._shared == 0, self.labelled == nodes",
        "return len(self.values), self._shared == 0, True",
    ),
    Mutant(
        "labels that nodes share are in no key of nodes",
        "table/labels.py",
        "return len(self.values), self._shared == 0, self.labelled == nodes",
        "return len(self.values), True, self.labelled == nodes",
    ),
    Mutant(
        "domains that appear do not matter to limits",
        SPREAD_RULES,
        "(label.shape(nodes), label.domains_version)",
        "(label.shape(nodes), 0)",
    ),
    Mutant(
        "taints do not matter to rules",
        SPREAD_RULES,
        " or not depends_on_labels(constraint, spec)",
        "",
    ),
    Mutant(
        "marks hold whatever nodes there are",
        MARKS,
        "self.nodes_key != _keys_of(self.nodes_keys, table)",
        "False",
    ),
    Mutant(
        "marks of unknown nodes hold",
        MARKS,
        "if self.nodes_keys is None or self.nodes_key",
        "if self.nodes_keys is not None and self.nodes_key",
    ),
    Mutant("marks hold when columns grow", MARKS, "(table.size.capacity, *", "(0, *"),
    Mutant(
        "no cache minds its stamp",
        "stamped_cache.py",
        "if stamp is not self._stamp and stamp != self._stamp:",
        "if self._stamp is None and stamp is not None:",
    ),
    Mutant(
        "marks are never forgotten",
        MARKS,
        "known = self._of_classes.get(pod_class, stamp)",
        "known = self._of_classes.get(pod_class)",
    ),
    Mutant(
        "keys of columns are not in the stamp",
        ENGINE,
        "version[2:], ask_keys(self._grouped, table))",
        "version[2:])",
    ),
    Mutant(
        "columns of unknown objects stay",
        ENGINE,
        "version[0] if self._reads_any_object else 0",
        "0",
    ),
    Mutant(
        "views stay when the stamp changes",
        ENGINE,
        "if stamp != self._stamp:",
        "if self._stamp is None:",
    ),
    Mutant(
        "forms stay when the stamp changes",
        PLAN,
        "form = self._of_outlines.get(key, stamp)",
        "form = self._of_outlines.get(key)",
    ),
    Mutant(
        "plans stay when the stamp changes",
        PLAN,
        "plan = self._of_specs.get(key, stamp)",
        "plan = self._of_specs.get(key)",
    ),
    dropped("views and node parts are not forgotten", ENGINE, "            self._budget.drop()"),
    # Which answers are shared
    Mutant(
        "answers are kept by spec for all",
        PLAN,
        "key: Hashable = pod.pod_class.spec if self._is_by_spec else whole_key(pod)",
        "key: Hashable = pod.pod_class.spec",
    ),
    Mutant(
        "a spec_key that is None is a key",
        PLAN,
        "is_whole = None in of_objects or None in of_rows",
        "is_whole = False",
    ),
    Mutant(
        "a spec_key that is None is a key for rows",
        PLAN,
        "if form.is_whole or None in keys:",
        "if form.is_whole:",
    ),
    Mutant(
        "hooks that read amounts are asked once per outline",
        PLAN,
        "key: Hashable = spec.outline if self._is_by_outline else spec",
        "key: Hashable = spec.outline",
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
        "keys = ask_hooks(self._amount_hooks, spec)",
        "keys = [hash(None in ask_hooks(self._amount_hooks, spec))]",
    ),
    Mutant(
        "plans are shared whatever plugins read of nodes",
        PLAN,
        "of_objects = tuple(ask_hooks(self._object_hooks, spec))",
        "of_objects = (None in ask_hooks(self._object_hooks, spec),)",
    ),
    Mutant(
        "node parts are shared by all",
        ENGINE,
        "key = (plan.object_key, skipped)",
        "key = skipped",
    ),
    Mutant(
        "PreFilter that skips some pods is ignored",
        ENGINE,
        "skipped = plan.unsettled & state.skip_filter if plan.unsettled else frozenset()",
        "skipped: frozenset[str] = frozenset()",
    ),
    Mutant(
        "node parts are shared by skipped and not",
        ENGINE,
        "key = (plan.object_key, skipped)",
        "key = (plan.object_key, frozenset())",
    ),
    Mutant(
        "marks are shared whatever the labels",
        MARKS,
        "labels = tuple(pod.labels.items())",
        "labels = ()",
    ),
    Mutant("marks are shared by owners", MARKS, "labels, pod.owner_references", "labels"),
    Mutant("marks are shared by namespaces", MARKS, "pod.namespace, labels", "'', labels"),
    Mutant(
        "marks are shared whatever plugins read",
        MARKS,
        "plan.grouped, tuple(keys)",
        "plan.grouped, ()",
    ),
    Mutant(
        "marks are shared whatever the claims",
        MARKS,
        "return _WholePod(pod.pod_class, claims) if claims else pod.pod_class",
        "return pod.pod_class",
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
        "if pod.status.nominated_node_name or self._nominator.node_of(pod):",
        "if pod.status.nominated_node_name:",
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
        "if pod.status.nominated_node_name or self._nominator.node_of(pod):",
        "if self._nominator.node_of(pod):",
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
        "filters = (*self._pinned_filters(view.plan, pod), *live)",
        "filters = (*self._pinned_filters(view.plan, pod),)",
    ),
    Mutant(
        "a view is read stale",
        ENGINE,
        "        view.refresh(state, pod, self._table, reserved)",
        "        if not len(view.values):\n            view.refresh(state, pod, self._table, reserved)",
    ),
    Mutant(
        "a pod that names its node leaves no room",
        ENGINE,
        "            if reserved or not plan.asked_names <= marks.quiet",
        "            if not plan.asked_names <= marks.quiet",
    ),
    # Nominated pods
    Mutant(
        "nominated pods need no room",
        ENGINE,
        "        reserved = self._filtering.reserved(pod, self._table) if self._nominator else None",
        "        reserved = None",
    ),
    Mutant(
        "nominated pods use nothing",
        VIEW,
        "        if reserved and plan.rules.fit is not None:",
        "        if False:",
    ),
    Mutant(
        "nominated pods matter by amounts only",
        ENGINE,
        "for row in rows[values[rows] >= 0].tolist():",
        "for row in []:",
    ),
    Mutant(
        "refusals beside nominated pods pass for explained",
        ENGINE,
        "bool(live.filters) or values is not view.values)",
        "bool(live.filters))",
    ),
    Mutant(
        "pods of all priorities leave the same room",
        ENGINE,
        "pod.priority if reserved else None",
        "None",
    ),
    Mutant(
        "a nomination is not logged",
        WRITER,
        "table.row_changes.mark(row)  # no column, but what fits beside those pods",
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
        "state.clear()  # plugins are called from the start",
        "pass",
    ),
    Mutant(
        "PreFilter does not run when plugins are called instead of rules",
        ENGINE,
        "if not self._accepts(state, pod, ruled):",
        "if False:",
    ),
    # The view
    Mutant(
        "a view does not catch up with rows",
        VIEW,
        "if self._rows_seen == log.version and self._epoch == part.epoch:",
        "if self._rows_seen >= 0 and self._epoch == part.epoch:",
    ),
    Mutant(
        "a view goes on with another epoch",
        VIEW,
        "if len(self.values) != size or self._epoch != part.epoch:",
        "if len(self.values) != size:",
    ),
    Mutant(
        "a view is up to date in another epoch",
        VIEW,
        "if self._rows_seen == log.version and self._epoch == part.epoch:",
        "if self._rows_seen == log.version:",
    ),
    Mutant(
        "a view does not grow",
        VIEW,
        "if len(self.values) != size or self._epoch != part.epoch:",
        "if not len(self.values) or self._epoch != part.epoch:",
    ),
    Mutant(
        "present groups are ignored",
        VIEW,
        "if present != self.present:",
        "if False:",
    ),
    dropped(
        "what was included stays",
        VIEW,
        "self._judge.add_group_points(self.part.raw_ids, self.included)",
    ),
    Mutant(
        "peaks are not updated",
        VIEW,
        "self.part.base, changed, self._peaks)",
        "self.part.base, changed, self._peaks if changed is None else None)",
    ),
    Mutant(
        "peaks are not updated after plugins",
        VIEW,
        "        self._peaks.update(self.values, changed)",
        "        if changed is None:\n            self._peaks.update(self.values, changed)",
    ),
    Mutant(
        "statuses stay",
        VIEW,
        "if known is not None and known[0] == self._rows_seen:",
        "if known is not None:",
    ),
    Mutant(
        "plugins are asked about rows without a node",
        VIEW,
        "        rows = rows_to_ask(self.values, changed, place)\n",
        "        rows = np.arange(len(table)) if changed is None else np.unique(changed)\n",
    ),
    Mutant(
        "plugins are not asked about rows that a later filter refuses",
        VIEW,
        "        place = plan.row_filters[0].place if plan.row_filters else None\n",
        "        place = None\n",
    ),
    Mutant(
        "raw scores of rows stay",
        VIEW,
        "            raw[rows] = score_rows(plugin, state, pod, table, rows)",
        "            if changed is None:\n                raw[rows] = score_rows(plugin, state, pod, table, rows)",
    ),
    Mutant(
        "row plugins are not asked about changed rows",
        VIEW,
        "        if plan.has_row_plugins:",
        "        if plan.has_row_plugins and changed is None:",
    ),
    # The node part
    Mutant(
        "the node part does not catch up",
        PART,
        "if self._nodes == log.version:",
        "if self._nodes >= 0:",
    ),
    Mutant(
        "the epoch stays when raw scores come",
        PART,
        "if is_stale or self.raw_ids is not None:",
        "if is_stale:",
    ),
    Mutant(
        "the epoch stays when raw scores are gone",
        PART,
        "self._nodes < 0 or self.raw_ids is not None",
        "self._nodes < 0",
    ),
    Mutant("rows without a node are not marked", PART, "        self.base[rows] = DEAD\n", ""),
    Mutant(
        "groups of raw scores stay",
        PART,
        "        self._number_raws()\n\n    def _judge_live",
        "        if self.raw_ids is None:\n            self._number_raws()\n\n    def _judge_live",
    ),
    Mutant(
        "rows without a node are not numbered",
        PART,
        "        self._number_raws()\n\n    def _judge_live",
        "        if len(live):\n            self._number_raws()\n\n    def _judge_live",
    ),
    Mutant(
        "normalised scores stay when raw scores change",
        PART,
        "        self._points.drop()\n        if varied",
        "        if varied",
    ),
    Mutant(
        "normalised scores stay when other groups are feasible",
        PART,
        "self._points.get(present)",
        "next(iter(self._points.values()), None)",
    ),
    Mutant(
        "a normalize that counts is left out while all scores are 0",
        PART,
        "if varied or not all(plugin.normalizes_by_bounds for plugin, _ in self._plan.object_raws):",
        "if varied:",
    ),
    # Groups and totals
    Mutant(
        "PreScore is not told how many nodes rows stand for",
        GROUPS,
        "    state.row_counts = sizes\n",
        "",
    ),
    Mutant(
        "a normalize that counts is given one node of each group",
        PART,
        "if sizes is None or plugin.normalizes_by_bounds or len(sizes) == sizes.sum():",
        "if True:",
    ),
    Mutant(
        "scores of node objects count twice",
        GROUPS,
        "found -= view.included[view.part.raw_ids[rows]]",
        "pass",
    ),
    Mutant(
        "points of normalised scores count beside the constant",
        PART,
        "np.full(table.count(rows), -self._plan.constant, dtype=np.int64)",
        "np.zeros(table.count(rows), dtype=np.int64)",
    ),
    Mutant(
        "views of nodes stay when nodes change",
        TABLE,
        "infos[row] = NodeInfo(self, row)",
        "pass",
    ),
    Mutant(
        "groups do not follow changed rows",
        GROUPS,
        "tracker.update(arrays, changed)",
        "pass",
    ),
    Mutant("groups stay for other columns", GROUPS, "(view, columns), _", "(view, None), _"),
    Mutant("groups stay for other values", GROUPS, " and tracker.values is view.values:", ":"),
    dropped(
        "groups stay when scores of node objects are included anew",
        VIEW,
        "self.values = np.empty_like(self.values)  # so groups are stale, too",
    ),
    Mutant(
        "rules go by scores of node objects that are no longer feasible",
        GROUPS,
        " and judge.present != view.present:",
        " and False:",
    ),
    Mutant(
        "rules pass over nominated pods",
        ENGINE,
        "marks.rules if plan.is_plain and not reserved else None",
        "marks.rules if plan.is_plain else None",
    ),
    Mutant(
        "rules are all there is to plugins without rules",
        MARKS,
        "if columns and len(ruled) + len(quiet) == len(plan.grouped):",
        "if columns and ruled:",
    ),
    Mutant(
        "the pod itself is not counted in a skew", RULES, " - constraint.selects(pod),", " - 0,"
    ),
    Mutant(
        "too few domains do not count",
        RULES,
        "domains.present if is_enough(constraint, domains) else None,",
        "domains.present,",
    ),
    Mutant(
        "pods on nodes that do not count are counted",
        ELIGIBILITY,
        "among = None if self._rows is None else (self._rows, self._codes[self._rows])",
        "among = None",
    ),
    Mutant(
        "nodes count for pods with other node affinity",
        ELIGIBILITY,
        "    return policies, required, tolerations\n",
        "    return policies, None, tolerations\n",
    ),
    Mutant(
        "nodes count for constraints with other policies",
        ELIGIBILITY,
        "    return policies, required, tolerations\n",
        "    return tuple(p[0] for p in policies), required, tolerations\n",
    ),
    Mutant(
        "groups do not reach back",
        GROUPS,
        "log.rows_since(tracker.version)",
        "log.rows_since(log.version - 1)",
    ),
    Mutant(
        "a later filter's refusal counts",
        CODES,
        "((codes > before) & (before != DEAD))",
        "((codes < before) & (before != DEAD))",
    ),
    Mutant(
        "filters that read groups are skipped",
        GROUPS,
        "for judge in live.filters if live.columns is not None else ():",
        "for judge in ():",
    ),
]
REDUNDANT = {
    "images have no version": "the row is touched, too, and the next snapshot changes the version",
    "a view is up to date in another epoch": "a node that changes is in the log of rows, too",
    "the epoch stays when raw scores come": "what values do not include is added for each pod",
}
"""Mutants that change no decision, with the reason."""

SUITE = MutantSuite(
    MUTANTS,
    REDUNDANT,
    tests=[
        "tests/engine/test_claims.py",
        "tests/engine/test_stale.py",
        "tests/engine/test_domain_rules.py",
        "tests/conformance/test_recorded_slice.py",
        "tests/engine/test_histories.py",
    ],
    copied=["tests/engine", "tests/conformance"],
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
