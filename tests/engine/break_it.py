"""Break it: the engine with one thing broken at a time, and whether the quick tests see it.

Every version, stamp and log entry by which answers become stale is broken once.

    python -m tests.engine.break_it [--only TEXT] [--jobs N]
"""

from __future__ import annotations

import sys

from tests.rig.mutants import MutantSuite

from .class_mutants import CLASS_MUTANTS
from .table_mutants import TABLE_MUTANTS
from .view_mutants import VIEW_MUTANTS

MUTANTS = [*TABLE_MUTANTS, *CLASS_MUTANTS, *VIEW_MUTANTS]
REDUNDANT = {
    "images have no version": "the row is touched, too, and the next snapshot changes the version",
}
"""Mutants that change no decision, with the reason."""

SUITE = MutantSuite(
    MUTANTS,
    REDUNDANT,
    tests=[
        "tests/engine/test_claims.py",
        "tests/engine/test_outlines.py",
        "tests/table/test_many_pods.py",
        "tests/engine/test_stale.py",
        "tests/engine/test_pinned_pods.py",
        "tests/engine/test_plugin_declarations.py",
        "tests/engine/test_domain_rules.py",
        "tests/conformance/test_recorded_slice.py",
        "tests/engine/test_histories.py",
    ],
    copied=["tests/engine", "tests/conformance", "tests/table"],
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
