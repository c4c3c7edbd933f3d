"""Sorting on disk: the same as sorting in memory, whatever the length of the runs."""

import random

import pytest

from bayplan.sim.traces import trace_manifests


@pytest.mark.parametrize(
    "run_length",
    [
        pytest.param(1000, id="all in memory"),
        pytest.param(100, id="whole runs"),
        pytest.param(7, id="many runs and a rest"),
    ],
)
@pytest.mark.parametrize(
    "block", [pytest.param(3, id="small blocks"), pytest.param(500, id="large")]
)
def test_records_come_in_order(
    run_length: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_manifests, "BLOCK_LENGTH", block)
    lots = random.Random(1)
    records = [(lots.choice([0.5, 1.0, 2.25]), bool(i % 2), i, f"text {i}") for i in range(300)]

    assert list(trace_manifests.sorted_on_disk(iter(records), run_length)) == sorted(records)


def test_temporary_files_are_closed_when_reading_stops() -> None:
    found = trace_manifests.sorted_on_disk(((i,) for i in range(50)), run_length=10)
    assert next(found) == (0,)

    found.close()  # type: ignore[attr-defined]

    assert list(found) == []
