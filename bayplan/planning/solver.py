"""Solver: linear and integer programs, solved by HiGHS (`highspy`, extra `plan`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import package_needed

Floats = NDArray[np.float64]
INFINITY = 1e30
CLOCK_FACTOR = 20.0
"""Seconds on the clock for each second of processor time, at most."""
FEASIBLE = 2
"""HiGHS: a solution satisfies all constraints."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Constraints of a knapsack: `weights @ x <= capacity`."""

    weights: Floats
    capacity: Floats


@dataclass(slots=True)
class SparseProgram:
    """Minimise `costs @ x` with rows `>= least`, 0 <= x <= upper; the entries of each variable by row."""

    least: Floats
    costs: list[float] = field(default_factory=list)
    columns: list[dict[int, float]] = field(default_factory=list)
    more: int = 0
    """The number of rows that were added, each with 0 on its right side."""

    def add(self, cost: float, entries: Mapping[int, float]) -> int:
        """Add a variable; returns its number."""
        self.costs.append(cost)
        self.columns.append(dict(entries))
        return len(self.columns) - 1

    def add_row(self, entries: Mapping[int, float]) -> int:
        """Add a row with its entries by variable; returns its number."""
        row = len(self.least) + self.more
        self.more += 1
        for number, value in entries.items():
            self.columns[number][row] = value
        return row


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """Values of the variables, and for a linear program the dual values of the rows."""

    values: Floats
    duals: Floats
    objective: float


def load_highs() -> Any:
    """The module highspy; raises InputError when it is not installed."""
    with package_needed("plan", "highspy", "plan"):
        import highspy
    return highspy


def new_model() -> tuple[Any, Any]:
    """The module, and an empty silent model that takes one thread."""
    highspy = load_highs()
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("random_seed", 0)
    return highspy, model


def run_model(highspy: Any, model: Any, limit_s: float) -> None:
    """Solve for at most `limit_s` seconds of processor time, so that a busy machine gets as far as an idle one.

    HiGHS has a limit by the clock only: a callback interrupts it. The limit by the clock ends phases without
    callbacks.
    """
    limit_s = max(limit_s, 0.01)
    end_s = time.process_time() + limit_s

    def interrupt(kind: Any, message: str, progress: Any, control: Any, data: Any) -> None:
        control.user_interrupt = time.process_time() >= end_s

    model.setCallback(interrupt, None)
    kinds = highspy.cb.HighsCallbackType
    for kind in (kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt):
        model.startCallback(kind)
    # HiGHS counts the time of all solutions of a model together.
    model.setOptionValue("time_limit", model.getRunTime() + CLOCK_FACTOR * limit_s)
    model.run()


def maximize(
    values: Floats,
    rows: Rows,
    upper: Floats,
    time_limit_s: float,
    relative_gap: float = 0.0,
    *,
    is_integer: bool = True,
) -> tuple[Floats | None, float]:
    """Numbers up to `upper` with the highest value, and an upper bound of all; None if none found in time."""
    highspy, model = new_model()
    model.setOptionValue("mip_rel_gap", relative_gap)
    scale = np.maximum(np.abs(rows.capacity), 1.0)
    columns = [(np.flatnonzero(one), one[one != 0]) for one in (rows.weights / scale[:, None]).T]
    _fill(highspy, model, -values, columns, (np.full(len(scale), -INFINITY), rows.capacity / scale))
    _bound(highspy, model, upper, is_integer)
    run_model(highspy, model, time_limit_s)
    info, status = model.getInfo(), model.getModelStatus()
    solution = np.array(model.getSolution().col_value)
    bound = -float(info.mip_dual_bound if is_integer else info.objective_function_value)
    is_bounded = is_integer or status == highspy.HighsModelStatus.kOptimal
    if not is_bounded or not np.isfinite(bound) or status == highspy.HighsModelStatus.kInfeasible:
        bound = float(values @ upper)
    has_answer = info.primal_solution_status == FEASIBLE
    return (solution if has_answer else None), bound


