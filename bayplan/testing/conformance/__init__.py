"""Conformance: the checks that every plugin must pass, whatever its policy.

Lives here: `plugin_checks.py`, and `declarations.py` for what a plugin declares about other steps than Filter and
Score. May enter: what a plugin may import, and `runtime`. Called by: tests of plugins.
"""

from .declarations import check_looks_at, check_settled
from .plugin_checks import (
    check_conformance,
    check_registered_events,
    check_repetition,
    check_row_groups,
    check_rows_agree,
    check_rules,
    check_scope,
    check_score_range,
    check_spec_key,
)

__all__ = [
    "check_repetition",
    "check_conformance",
    "check_looks_at",
    "check_registered_events",
    "check_row_groups",
    "check_rows_agree",
    "check_rules",
    "check_scope",
    "check_score_range",
    "check_settled",
    "check_spec_key",
]
