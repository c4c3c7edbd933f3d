"""Settings for the tests of the page: the browser, and reports to open in it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.sim import Simulation, read_manifests
from bayplan.web.history import History
from bayplan.web.page_file import write_report

from .chromium import Browser, Tab, find_chromium

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEEDED = "BAYPLAN_NEEDS_CHROMIUM"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium; tests that need it are skipped where it is missing, unless it is required."""
    if find_chromium() is None and not os.environ.get(NEEDED):
        pytest.skip("chromium is not installed")  # the summary searches for this text
    running = Browser(tmp_path_factory.mktemp("chromium"))
    yield running
    running.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens pages; an error in any of them fails the test."""
    tabs: list[Tab] = []

    def open_it(url: str | Path, **options: Any) -> Tab:
        tabs.append(browser.open(url if isinstance(url, str) else url.as_uri(), **options))
        return tabs[-1]

    yield open_it
    problems = [problem for tab in tabs for problem in tab.problems()]
    for tab in tabs:
        tab.close()
    assert problems == []


def follow(*objects: Any, **options: Any) -> tuple[Simulation, History, Any]:
    """A finished run, its history and its report."""
    decoded: list[Any] = [decode_object(o) if isinstance(o, dict) else o for o in objects]
    simulation = Simulation(decoded, **options)
    history = History(simulation.clock)
    history.scheduler = simulation.scheduler
    simulation.watch(history)
    report = simulation.run()
    for result in report.pods:
        history.note(result.attempt)
    return simulation, history, report


def write(path: Path, *objects: Any, **options: Any) -> Path:
    """The page of a run, in a file."""
    _, history, report = follow(*objects, **options)
    with path.open("w", encoding="utf-8") as stream:
        write_report(stream, history, sources=["some.yaml"], preempted=report.preempted)
    return path


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the example workload, with explanations."""
    files = [EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml"]
    objects = read_manifests(files).objects
    return write(tmp_path_factory.mktemp("example") / "report.html", *objects, explain=True)


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a day of the example timeline."""
    objects = read_manifests([EXAMPLES / "timeline" / "day.yaml"]).objects
    return write(tmp_path_factory.mktemp("day") / "report.html", *objects)
