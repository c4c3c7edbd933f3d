"""Relocation: where the pods of nodes would land if the nodes were gone, as the scheduler judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...api.pod import Pod
from ...table import Bools
from .claims import ClaimPlanner
from .launch_options import LaunchOptions
from .launch_plan import LaunchPlan
from .pool_nodes import PoolNode, PoolNodes
from .shadow import ShadowScheduler


class Relocation:
    """Asks the shadow about nodes that could be taken away."""

    def __init__(self, options: LaunchOptions, shadow: ShadowScheduler, nodes: PoolNodes) -> None:
        self._options, self._shadow, self._nodes = options, shadow, nodes

    def find(
        self, leaving: Sequence[PoolNode], closed: Iterable[str], *, may_replace: bool
    ) -> LaunchPlan | None:
        """Where all pods of `leaving` would land; None: some would not.

        With `may_replace`, one new node may be launched that is cheaper than all that leave. Nodes that are `closed`,
        and those that boot, get no pod.
        """
        pods = self._pods_of(leaving)
        self._options.learn(pods)
        rows, use = self._shadow.table.row_of, self._nodes.use.copy()
        excluded = {*closed, *(node.name for node in leaving), *self._nodes.booting}
        for node in leaving:
            use.add(node.pool, node.record.zone, node.type.capacity, -1)
        planner = ClaimPlanner(
            self._options, self._shadow, use, [rows[name] for name in excluded if name in rows]
        )
        allowed = self._cheaper(leaving, may_replace)
        with self._shadow.trial():
            plan = planner.replace([self._shadow.lift(pod) for pod in pods], allowed)
        planner.close()
        return plan if plan is not None and self._may_launch(plan) else None

    def _may_launch(self, plan: LaunchPlan) -> bool:
        """Whether limits allow what is launched beside the nodes that leave later."""
        return all(self._nodes.use.allows(one.pool, one.type) for one, _ in plan.launches)

    def _cheaper(self, leaving: Sequence[PoolNode], may_replace: bool) -> Bools:
        """bool per option: whether it may replace the nodes; a spot node is not replaced by a spot node."""
        if not may_replace:
            return np.zeros(len(self._options.all), dtype=np.bool_)
        price = sum(node.record.price or 0.0 for node in leaving)
        found: Bools = self._options.prices < price
        if all(node.record.is_spot for node in leaving):
            found &= ~self._options.is_spot
        return found

    def _pods_of(self, nodes: Sequence[PoolNode]) -> list[Pod]:
        """The pods of the nodes that would need another node."""
        return [
            pod
            for node in nodes
            for pod in self._shadow.pods_on(node.name)
            if pod.uid in node.pods and not pod.is_terminating
        ]
