"""Settings for all tests."""

import os

import pytest
from hypothesis import settings

# How long an example takes says nothing about the code when the machine is busy. In continuous integration the
# examples are the same in every run; elsewhere they are new ones, and a failure prints how to repeat it.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

NO_BROWSER = "chromium is not installed"
"""Why tests of the page are skipped where there is no browser."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say so, and not in passing, when the page was not tested."""
    skipped = terminalreporter.stats.get("skipped", [])
    missed = [report for report in skipped if NO_BROWSER in str(report.longrepr)]
    if missed:
        terminalreporter.section("NOT RUN: the page in a browser", red=True, bold=True)
        terminalreporter.line(
            f"{len(missed)} tests of the page were NOT RUN: {NO_BROWSER}. "
            "`make test-page` installs it and runs them.",
            red=True,
            bold=True,
        )
