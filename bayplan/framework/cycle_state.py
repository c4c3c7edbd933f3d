"""CycleState: the data of plugins for one scheduling attempt of one pod.

Mirrors pkg/scheduler/framework/cycle_state.go.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..amounts.rules import FitRule
from ..api.pod import Pod
from ..api.pod_status import NodeClaimStatuses
from ..observe.scheduler_metrics import SchedulerMetrics
from ..observe.times import NEVER, Times
from ..table import Ints
from .cancellation import NEVER_CANCELLED, Cancellation

PODS_TO_ACTIVATE = "kubernetes.io/pods-to-activate"


class CycleState(Struct, eq=False):
    """A key-value store for one attempt, and the plugins that are skipped in it."""

    _values: dict[str, Any] = {}
    skip_filter: set[str] = set()
    skip_score: set[str] = set()
    """Plugins whose Score is not called. A plugin without PreScore may add its name in PreFilter when its Score is 0 on
    every node."""
    fit_rule: FitRule | None = None
    """Amounts that the pod needs free on a node, if the engine has computed them; None if the plugin has to be
    called.
    """
    unreached: frozenset[str] = frozenset()
    """The plugins whose PreFilter was not called, because an earlier one refused the pod unresolvably."""
    row_counts: Ints | None = None
    """For PreScore: the number of feasible nodes that each of its rows stands for; None if each stands for one."""
    cancellation: Cancellation = NEVER_CANCELLED
    """During PreBind: set when the pod is preempted meanwhile. For plugins that block."""
    times: Times = field(default_factory=NEVER.copy)
    """Times of the steps of the attempt, for metrics."""
    sampled_by: SchedulerMetrics | None = None
    """The metrics that time each plugin, in the sampled attempts; None in all others."""
    node_claims: dict[str, NodeClaimStatuses] | None = None
    """By node: entries for the pod's status about resources of the node that the pod's devices use up."""
    group: CycleState | None = None
    """In the scheduling cycle of a pod group: the state of the group, which its members share. None otherwise."""

    def read(self, key: str) -> Any:
        """The value under `key`; KeyError `not found` when it was not written. PODS_TO_ACTIVATE is always there."""
        try:
            return self._values[key]
        except KeyError:
            if key == PODS_TO_ACTIVATE:
                return self._values.setdefault(key, {})
            raise KeyError("not found") from None

    def get(self, key: str) -> Any | None:
        """The value under `key`, or None."""
        return self._values.get(key)

    def write(self, key: str, value: Any) -> None:
        self._values[key] = value

    def delete(self, key: str) -> None:
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forget the entries of plugins, and the skipped plugins."""
        self._values.clear()
        self.skip_filter.clear()
        self.skip_score.clear()
        self.row_counts = self.fit_rule = self.node_claims = None

    def placed(self, pod: Pod, node_name: str) -> Pod:
        """The pod on a node, with the status that it will have by the devices that it gets there."""
        if self.node_claims is None:
            return pod.with_node(node_name)
        status = replace(
            pod.status, node_allocatable_resource_claim_statuses=self.node_claims.get(node_name)
        )
        return pod.replace(node_name=node_name, status=status, counts_claims=True)

    def clone(self) -> CycleState:
        """A copy for a what-if: values with a method `clone` are copied, others and the skip sets are shared."""
        copy = CycleState()
        copy._values = {
            key: clone() if (clone := getattr(value, "clone", None)) else value
            for key, value in self._values.items()
        }
        copy.skip_filter, copy.skip_score = self.skip_filter, self.skip_score
        copy.unreached, copy.group, copy.fit_rule = self.unreached, self.group, self.fit_rule
        copy.node_claims = self.node_claims
        return copy
