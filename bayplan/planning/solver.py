"""Solver: linear and integer programs, solved by HiGHS (`highspy`, extra `plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Floats = NDArray[np.float64]
INFINITY = 1e30


@dataclass(frozen=True, slots=True)
class Rows:
    """Constraints of a knapsack: `weights @ x <= capacity`."""

    weights: Floats
    capacity: Floats


@dataclass(frozen=True, slots=True)
class Covering:
    """Minimise `costs @ x` with `columns.T @ x >= least`, x >= 0."""

    costs: Floats
    columns: Sequence[Floats]
    """The coefficients of each variable."""
    least: Floats
    upper: Floats


@dataclass(frozen=True, slots=True)
class CoveringAnswer:
    """Values of the variables, and for a linear program the dual values of the rows; empty if there is none."""

    values: Floats
    duals: Floats
    objective: float


def load_highs() -> Any:
    """The module highspy; raises InputError when it is not installed."""
    try:
        import highspy
    except ImportError:
        raise InputError(
            "plan: expected highspy to be installed (pip install 'bayplan[plan]'); got none"
        ) from None
    return highspy


def new_model(time_limit_s: float) -> tuple[Any, Any]:
    """The module, and an empty silent model that takes one thread."""
    highspy = load_highs()
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("random_seed", 0)
    model.setOptionValue("time_limit", max(time_limit_s, 0.01))
    return highspy, model


def maximize(
    values: Floats, rows: Rows, upper: Floats, time_limit_s: float, relative_gap: float
) -> tuple[Floats | None, float]:
    """Whole numbers up to `upper` with the highest value, and an upper bound of all; None: none found in time."""
    highspy, model = new_model(time_limit_s)
    model.setOptionValue("mip_rel_gap", relative_gap)
    scale = np.maximum(np.abs(rows.capacity), 1.0)
    columns = list((rows.weights / scale[:, None]).T)
    _fill(highspy, model, -values, columns, (np.full(len(scale), -INFINITY), rows.capacity / scale))
    _bound(highspy, model, upper, is_integer=True)
    model.run()
    info = model.getInfo()
    solution = np.array(model.getSolution().col_value)
    bound = -float(info.mip_dual_bound)
    if not np.isfinite(bound) or model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        bound = float(values @ upper)
    has_answer = info.primal_solution_status == 2
    return (solution if has_answer else None), bound


def cover(
    problem: Covering, time_limit_s: float, *, is_integer: bool, start: Floats | None = None
) -> CoveringAnswer | None:
    """The cheapest cover; None if none was found in time."""
    highspy, model = new_model(time_limit_s)
    count = len(problem.least)
    scale = np.maximum(np.abs(problem.least), 1.0) if not is_integer else np.ones(count)
    columns = [column / scale for column in problem.columns]
    limits = problem.least / scale, np.full(count, INFINITY)
    _fill(highspy, model, problem.costs, columns, limits)
    _bound(highspy, model, problem.upper, is_integer)
    if start is not None:
        given = highspy.HighsSolution()
        given.col_value = list(start)
        model.setSolution(given)
    model.run()
    info = model.getInfo()
    if info.primal_solution_status != 2:
        return None
    solution = model.getSolution()
    duals = np.array(solution.row_dual) if not is_integer else np.zeros(count)
    return CoveringAnswer(
        np.array(solution.col_value),
        np.maximum(duals, 0) / scale,
        float(info.objective_function_value),
    )


def _fill(
    highspy: Any,
    model: Any,
    costs: Floats,
    columns: Sequence[Floats],
    limits: tuple[Floats, Floats],
) -> None:
    """Pass a model: its columns as a sparse matrix, its rows with lower and upper limits."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), len(limits[0])
    lp.col_cost_ = np.asarray(costs, dtype=float)
    lp.col_lower_ = np.zeros(len(columns))
    lp.col_upper_ = np.full(len(columns), INFINITY)
    lp.row_lower_, lp.row_upper_ = limits
    starts, index, value = [0], [], []
    for column in columns:
        used = np.flatnonzero(column)
        index.append(used)
        value.append(column[used])
        starts.append(starts[-1] + len(used))
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.num_col_, matrix.num_row_ = lp.num_col_, lp.num_row_
    matrix.start_ = np.array(starts, dtype=np.int32)
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
