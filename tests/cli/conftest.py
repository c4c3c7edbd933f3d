"""Settings for the tests of commands."""

import pytest


@pytest.fixture(autouse=True)
def free_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are as long as they need to be, however wide the terminal of whoever runs the tests is."""
    monkeypatch.delenv("COLUMNS", raising=False)
