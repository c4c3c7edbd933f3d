"""Fit status: the shortages that a fit rule finds, as a status or a verdict."""

from __future__ import annotations

import numpy as np

from ..amounts import POD_COUNT, FitRule
from ..table import Ints
from .status import SUCCESS, Code, Status
from .verdict import Verdict


def fit_status(rule: FitRule, bits: int) -> Status:
    """The status of a row with these shortages."""
    if not bits:
        return SUCCESS
    is_never = _is_unresolvable(rule, bits)
    code = Code.UnschedulableAndUnresolvable if is_never else Code.Unschedulable
    return Status(code, _reasons(rule, bits), rule.plugin)


def fit_verdict(rule: FitRule, bits: Ints) -> Verdict:
    """The verdict on rows with these shortages, int64 per row."""
    verdict = Verdict(len(bits))
    if not np.count_nonzero(bits):
        return verdict
    for place, resource in enumerate(rule.amounts):
        short = (bits >> 2 * place & 1).astype(np.bool_)
        if np.count_nonzero(short):
            is_never = resource != POD_COUNT and not rule.is_always_resolvable
            never = is_never and (bits >> 2 * place + 1 & 1).astype(np.bool_)
            verdict.reject(short, rule.reasons[resource], unresolvable=never)
    return verdict


def _reasons(rule: FitRule, bits: int) -> tuple[str, ...]:
    """The reasons for the shortages of a row; see `amounts.shortages` for the bits."""
    places = enumerate(rule.amounts)
    return tuple([rule.reasons[name] for place, name in places if bits >> 2 * place & 1])


def _is_unresolvable(rule: FitRule, bits: int) -> bool:
    """Whether preemption cannot help a row with these shortages."""
    never = any(bits >> 2 * place + 1 & 1 for place in range(len(rule.amounts)))
    return never and not rule.is_always_resolvable
