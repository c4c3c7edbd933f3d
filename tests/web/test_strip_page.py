"""The strip above the slider: series over the run, their axis, and going to a change by a click."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bayplan.sim import read_manifests
from bayplan.web.page_file import write_report

from .chromium import Tab
from .conftest import EXAMPLES, follow

Open = Callable[..., Tab]
SERIES = "bayplan.timeline.strip.series"


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    """A day with a cost that changes at 06:00."""
    objects = read_manifests([EXAMPLES / "timeline" / "day.yaml"]).objects
    _, history, _ = follow(*objects)
    path = tmp_path / "priced.html"
    with path.open("w", encoding="utf-8") as stream:
        write_report(stream, history, series={"cost": [(0.0, 1.0), (21600.0, 4.0)]})
    return path


def click_at(tab: Tab, place: float) -> None:
    """Click on the strip at a share of the run."""
    area = "document.getElementById('strip').getBoundingClientRect()"
    left, width, top = tab.run(f"(a => [a.left, a.width, a.top])({area})")
    tab.click_at(left + 8 + place * (width - 16), top + 30)


def test_the_series_end_with_what_the_page_shows(open_page: Open, day: Path) -> None:
    tab = open_page(day)

    assert tab.run(f"{SERIES}.share.at(-1)") == pytest.approx(
        tab.run("Math.max(...[0, 1, 3].map(r => (([n, m]) => n / m)(bayplan.model.totals(r))))")
    )
    assert tab.run(f"{SERIES}.nodes.at(-1)") == tab.run("bayplan.model.liveNodes().length")
    assert tab.run(f"Math.max(...{SERIES}.pending)") == 18
    label = tab.run("document.getElementById('strip').getAttribute('aria-label')")
    assert label == "Over the run: requested at most 92%, pending at most 18 pods"


def test_a_click_goes_to_the_nearest_change_and_lists_it(open_page: Open, day: Path) -> None:
    tab = open_page(day)

    click_at(tab, 0.5)
    time = tab.run("bayplan.timeline.place * bayplan.timeline.end")
    times = set(tab.run("bayplan.data.events.t"))

    assert tab.run("bayplan.lists.tab") == "log"
    assert 0 < tab.run("bayplan.model.at") < tab.run("bayplan.model.last")
    assert any(abs(time - t) < 1e-6 for t in times) or abs(time / 75630 - 0.5) < 0.01


def test_a_change_in_the_list_goes_to_its_moment(open_page: Open, day: Path) -> None:
    tab = open_page(day.as_uri() + "#list=log")

    tab.run("bayplan.lists.list.open(100)")

    assert tab.run("bayplan.model.at") == tab.run("bayplan.model.last") - 100
    assert tab.text("#details h2") != ""


def test_the_cost_of_a_run_is_shown(open_page: Open, priced: Path, day: Path) -> None:
    tab = open_page(priced)

    assert tab.run(f"[{SERIES}.cost[0], {SERIES}.cost.at(-1)]") == [1, 4]
    assert open_page(day).run(f"{SERIES}.cost") is None


@pytest.mark.parametrize(
    ("least", "is_time", "step"),
    [
        pytest.param(700, True, 900, id="a quarter of an hour"),
        pytest.param(100_000, True, 172_800, id="two days"),
        pytest.param(0.03, True, 0.05, id="less than a second"),
        pytest.param(0.2, False, 1, id="a whole change"),
        pytest.param(30, False, 50, id="fifty changes"),
    ],
)
def test_the_axis_has_round_steps(
    open_page: Open, day: Path, least: float, is_time: bool, step: float
) -> None:
    strip = "Object.getPrototypeOf(bayplan.timeline.strip)"
    tab = open_page(day)
    asked = f"{strip}.constructor.roundStep({least}, {str(is_time).lower()})"

    assert tab.run(asked) == pytest.approx(step)


@pytest.mark.parametrize("width", [390, 700, 1400])
def test_labels_of_the_axis_differ_and_do_not_overlap(
    open_page: Open, day: Path, width: int
) -> None:
    tab = open_page(day, width=width)

    labels = tab.run("bayplan.timeline.strip.labels")
    room = tab.run("document.getElementById('strip').clientWidth")

    assert labels
    assert len(set(labels)) == len(labels)
    assert sum(6 * len(label) for label in labels) < room + 60


def test_a_short_time_has_each_moment_once_on_its_axis(open_page: Open, day: Path) -> None:
    tab = open_page(day)

    tab.run("bayplan.timeline.end = 0.5; bayplan.timeline.words = () => 'now'")
    tab.run("bayplan.timeline.strip.draw()")

    assert tab.run("bayplan.timeline.strip.labels") == ["now"]


def test_a_key_that_does_not_fit_is_cut(open_page: Open, day: Path) -> None:
    tab = open_page(day)

    assert (
        tab.run("bayplan.timeline.strip.constructor.cut('requested', (text) => text.length <= 6)")
        == "reque…"
    )
    assert tab.run("bayplan.timeline.strip.constructor.cut('requested', () => true)") == "requested"
