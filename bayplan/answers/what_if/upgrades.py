"""Upgrades: replace nodes in turn, some at a time, with the pods evicted under disruption budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...api.node import Node
from ...errors import InputError
from ..courses import DrainCourse, UpgradeCourse
from ..input_gaps import eviction_gaps
from ..references import find_node
from ..stage import Stage
from .change import check_field, check_seconds
from .node_changes import cordoned, uncordoned
from .node_copies import add_node_like, free_names
from .object_changes import empty_node
from .rounds import DrainChange, Evictions


@dataclass(frozen=True)
class Upgrade(DrainChange):
    """Replace nodes in turn: `surge` new nodes are added first, `max_unavailable` are added after their old ones are
    gone.

    So there are at most `surge` additional nodes, and at most `max_unavailable` are missing. A new node is a copy of
    the one that it replaces. A node whose drain stalls is left as it is, and the next ones follow. `node_start_s` is
    the time until a new node is ready. The other fields are those of `Drain`.
    """

    nodes: tuple[str, ...] = ()
    selector: str = ""
    surge: int = 1
    max_unavailable: int = 0
    force: bool = False
    start_s: float = 0
    node_start_s: float = 0
    delete_emptydir_data: bool = False
    disable_eviction: bool = False
    ignore_daemonsets: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds(self, "node_start_s")
        for field in ("surge", "max_unavailable"):
            check_field(self, field, int, "a whole number")
        if self.surge < 0 or self.max_unavailable < 0 or not self.surge + self.max_unavailable:
            given = f"surge {self.surge} and max-unavailable {self.max_unavailable}"
            raise InputError(f"upgrade: expected numbers of which one is more than 0; got {given}")

    @property
    def text(self) -> str:
        missing = f" --max-unavailable {self.max_unavailable}" if self.max_unavailable else ""
        return f"{super().text} --surge {self.surge}{missing}"

    def apply(self, stage: Stage) -> None:
        stage.courses.append(_Upgrading(stage, self, self.find(stage)).run())


class _Upgrading:
    """An upgrade under way."""

    def __init__(self, stage: Stage, options: Upgrade, nodes: Sequence[Node]) -> None:
        self._stage, self._options = stage, options
        self._evictions = Evictions(stage, options)
        self._course = UpgradeCourse([node.name for node in nodes])
        leaving = self._evictions.pods_to_go(self._course.nodes)
        stage.notes += eviction_gaps(stage.cluster, leaving)
        self._course.pending_before = self._evictions.count_pending()
        self._spare = 0
        """New nodes whose old node stalled and still exists; they count as surge."""

    def run(self) -> UpgradeCourse:
        course, options = self._course, self._options
        size = options.surge + options.max_unavailable
        for start in range(0, len(course.nodes), size):
            self._step(course.nodes[start : start + size])
            if self._stage.on_progress is not None:
                done = min(start + size, len(course.nodes))
                self._stage.on_progress(done, len(course.nodes))
        course.seconds = self._evictions.elapsed_s
        at_risk = {risk.pod: risk for risk in reversed(course.at_risk)}
        course.at_risk = [risk for risk in course.at_risk if at_risk[risk.pod] is risk]
        return course

    def _step(self, names: Sequence[str]) -> None:
        """Drain and replace some nodes together."""
        stage = self._stage
        early = names[: max(self._options.surge - self._spare, 0)]
        copies = self._add_copies(early)
        for name in names:
            stage.update_node(cordoned(find_node(stage.cluster, name)))
        drained = self._evictions.drain(names)
        self._note(drained)
        stuck = {node for stall in drained.stalls for node in stall.nodes}
        for name in stuck:
            stage.update_node(uncordoned(find_node(stage.cluster, name)))
            self._spare += name in copies
        if stuck:
            self._evictions.land()
        done = {name: find_node(stage.cluster, name) for name in names if name not in stuck}
        copies |= self._add_copies(name for name in done if name not in copies)
        for name, node in done.items():
            empty_node(stage, node)
            stage.cluster.delete(node)
            self._course.replaced[name] = copies[name]

    def _add_copies(self, names: Iterable[str]) -> dict[str, str]:
        """Add a new node for each, and place the pods that waited for it; returns their names."""
        cluster, copies = self._stage.cluster, dict[str, str]()
        for name in names:
            copies[name] = next(free_names(cluster, name))
            add_node_like(self._stage, find_node(cluster, name), copies[name])
        if copies:
            self._evictions.elapsed_s += self._options.node_start_s
            self._evictions.land()
        return copies

    def _note(self, drained: DrainCourse) -> None:
        course = self._course
        course.steps += 1
        course.rounds += len(drained.rounds)
        course.evicted += drained.evicted
        course.stalls += drained.stalls
        course.at_risk += drained.at_risk
        if drained.pending_peak > course.pending_peak:
            course.pending_peak, course.peak_nodes = drained.pending_peak, tuple(drained.nodes)
