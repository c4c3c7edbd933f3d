"""Settings for all tests."""

import gc
import logging
import os
import re
import signal
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import yaml
from hypothesis import settings

from bayplan.runtime import plugin_failures

# Execution time depends on the load of the machine. In continuous integration the examples are the same in every run;
# elsewhere they are random, and a failure prints how to reproduce it.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Manifests that tests write with PyYAML mean what they mean to Kubernetes: the texts y and n are quoted.
for _dumper in (yaml.SafeDumper, getattr(yaml, "CSafeDumper", yaml.SafeDumper)):
    _dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]$"), list("yYnN"))

# A shell that starts the tests in the background makes them ignore Ctrl-C, and so every process that they start and
# interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def plugins_are_in_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins of a test count as part of the package: their errors have kube-scheduler's words and nothing more."""
    monkeypatch.setattr(plugin_failures, "is_in_tree", lambda plugin: True)


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Commands called in the process of a test set up logging; the next test does not get their handlers and level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clusters of `bayplan up` are listed in a folder of the tests, not of the user."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


IS_SLOW_RUN = bool(os.environ.get("BAYPLAN_SLOW"))


LONG = (
    "tests/e2e/",
    "tests/life/",
    "tests/conformance/",
    "tests/sweeps/",
    "tests/gym/",
    "tests/examples/",
    "tests/planning/",
    "tests/autoscaling/",
    "tests/engine/test_histories.py",
    "tests/sim/bench/",
    "tests/sim/streaming/",
    "tests/cli/commands/",
    "tests/web/test_live_page.py",
    "tests/apiserver/web/test_fuzz.py",
    "tests/field/",
)
"""Files that take the most time: workers begin with them, so that none is idle at the end."""


@pytest.hookimpl(trylast=True)  # after pytest has put tests with equal session fixtures together
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests to `make slow`; order the files for several workers."""
    for item in items:
        if item.get_closest_marker("slow") and not IS_SLOW_RUN:
            item.add_marker(pytest.mark.skip(reason="slow: run by `make slow`"))
    if hasattr(config, "workerinput"):
        # by the name of the file: files that wait and files that compute are mixed
        items.sort(key=lambda item: (not item.nodeid.startswith(LONG), item.path.name))


NOT_RUN = {
    "NOT RUN against a real kube-apiserver": "Set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver.",
    "chromium is not installed": "`make test-page` installs it and runs the tests of the page.",
    "slow: run by": "`make slow` runs them.",
    "axe-core is not installed": "`make test-page` gets it with npm and audits the page with it.",
    "needs an extra": "`make test` installs all of them.",
}
"""Reasons for skipped tests, and how to run them."""

EXTRAS = ("highspy", "gymnasium", "matplotlib", "pandas", "pyarrow", "ray")
"""Packages that tests may lack: `pip install -e '.[dev]'` leaves out the large ones."""


def missing_package(error: BaseException | None) -> str:
    """The package of EXTRAS that is not installed and whose absence led to the error; empty if there is none."""
    while error is not None:
        if isinstance(error, ImportError):
            named = (error.name or "").partition(".")[0]
        else:
            found = re.search(r"expected (\w+) to be installed", str(error))
            named = found[1].lower() if found else ""
        if named in EXTRAS and find_spec(named) is None:
            return named
        error = error.__cause__ or error.__context__
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Skip a test that ended because an extra is not installed."""
    try:
        return (yield)
    except Exception as error:
        if name := missing_package(error):
            pytest.skip(f"needs an extra: {name} is not installed")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    """Skip a test whose fixtures need an extra that is not installed."""
    return (yield from pytest_runtest_call())


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection: a search through them takes 0.4 s."""
    gc.collect()
    gc.freeze()
    gc.freeze = gc.unfreeze = lambda: None  # `rare_collections` would undo it


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report prominently that the tests that need a real control plane or a browser were skipped."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for reason, remedy in NOT_RUN.items():
        if missed := sum(reason in why for why in skipped):
            terminalreporter.section("NOT RUN", sep="!", red=True, bold=True)
            terminalreporter.line(f"{missed} tests: {reason}. {remedy}", red=True, bold=True)
