"""Placement plugins: PlacementGenerate and PlacementScore of one profile.

Mirrors RunPlacementGeneratePlugins and RunPlacementScorePlugins of pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..framework import (
    MAX_SCORE,
    CycleState,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Status,
    unschedulable,
)
from ..framework.answer_checks import (
    WrongAnswerError,
    check_each_score,
    check_scores,
    check_status,
    wrong,
)
from ..framework.placement import Placement, PodGroupAssignments, PodGroupInfo
from ..framework.scores import MIN_SCORE
from ..table import Bools, Ints
from .plugin_failures import failed

NO_PLACEMENTS = unschedulable("no feasible placements found")
GENERATING = "running PlacementGenerate plugin {}"
SCORING = "running PlacementScore plugins: plugin {} failed with"


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
