"""Relocation: where the pods of nodes would land if the nodes were gone, as the scheduler judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...api.pod import Pod
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
        self, leaving: Sequence[PoolNode], closed: Iterable[str], most_nodes: int
    ) -> LaunchPlan | None:
        """Where all pods of `leaving` would land, with at most so many new nodes; None: some would not.

        Nodes that are `closed`, and those that boot, get no pod.
        """
        pods = self._pods_of(leaving)
        self._options.learn(pods)
        rows, use = self._shadow.table.row_of, self._nodes.use.copy()
        excluded = {*closed, *(node.name for node in leaving)}
        excluded.update(node.name for node in self._nodes.booting.values())
        for node in leaving:
            use.add(node.pool, node.record.zone, node.type.capacity, -1)
        planner = ClaimPlanner(
            self._options, self._shadow, use, [rows[name] for name in excluded if name in rows]
        )
        with self._shadow.trial():
            waiting = [self._shadow.lift(pod) for pod in pods]
            plan = planner.plan(waiting, most_nodes, is_all_or_nothing=True)
        planner.close()
        return None if plan.left else plan

    def _pods_of(self, nodes: Sequence[PoolNode]) -> list[Pod]:
        """The pods of the nodes that would need another node."""
        return [
            pod
            for node in nodes
            for pod in self._shadow.pods_on(node.name)
            if pod.uid in node.pods and not pod.is_terminating
        ]
