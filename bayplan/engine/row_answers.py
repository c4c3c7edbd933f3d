"""Row answers: answers of plugins about rows as numbers, the sum of their scores or a refusal.

The number of a refusal contains which plugin refuses a row, and a number per distinct status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..amounts.kernel import DEAD, PLACE_SHIFT
from ..framework import ScorePlugin, Status, Verdict
from ..runtime.plugin_calls import PodCalls, check_range
from ..table import Ints
from .class_plan import PlacedFilter, Scorer

StatusNumbers = dict[Status, int]
"""The distinct refusals of filters, numbered from 0 in order of appearance."""


def add_answers(
    calls: PodCalls,
    rows: Ints,
    values: Ints,
    numbers: StatusNumbers,
    filters: Sequence[PlacedFilter],
    scores: Sequence[Scorer],
    raws: Mapping[ScorePlugin, Ints],
) -> None:
    """Add answers about `rows` to `values`: refusals of `filters`, else `scores`. Raw scores go to `raws`."""
    found = values[rows]
    for placed in filters:
        if placed.plugin.name not in calls.state.skip_filter:
            _note(found, numbers, placed, calls.filter(placed.plugin, rows))
    if filters:
        values[rows] = found
    accepted = found >= 0
    if not accepted.all():
        rows, found = rows[accepted], found[accepted]
    if not len(rows):
        return
    for plugin, weight, is_raw in scores:
        points = calls.score(plugin, rows)
        if is_raw:
            raws[plugin][rows] = points
        else:
            check_range(plugin, points)
            found += points * weight
    if scores:
        values[rows] = found


def _note(values: Ints, numbers: StatusNumbers, placed: PlacedFilter, verdict: Verdict) -> None:
    """Write the refusals of a plugin to `values`, except where an earlier plugin refuses."""
    (refused,) = verdict.codes.nonzero()
    if not len(refused):
        return
    samples, inverse = verdict.distinct(refused)
    statuses = [verdict.status(sample).by(placed.plugin.name) for sample in samples]
    noted = np.array([numbers.setdefault(status, len(numbers)) for status in statuses])
    codes = -1 - (placed.place << PLACE_SHIFT | noted[inverse])
    before = values[refused]
    takes = (before >= 0) | ((codes > before) & (before != DEAD))
    values[refused[takes]] = codes[takes]