def solve_program(
    program: SparseProgram, time_limit_s: float, *, whole: int = 0, relative_gap: float = 0.0
) -> ProgramAnswer | None:
    """The cheapest values, the first `whole` variables in whole numbers; None if none were found in time."""
    model = ProgramModel(program)
    if whole:
        model.require_whole(whole, relative_gap)
    return model.solve(time_limit_s)


class ProgramModel:
    """A program within HiGHS: variables can be added, and the next solution starts from the last one."""

    def __init__(self, program: SparseProgram) -> None:
        self._highspy, self._model = new_model()
        self._least = np.append(program.least, np.zeros(program.more))
        self._scale = np.maximum(np.abs(self._least), 1.0)
        columns = []
        for entries in program.columns:
            rows = np.fromiter(entries, dtype=np.int32, count=len(entries))
            values = np.fromiter(entries.values(), dtype=float, count=len(entries))
            columns.append((rows, values / self._scale[rows]))
        limits = self._least / self._scale, np.full(len(self._least), INFINITY)
        _fill(self._highspy, self._model, np.array(program.costs), columns, limits)

    def add(self, cost: float, column: Floats) -> None:
        """Add a variable with its coefficient in every row."""
        used = np.flatnonzero(column).astype(np.int32)
        values = (column / self._scale)[used]
        self._model.addCol(cost, 0.0, INFINITY, len(used), used, values)

    def change_least(self, least: Floats) -> None:
        """Set another right side."""
        rows = np.arange(len(least), dtype=np.int32)
        upper = np.full(len(least), INFINITY)
        self._model.changeRowsBounds(len(least), rows, least / self._scale, upper)

    def require_whole(self, count: int, relative_gap: float) -> None:
        """Allow only whole numbers for the first variables."""
        numbers = np.arange(count, dtype=np.int32)
        kinds = np.full(count, int(self._highspy.HighsVarType.kInteger), dtype=np.uint8)
        self._model.changeColsIntegrality(count, numbers, kinds)
        self._model.setOptionValue("mip_rel_gap", relative_gap)

    def solve(self, time_limit_s: float) -> ProgramAnswer | None:
        """The cheapest values; None if none were found in time."""
        run_model(self._highspy, self._model, time_limit_s)
        info = self._model.getInfo()
        if info.primal_solution_status != FEASIBLE:
            return None
        solution = self._model.getSolution()
        duals = np.array(solution.row_dual)
        if len(duals) != len(self._scale):
            duals = np.zeros(len(self._scale))
        return ProgramAnswer(
            np.array(solution.col_value),
            np.maximum(duals, 0) / self._scale,
            float(info.objective_function_value),
        )


def _fill(
    highspy: Any,
    model: Any,
    costs: Floats,
    columns: Sequence[tuple[NDArray[Any], Floats]],
    limits: tuple[Floats, Floats],
) -> None:
    """Pass a model: rows and values of each column, and the lower and upper limits of rows."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), len(limits[0])
    lp.col_cost_ = np.asarray(costs, dtype=float)
    lp.col_lower_ = np.zeros(len(columns))
    lp.col_upper_ = np.full(len(columns), INFINITY)
    lp.row_lower_, lp.row_upper_ = limits
    index = [rows for rows, _ in columns]
    value = [values for _, values in columns]
    starts = np.cumsum([0, *(len(rows) for rows in index)])
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.num_col_, matrix.num_row_ = lp.num_col_, lp.num_row_
    matrix.start_ = starts.astype(np.int32)
    matrix.index_ = np.concatenate(index).astype(np.int32) if index else np.zeros(0, np.int32)
    matrix.value_ = np.concatenate(value).astype(float) if value else np.zeros(0)
    model.passModel(lp)


def _bound(highspy: Any, model: Any, upper: Floats, is_integer: bool) -> None:
    count = len(upper)
    numbers = np.arange(count, dtype=np.int32)
    model.changeColsBounds(count, numbers, np.zeros(count), np.asarray(upper, dtype=float))
    if is_integer:
        kinds = np.full(count, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        model.changeColsIntegrality(count, numbers, kinds)
