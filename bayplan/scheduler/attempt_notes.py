"""Attempt notes: the runner-up, refusals by plugin and victims of one attempt. Made on request only."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..engine import Decision
from ..framework.diagnosis import Diagnosis
from ..framework.interface import Preemption
from ..table import Ints, NodeTable
from .attempt import AttemptNotes


def note_runner_up(notes: AttemptNotes, table: NodeTable, row: int, decision: Decision) -> None:
    """Note the best node beside `row`, which was chosen; two nodes or more are feasible."""
    best = decision.best
    if best.ties > 1:
        other = decision.nth_best(0)
        if other == row:
            other = decision.nth_best(1)
        notes.runner_up, notes.runner_up_total = table.names[other], best.total
        return
    note_second(notes, decision.totals, row, None, table)


def note_second(
    notes: AttemptNotes, totals: Ints, winner: int, rows: Ints | None, table: NodeTable
) -> None:
    """Note the highest of `totals` beside that at `winner`; the totals are those of `rows`, of all rows if None."""
    others = totals.copy()
    others[winner] = -1
    place = int(np.argmax(others))
    if others[place] >= 0:
        notes.runner_up_total = int(others[place])
        notes.runner_up = table.names[place if rows is None else int(rows[place])]


def note_refusal(notes: AttemptNotes, diagnosis: Diagnosis, preemption: Preemption | None) -> None:
    """Note why no node fits."""
    counts: Counter[str] = Counter()
    for status, rows in diagnosis.by_status():
        counts[status.plugin or "extender"] += len(rows)
    notes.refusals = dict(counts.most_common())
    if preemption is not None and preemption.chosen is not None:
        notes.victims = tuple(victim.key for victim in preemption.chosen.evicted)
