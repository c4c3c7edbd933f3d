"""Two runs side by side: `bayplan compare --html` in a real Chromium."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

from .chromium import Tab
from .conftest import EXAMPLES

Open = Callable[..., Tab]
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]
OTHER = str(EXAMPLES / "compare" / "most-allocated.yaml")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "runs.html"
    result = CliRunner().invoke(app, ["compare", *FILES, "--config", OTHER, "--html", str(path)])
    assert "9 of 21 pods land elsewhere" in result.output
    return path


def test_both_runs_are_shown_with_the_pods_that_land_elsewhere(open_page: Open, page: Path) -> None:
    tab = open_page(page)

    tab.click("#tab-diff")
    tab.settle()

    assert tab.text("#first-run") == "default"
    assert tab.run("bayplan.compare.run.name") == OTHER
    assert tab.text("#tab-diff .number") == "9"
    moves = dict(zip(tab.texts(".list .name"), tab.texts(".list .why"), strict=True))
    assert moves["db-0"] == "worker-b2 → worker-b1"
    framed = "[...bayplan.tiles.framed].map(n => bayplan.data.nodes[n]).sort()"
    assert tab.run(framed) == ["worker-a1", "worker-a2", "worker-b1", "worker-b2", "worker-c1"]


def test_the_pictures_have_the_same_places_and_other_contents(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    names = """(tiles, data) => tiles.blocks.map(b => b.nodes.map(n => data.nodes[n]))"""

    here = tab.run(f"({names})(bayplan.tiles, bayplan.data)")
    there = tab.run(f"({names})(bayplan.compare.mirror, bayplan.compare.run.data)")

    assert here == there
    shares = "model => [...model.highestShares].sort()"
    assert tab.run(f"({shares})(bayplan.model)") != tab.run(
        f"({shares})(bayplan.compare.run.model)"
    )
    drawn = "bayplan.compare.mirror.context.getImageData(0, 0, 400, 400).data.some(v => v > 0)"
    assert tab.run(drawn)


def test_the_slider_moves_both_runs(open_page: Open, page: Path) -> None:
    tab = open_page(page)

    tab.run("bayplan.timeline.isFollowing = false; bayplan.timeline.go(0)")
    tab.settle()

    assert tab.run("[bayplan.model.at, bayplan.compare.run.model.at]") == [0, 0]
    assert tab.text("#tab-diff .number") == "0"


def test_the_measures_of_all_runs_are_a_table(open_page: Open, page: Path) -> None:
    tab = open_page(page)

    tab.click("#measures")

    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in tab.texts(".measures tr")}
    assert rows["pending"] == ["2", "2"]
    assert len(rows) > 10


def test_a_page_of_one_run_has_nothing_to_compare(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    assert tab.run("document.getElementById('mirror').hidden")
    assert tab.run("document.getElementById('tab-diff')") is None


def test_a_file_that_cannot_be_written_is_named_before_the_runs(tmp_path: Path) -> None:
    where = str(tmp_path / "missing" / "runs.html")

    result = CliRunner().invoke(app, ["compare", *FILES, "--config", OTHER, "--html", where])

    assert result.exit_code == 2
    assert "--html" in result.output
