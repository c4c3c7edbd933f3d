"""ProfileRuntime: the plugins of one profile, made and in order; those that generate and score placements of groups.

Mirrors NewFramework of pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, TypeVar

import msgspec
import numpy as np

from ..api.pod import Pod
from ..config.expand import expand_plugins
from ..config.types import Profile
from ..errors import BayplanError, ConfigError
from ..framework import (
    MAX_SCORE,
    SUCCESS,
    BindPlugin,
    CycleState,
    FilterPlugin,
    Handle,
    PermitPlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    unschedulable,
)
from ..framework.answer_checks import (
    WrongAnswerError,
    check_each_score,
    check_scores,
    check_status,
    check_type,
    wrong,
)
from ..framework.placement import Placement, PodGroupAssignments, PodGroupInfo
from ..framework.scores import MIN_SCORE
from ..framework.status import CODE_NAMES
from ..table import Bools, Ints
from .commit_plugins import Committing
from .filter_plugins import Filtering
from .plugin_failures import failed, fault_text, is_in_tree
from .plugin_registry import Registry
from .plugin_times import Evaluations
from .score_plugins import Scoring

P = TypeVar("P")

EVERY_NODE = 100
"""The percentage that stands for all nodes."""
NO_PLACEMENTS = unschedulable("no feasible placements found")
GENERATING = "running PlacementGenerate plugin {}"
SCORING = "running PlacementScore plugins: plugin {} failed with"


class ProfileRuntime:
    """Runs the extension points of one profile.

    `filtering`, `scoring` and `committing` are the three parts of a pod's path, `placing` is for pod groups.
    `percentage` is the share of nodes to judge (None means all of them); with `check_all` every filter judges a node,
    also after a refusal.
    """

    def __init__(
        self,
        profile: Profile,
        registry: Registry,
        handle: Handle,
        percentage: int | None = None,
        check_all: bool = False,
    ) -> None:
        self.name = profile.scheduler_name
        self.handle = handle
        self.metrics = handle.metrics.profile(self.name)
        self.points = expand_plugins(profile, list(registry), registry.implements)
        names = dict.fromkeys(ref.name for refs in self.points.values() for ref in refs)
        self.plugins = {name: make_plugin(registry.get(name), profile, handle) for name in names}
        self.is_in_tree = all(map(is_in_tree, self.plugins.values()))
        """Whether all of its plugins are part of this package."""
        self.queue_sort = self._at("queue_sort", QueueSortPlugin)[0]
        self.pre_enqueues = self._at("pre_enqueue", PreEnqueuePlugin)
        self.filtering = Filtering(
            self._at("pre_filter", PreFilterPlugin),
            self._at("filter", FilterPlugin),
            self._at("post_filter", PostFilterPlugin),
            handle.nominator,
            check_all,
        )
        handle.filters = self.filtering
        weights = [ref.weight for ref in self.points["score"]]
        self.scoring = Scoring(
            self._at("pre_score", PreScorePlugin),
            list(zip(self._at("score", ScorePlugin), weights, strict=True)),
        )
        # Without Score plugins the search ends at the first feasible node, even at 100 percent.
        is_all = percentage == EVERY_NODE and bool(self.scoring.scores)
        self.percentage = None if is_all else percentage
        self.filter_evaluations = Evaluations(
            self.metrics,
            {"PreFilter": self.filtering.pre_filters, "Filter": self.filtering.filters},
        )
        scorers = [plugin for plugin, _ in self.scoring.scores]
        self.score_evaluations = Evaluations(
            self.metrics, {"PreScore": self.scoring.pre_scores, "Score": scorers}
        )
        self.committing = Committing(
            self._at("reserve", ReservePlugin),
            self._at("permit", PermitPlugin),
            self._at("pre_bind", PreBindPlugin),
            self._at("bind", BindPlugin),
            self._at("post_bind", PostBindPlugin),
            handle,
        )

        weights = [ref.weight for ref in self.points["placement_score"]]
        self.placing = Placing(
            self._at("placement_generate", PlacementGeneratePlugin),
            list(zip(self._at("placement_score", PlacementScorePlugin), weights, strict=True)),
        )

    def run_pre_enqueue(self, pod: Pod) -> Status:
        """SUCCESS, or the status of the plugin that holds the pod back; an error holds it back too."""
        started = perf_counter()
        status = self._ask_pre_enqueues(pod)
        self.note_point("PreEnqueue", status, perf_counter() - started)
        return status

    def note_point(self, name: str, status: Status, seconds: float) -> None:
        """Record how long the plugins of an extension point took."""
        point = self.metrics.point(name)
        if status is SUCCESS:
            point.success.observe(seconds)
        else:
            point.ended(CODE_NAMES[status.code], seconds)

    def _ask_pre_enqueues(self, pod: Pod) -> Status:
        for plugin in self.pre_enqueues:
            try:
                status = plugin.pre_enqueue(pod)
                if status is SUCCESS:
                    continue
                check_status(status)
            except Exception as error:  # a plugin may raise anything
                failure = failed("running PreEnqueue plugin {}", plugin, error, "pre_enqueue")
                self.handle.faults.note(failure.status.error)
                return failure.status
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def _at(self, point: str, kind: type[P]) -> list[P]:
        found = [self.plugins[ref.name] for ref in self.points[point]]
        return [plugin for plugin in found if isinstance(plugin, kind)]


def make_plugin(plugin: type[Plugin], profile: Profile, handle: Handle) -> Plugin:
    """A plugin with its arguments of the profile; ConfigError when it does not accept them."""
    args: Any = profile.plugin_config.get(plugin.name)
    try:
        return check_type(plugin.from_args(args, handle), Plugin, "a Plugin")  # type: ignore[no-any-return]  # checked at run time
    except Exception as error:  # a plugin may raise anything
        raise initialization_error(plugin, "from_args", error) from error


def initialization_error(plugin: type[Plugin], method: str, error: Exception) -> ConfigError:
    """The error of a plugin that cannot be used; a fault of its code is named with its place."""
    is_told = isinstance(error, BayplanError) and not isinstance(error, WrongAnswerError)
    text = str(error) if is_told else fault_text(plugin, method, error)
    return ConfigError(f'initializing plugin "{plugin.name}": {text}')


class PlacementScores(msgspec.Struct, frozen=True):
    """Weighted points of each plugin for the placements, by plugin name; and their sums."""

    by_plugin: dict[str, Ints]
    totals: Ints


class Placing:
    """Generates and scores the placements for the groups of a profile."""

    def __init__(
        self,
        generators: Sequence[PlacementGeneratePlugin],
        scores: Sequence[tuple[PlacementScorePlugin, int]],
    ) -> None:
        self._generator = generators[0] if generators else None
        self._scores = tuple(scores)

    def run_generate(
        self, state: CycleState, group: PodGroupInfo, everything: Placement
    ) -> Sequence[Placement] | Status:
        """The placements to try, or a status if there are none. Without a plugin, all nodes are one placement."""
        plugin = self._generator
        if plugin is None:
            return (everything,)
        try:
            found = _checked(plugin.generate_placements(state, group, everything), everything)
        except Exception as error:  # a plugin may raise anything
            raise failed(GENERATING, plugin, error, "generate_placements") from error
        if isinstance(found, Status):
            return found.by(plugin.name)
        return found or NO_PLACEMENTS.by(plugin.name)

    def run_scores(
        self, state: CycleState, group: PodGroupInfo, assigned: Sequence[PodGroupAssignments]
    ) -> PlacementScores:
        """Score the placements."""
        by_plugin: dict[str, Ints] = {}
        totals = np.zeros(len(assigned), dtype=np.int64)
        for plugin, weight in self._scores:
            method = "score_placement"
            try:
                raw = check_each_score(
                    plugin.score_placement(state, group, one) for one in assigned
                )
                method = "normalize_placement_scores"
                scores = plugin.normalize_placement_scores(raw)
                check_scores(scores, len(assigned), "placement")
            except Exception as error:  # a plugin may raise anything
                raise failed(SCORING, plugin, error, method) from error
            outside = scores[(scores < MIN_SCORE) | (scores > MAX_SCORE)]
            if len(outside):
                text = f"an invalid score {outside[0]}, it should be in the range of [{MIN_SCORE}, {MAX_SCORE}]"
                raise failed(SCORING, plugin, WrongAnswerError(text), "score_placement")
            by_plugin[plugin.name] = scores * weight
            totals += by_plugin[plugin.name]
        return PlacementScores(by_plugin, totals)


def _checked(found: Any, everything: Placement) -> Sequence[Placement] | Status:
    """The answer of PlacementGenerate: placements with names of their own, whose rows are nodes."""
    if isinstance(found, Status):
        return check_status(found)
    if not isinstance(found, list | tuple):
        raise wrong("a list of Placements, or a Status", found)
    names: set[tuple[int, str]] = set()
    is_row = np.zeros(int(everything.rows.max(initial=-1)) + 1, dtype=np.bool_)
    is_row[everything.rows] = True
    for placement in found:
        if not isinstance(placement, Placement):
            raise wrong("a list of Placements", placement)
        name: Any = placement.name
        if not isinstance(name, str) or (placement.tier, name) in names:
            raise wrong("a name for each Placement that no other has", name)
        names.add((placement.tier, name))
        rows: Any = placement.rows
        if not isinstance(rows, np.ndarray) or rows.dtype != np.int64 or rows.ndim != 1:
            raise wrong(f'an array of int64 as rows of Placement "{name}"', rows)
    if found and not _are_all(np.concatenate([placement.rows for placement in found]), is_row):
        name = next(placement.name for placement in found if not _are_all(placement.rows, is_row))
        raise WrongAnswerError(f'expected rows of the parent in Placement "{name}"; got others')
    return found


def _are_all(rows: Ints, is_row: Bools) -> bool:
    """Whether `is_row` is set for all of `rows`."""
    if not len(rows):
        return True
    return bool(rows.min() >= 0 and rows.max() < len(is_row) and is_row[rows].all())
