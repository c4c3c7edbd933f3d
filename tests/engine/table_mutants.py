"""Mutants of the table's log and of the versions of the cluster."""

from tests.rig.mutants import Mutant, dropped

WRITER = "table/writer.py"
ENGINE = "engine/engine.py"
PLAN = "engine/class_plan.py"
ANSWERS = "runtime/spec_answers.py"
MARKS = "engine/marks.py"
SPREAD_PLANS = "plugins/pod_topology_spread/spread_rules.py"
SPREAD_RULES = "plugins/pod_topology_spread/spread_rules.py"
COUNTED = """            table.carried.add_pod(row, pod, change, hidden or NONE_HIDDEN)
        table.row_changes.mark(row)
"""
TABLE_MUTANTS = [
    # Pods that are counted together
    Mutant(
        "pods that are counted together are not logged",
        WRITER,
        "            self.table.row_changes.mark(row)\n            self.table.images.touch(row)\n",
        "            self.table.images.touch(row)\n",
    ),
    Mutant(
        "pods with volumes or host ports are counted together",
        WRITER,
        "self.can_be_multiplied = _can_be_multiplied(pod)",
        "self.can_be_multiplied = True",
    ),
    Mutant(
        "pods that leave count like those that stay",
        WRITER,
        "        pod.deletion_timestamp is None,\n",
        "        True,\n",
    ),
    Mutant(
        "pods that leave are put to the last ones of their class and status",
        WRITER,
        "                or pod.deletion_timestamp is not group.deletion_timestamp\n",
        "",
    ),
    Mutant(
        "pods of a class count alike whatever their status",
        WRITER,
        "                or pod.status is not group.status\n",
        "",
    ),
    # Entries of the table's logs
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
        "table.row_changes.mark(row)  # removing another holder had freed a port",
    ),
    dropped("a node is not in the log of nodes", WRITER, "self.table.node_changes.mark(row)"),
    Mutant(
        "a node is not in the log of rows",
        WRITER,
        "self.table.node_changes.mark(row)\n        self.table.row_changes.mark(row)",
        "self.table.node_changes.mark(row)",
    ),
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
        "a log of rows that was cut says nothing of it",
        "table/changes.py",
        "return None if start < 0 else self._rows[start :",
        "return self._rows[max(start, 0) :",
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
        "amounts are counted in the columns of before the table grew",
        "table/node_table.py",
        "self._shares.get(spec, self.size.capacity)",
        "self._shares.get(spec)",
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
        "known = self._marks.get(pod_class, stamp)",
        "known = self._marks._answers.get(pod_class)",
    ),
    Mutant(
        "keys of columns are not in the stamp",
        ENGINE,
        "version[2:], ask_keys(self._marks_stamp_hooks, table))",
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
        "answers about outlines stay when the stamp changes",
        ANSWERS,
        "known = self._known.get(spec.outline, stamp)",
        "known = self._known._answers.get(spec.outline)",
    ),
    Mutant(
        "plans stay when the stamp changes",
        PLAN,
        "plan = self._plans.get(spec if self._is_by_spec else whole_key(pod), stamp)",
        "plan = self._plans._answers.get(spec if self._is_by_spec else whole_key(pod))",
    ),
    dropped("views and node parts are not forgotten", ENGINE, "            self._budget.drop()"),
]
