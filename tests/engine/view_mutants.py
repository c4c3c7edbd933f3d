"""Mutants of views, node parts and groups of rows."""

from tests.rig.mutants import Mutant, dropped

ENGINE = "engine/engine.py"
VIEW = "engine/class_view.py"
PART = "engine/node_part.py"
MARKS = "engine/marks.py"
GROUPS = "engine/row_groups.py"
CODES = "engine/row_answers.py"
TABLE = "table/node_table.py"
RULES = "plugins/pod_topology_spread/spread_rules.py"
ELIGIBILITY = "plugins/pod_topology_spread/eligibility.py"
VIEW_MUTANTS = [
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
        "raws = list(zip(self.raws, plan.row_raws, strict=True))",
        "raws = list(zip(self.raws, plan.row_raws, strict=True)) if changed is None else []",
    ),
    Mutant(
        "row plugins are not asked about changed rows",
        VIEW,
        "        if self._has_row_plugins:",
        "        if self._has_row_plugins and changed is None:",
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
        "        self._number_raws()\n\n    def _number",
        "        if self.raw_ids is None:\n            self._number_raws()\n\n    def _number",
    ),
    Mutant(
        "rows without a node are not numbered",
        PART,
        "        self._number_raws()\n\n    def _number",
        "        if len(live):\n            self._number_raws()\n\n    def _number",
    ),
    Mutant(
        "normalised scores stay when raw scores change",
        PART,
        "        self._points.drop()\n",
        "",
    ),
    Mutant(
        "normalised scores stay when other groups are feasible",
        PART,
        "self._points.get(present)",
        "next(iter(self._points.values()), None)",
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
        "engine/class_plan.py",
        "if plugin not in self._counting and plugin.name not in prepared:",
        "if plugin.name not in prepared:",
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
        "np.full(calls.table.count(rows), -self._plan.constant, dtype=np.int64)",
        "np.zeros(calls.table.count(rows), dtype=np.int64)",
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
