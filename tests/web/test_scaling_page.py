"""Autoscaling on the page: cost and nodes along the time slider."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

from .chromium import Tab

Open = Callable[..., Tab]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "autoscaling"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "day.html"
    files = [
        arg for name in ("shop", "launch-day") for arg in ("-f", str(EXAMPLE / f"{name}.yaml"))
    ]
    pools = ["--pools", str(EXAMPLE / "pools.yaml"), "--until", "10h", "--seed", "1"]
    result = CliRunner().invoke(app, ["simulate", *files, *pools, "--html", str(path)])
    assert result.exit_code == 0, result.output
    return path


def test_the_strip_above_the_slider_has_cost_and_nodes(page: Path, open_page: Open) -> None:
    tab = open_page(page)

    cost, nodes = (
        tab.run(f"[...bayplan.timeline.strip.series.{name}]") for name in ("cost", "nodes")
    )

    assert cost[0] == pytest.approx(0.38)  # the minimum of the pool "base"
    assert cost[-1] > cost[0]
    assert nodes[-1] > nodes[0]


def test_a_page_without_an_autoscaler_has_no_costs(example: Path, open_page: Open) -> None:
    assert not open_page(example).run("bayplan.timeline.strip.series.cost")
