"""Trial: pods that are put on nodes, or removed from them, during one scheduling cycle of a pod group.

Mirrors AssumePod, ForgetPod and BackupSnapshot of pkg/scheduler/backend/cache/snapshot.go. The table is the snapshot,
so a trial changes the table, and restores it at the end.
"""

from __future__ import annotations

from ..api.pod import Pod
from ..table import NodeTable
from ..table.carried import ALL_HIDDEN, NONE_HIDDEN, Hidden, TermKind
from ..table.writer import TableWriter
from .group_members import PodGroupIndex

ANTI_AFFINITY_HIDDEN = frozenset({TermKind.REQUIRED_ANTI_AFFINITY})


class Trial:
    """Temporary changes of the table, which `end` undoes when the cycle is over.

    With `hides_terms`, affinity terms of pods on trial do not count for other pods, as in kube-scheduler.
    """

    def __init__(
        self, table: NodeTable, writer: TableWriter, groups: PodGroupIndex, hides_terms: bool = True
    ) -> None:
        self._table = table
        self._hides_terms = hides_terms
        self._writer = writer
        self._groups = groups
        self._assumed: dict[str, tuple[Pod, Pod, Hidden]] = {}
        """By uid: the pod as it waits, the same with its node, and which of its terms are hidden."""
        self._given_back: dict[str, Pod] = {}
        """By uid: pods whose trial has ended and that are still on their nodes."""
        self._removed: dict[str, Pod] = {}
        self._orders: dict[int, list[str]] = {}
        """The order of the pods on rows from which some were removed, at the beginning."""

    def assume(self, pod: Pod, assumed: Pod) -> Pod:
        """Put a waiting pod on a node; `assumed` is the pod with that node, and is returned."""
        node_name = assumed.node_name
        may_hide = self._hides_terms and pod.spec.affinity is not None
        hidden = self._hidden_at(node_name) if may_hide else NONE_HIDDEN
        self._writer.try_pod(assumed, hidden)
        self._assumed[pod.uid] = (pod, assumed, hidden)
        self._groups.set_pod(assumed)
        self._groups.on_trial.add(pod.uid)
        return assumed

    def forget(self, pod: Pod) -> None:
        """Take an assumed pod off its node."""
        waiting, assumed, hidden = self._assumed.pop(pod.uid)
        self._writer.end_trial(assumed, hidden)
        self._groups.set_pod(waiting)
        self._groups.on_trial.discard(pod.uid)

    def give_back(self, pod: Pod) -> None:
        """End the trial of an assumed pod, but leave it on its node until `adopt` or `end`. Its group counts it as
        waiting.
        """
        waiting, assumed, hidden = self._assumed[pod.uid]
        if hidden:
            self.forget(pod)
        else:
            self._given_back[pod.uid] = assumed
            del self._assumed[pod.uid]
            self._groups.set_pod(waiting)
            self._groups.on_trial.discard(pod.uid)

    def adopt(self, pod: Pod) -> bool:
        """Keep `pod` on its node for good if it was given back there; returns whether it was."""
        there = self._given_back.get(pod.uid)
        if there is None or there.node_name != pod.node_name:
            return False
        del self._given_back[pod.uid]
        self._writer.adopt_pod(there, pod)
        return True

    def remove(self, pod: Pod) -> None:
        """Take a pod off its node. Its group still counts it as placed."""
        row = self._table.row_of[pod.node_name]
        if row not in self._orders:
            there = self._table.pods[row]
            self._orders[row] = [uid for uid in there if uid not in self._assumed]
        self._writer.end_trial(pod, NONE_HIDDEN)
        self._removed[pod.uid] = pod

    def restore(self, pod: Pod) -> None:
        """Put a removed pod back."""
        self._writer.try_pod(self._removed.pop(pod.uid), NONE_HIDDEN)

    def end(self) -> None:
        """Put the removed pods back in their order, and remove those that were given back."""
        for pod in self._given_back.values():
            self._writer.end_trial(pod, NONE_HIDDEN)
        self._given_back.clear()
        for pod in list(self._removed.values()):
            self.restore(pod)
        for row, uids in self._orders.items():
            self._writer.restore_row(row, uids)
        self._orders.clear()

    def _hidden_at(self, node_name: str) -> Hidden:
        """The terms of a pod on this node that do not count for other pods.

        kube-scheduler keeps a list of nodes with affinity terms and one of nodes with required anti-affinity terms,
        which a pod on trial does not change: terms on a node that is not on the list are ignored.
        """
        row = self._table.row_of[node_name]
        there = [pod for uid, pod in self._table.pods[row].items() if uid not in self._assumed]
        there += [pod for pod in self._removed.values() if pod.node_name == node_name]
        if any(pod.spec.required_anti_affinity for pod in there):
            return NONE_HIDDEN
        if any(_has_pod_affinity(pod) for pod in there):
            return ANTI_AFFINITY_HIDDEN
        return ALL_HIDDEN


def _has_pod_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )
