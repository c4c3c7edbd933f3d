"""break_it: the texts that mutants of the engine and of the live driver replace still exist."""

import pytest

from tests.faults import break_it as live
from tests.rig.mutants import ROOT, Mutant

from . import break_it as engine

MUTANTS = (*engine.MUTANTS, *live.MUTANTS)


@pytest.mark.parametrize("mutant", [pytest.param(mutant, id=mutant.what) for mutant in MUTANTS])
def test_what_a_mutant_replaces_is_in_the_source_once(mutant: Mutant) -> None:
    source = (ROOT / "bayplan" / mutant.file).read_text("utf-8")

    assert source.count(mutant.old) == 1, f"{mutant.file}: {mutant.old!r}"


def test_reasons_are_of_mutants() -> None:
    assert {*engine.REDUNDANT, *live.REDUNDANT} <= {mutant.what for mutant in MUTANTS}
