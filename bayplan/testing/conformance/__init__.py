"""Conformance: what a plugin must pass, and the recorded decisions of kube-scheduler with their runners.

Lives here: the checks for plugins (`plugin_checks.py`, re-exported below), one module per family of recorded cases
(`cases.py` for placements, `long_run.py`, `config.py`, `hints.py`, `queue.py`), and the two commands, `cli.py` and
`counterfactuals.py`. May enter: the whole scheduler, `sim` and `answers`; the checks for plugins only what a plugin may
import, and `runtime`. Called by: tests, `make conformance`, `make counterfactuals`.
"""

from .declarations import check_by_outline, check_looks_at, check_settled
from .plugin_checks import (
    check_bounds,
    check_conformance,
    check_registered_events,
    check_row_groups,
    check_rows_agree,
    check_rules,
    check_scope,
    check_score_range,
    check_spec_key,
)

__all__ = [
    "check_bounds",
    "check_conformance",
    "check_looks_at",
    "check_registered_events",
    "check_row_groups",
    "check_rows_agree",
    "check_rules",
    "check_scope",
    "check_score_range",
    "check_by_outline",
    "check_settled",
    "check_spec_key",
]
