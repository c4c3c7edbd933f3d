"""Fit status: the shortages that a fit rule finds, as a status or a verdict."""

from __future__ import annotations

import numpy as np

from ..amounts import POD_COUNT, FitRule, is_unresolvable, shortage_reasons
from ..table import Ints
from .status import SUCCESS, Code, Status
from .verdict import Verdict


def fit_status(rule: FitRule, bits: int) -> Status:
    """The status of a row with these shortages."""
    if not bits:
        return SUCCESS
    is_never = is_unresolvable(rule, bits)
    code = Code.UnschedulableAndUnresolvable if is_never else Code.Unschedulable
    return Status(code, shortage_reasons(rule, bits), rule.plugin)


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
