"""Agreement: compares the engine's decision with the reference, where both are computed."""

from __future__ import annotations

import numpy as np

from ..api.pod import Pod
from ..engine import Decision
from ..errors import EngineDisagreementError
from ..framework import Diagnosis
from ..table import Ints, NodeTable


def check_feasible(decision: Decision, rows: Ints, pod: Pod, table: NodeTable) -> None:
    """Raise EngineDisagreementError unless the engine finds the pod feasible on just these rows."""
    if pod.spec.pin:
        found = np.array([decision.best.row], dtype=np.int64)
    else:
        found = np.flatnonzero(decision.totals >= 0)
    if not np.array_equal(found, rows):
        differing = np.setxor1d(found, rows)
        raise _disagreement(pod, differing, table, "whether the pod fits")


def check_totals(decision: Decision, rows: Ints, totals: Ints, pod: Pod, table: NodeTable) -> None:
    """Raise EngineDisagreementError unless the engine gives `rows` these totals; what all rows get may be left out."""
    if pod.spec.pin or not len(rows):
        return
    found = decision.totals[rows]
    ours = found + (decision.best.total - int(found.max()))
    if not np.array_equal(ours, totals):
        raise _disagreement(pod, rows[ours != totals], table, "the total score")


def check_refusals(decision: Decision, diagnosis: Diagnosis, pod: Pod, table: NodeTable) -> None:
    """Raise EngineDisagreementError unless the engine says the same about every node."""
    refusals = decision.refusals
    if refusals is None:
        return
    rows = np.flatnonzero(table.live).tolist()
    differing = [row for row in rows if refusals.at(row) != diagnosis.status_of(row)]
    if differing:
        raise _disagreement(pod, np.array(differing), table, "why the pod is refused")


def _disagreement(pod: Pod, rows: Ints, table: NodeTable, what: str) -> EngineDisagreementError:
    names = [table.names[row] for row in rows[:3].tolist()]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return EngineDisagreementError(
        f"pod {pod.key}: the engine and the reference disagree on {what}, on {', '.join(names)}{more};"
        " this is a bug, please report it with the input"
    )
