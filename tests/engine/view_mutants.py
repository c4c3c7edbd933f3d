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
        "if self._rows_version == log.version:",
        "if self._rows_version >= 0 and self._raw_groups is part.raw_groups:",
    ),
    Mutant(
        "a view goes on with other raw scores",
        VIEW,
        "len(self.values) != len(part.base) or self._raw_groups is not part.raw_groups",
        "len(self.values) != len(part.base)",
    ),
    Mutant(
        "a view does not grow",
        VIEW,
        "len(self.values) != len(part.base) or self._raw_groups is not part.raw_groups",
        "not len(self.values) or self._raw_groups is not part.raw_groups",
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
        "self._judge.set_group_points(groups, self.raw_points)",
    ),
    Mutant(
        "peaks are not updated",
        VIEW,
        "self.part.base, changed, self.peaks)",
        "self.part.base, changed, self.peaks if changed is None else None)",
    ),
    Mutant(
        "peaks are not updated after plugins",
        VIEW,
        "        self.peaks.update(changed)",
        "        if changed is None:\n            self.peaks.update(changed)",
    ),
    Mutant(
        "statuses stay",
        VIEW,
        "if known is not None and known[0] == self._rows_version:",
        "if known is not None:",
    ),
    Mutant(
        "plugins are asked about rows without a node",
        VIEW,
        "        rows = rows_to_judge(self.values, changed, filters[0].place if filters else None)\n",
        "        rows = np.arange(len(calls.table)) if changed is None else np.unique(changed)\n",
    ),
    Mutant(
        "plugins are not asked about rows that a later filter refuses",
        VIEW,
        "rows_to_judge(self.values, changed, filters[0].place if filters else None)",
        "rows_to_judge(self.values, changed, None)",
    ),
    Mutant(
        "raw scores of rows stay",
        VIEW,
        "            add_answers(calls, rows, self.values, self.part.statuses, filters, scores, self.raws)",
        "            raws = self.raws if changed is None else {p: r.copy() for p, r in self.raws.items()}\n"
        "            add_answers(calls, rows, self.values, self.part.statuses, filters, scores, raws)",
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
        "if self._nodes_version == log.version:",
        "if self._nodes_version >= 0:",
    ),
    Mutant(
        "a view goes on when raw scores come",
        VIEW,
        "self._raw_groups is not part.raw_groups",
        "(self._raw_groups is not None and self._raw_groups is not part.raw_groups)",
    ),
    Mutant(
        "a view goes on when raw scores are gone",
        VIEW,
        "self._raw_groups is not part.raw_groups",
        "(part.raw_groups is not None and self._raw_groups is not part.raw_groups)",
    ),
    Mutant("rows without a node are not marked", PART, "        self.base[rows] = DEAD\n", ""),
    Mutant(
        "groups of raw scores stay",
        PART,
        "        self._group_raws()\n\n    def _group",
        "        if self.raw_groups is None:\n            self._group_raws()\n\n    def _group",
    ),
    Mutant(
        "rows without a node are not numbered",
        PART,
        "        self._group_raws()\n\n    def _group",
        "        if len(live):\n            self._group_raws()\n\n    def _group",
    ),
    Mutant(
        "normalised scores stay when raw scores change",
        PART,
        "        self._raw_points.drop()\n",
        "",
    ),
    Mutant(
        "normalised scores stay when other groups are feasible",
        PART,
        "self._raw_points.get(present)",
        "next(iter(self._raw_points.values()), None)",
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
        "is_live = plugin in self._counting or plugin.name in prepared",
        "is_live = plugin.name in prepared",
    ),
    Mutant(
        "scores of node objects count twice",
        GROUPS,
        "found -= view.raw_points[view.part.raw_groups[rows]]",
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
        "tracker.update(changed, None if tracker.are_own else _arrays(view, columns))",
        "pass",
    ),
    Mutant(
        "arrays of columns that are not the table's are kept",
        GROUPS,
        "tracker.are_own = all(type(column) is Column for column in columns)",
        "tracker.are_own = True",
    ),
    Mutant(
        "groups stay for other columns",
        GROUPS,
        "(view.plan, columns)\n    t",
        "(view.plan, None)\n    t",
    ),
    Mutant("groups stay for other values", GROUPS, " and tracker.values is view.values:", ":"),
    Mutant(
        "groups stay when scores of node objects are included anew",
        VIEW,
        "        self.values = np.empty(len(part.base), dtype=np.int64)",
        "        if len(self.values) != len(part.base):\n"
        "            self.values = np.empty(len(part.base), dtype=np.int64)",
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
        "marks.rules if plan.is_grouped and reserved is None else None",
        "marks.rules if plan.is_grouped else None",
    ),
    Mutant(
        "rules are all there is to plugins without rules",
        MARKS,
        "is_ruled = columns and len(ruled) + len(quiet) == len(plan.grouped)",
        "is_ruled = columns and ruled",
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
        "for plugin in live.filters if live.columns is not None else ():",
        "for plugin in ():",
    ),
]
