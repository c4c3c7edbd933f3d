"""Settings for all tests."""

import os

import pytest
from hypothesis import settings

# How long an example takes says nothing about the code when the machine is busy. In continuous integration the
# examples are the same in every run; elsewhere they are new ones, and a failure prints how to repeat it.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it loudly when the tests against a real control plane were left out."""
    left_out = [
        report.longrepr[2]
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple) and "NOT RUN" in report.longrepr[2]
    ]
    for reason in sorted(set(left_out)):
        terminalreporter.section("NOT RUN", sep="!", red=True, bold=True)
        terminalreporter.line(f"{left_out.count(reason)} tests: {reason}", red=True)
        terminalreporter.line("Set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver.")
