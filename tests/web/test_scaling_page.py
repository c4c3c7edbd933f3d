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


def test_nodes_by_type_are_stacked_above_the_slider(page: Path, open_page: Open) -> None:
    tab = open_page(page)
    tab.settle()

    layers = tab.run("bayplan.timeline.strip.types.layers.map(({name, nodes}) => [name, nodes])")
    sums = [sum(nodes) for nodes in zip(*(nodes for _, nodes in layers), strict=True)]

    assert sums == tab.run("[...bayplan.timeline.strip.series.nodes]")
    assert len(layers) > 1
    keys = tab.texts(".type-key")
    assert keys == [f"{name} {nodes[-1]}" for name, nodes in layers]
    listed = ", ".join(keys)
    label = tab.run("document.getElementById('types').getAttribute('aria-label')")
    assert label == f"Nodes by type over the run, at the end: {listed}"


def test_more_types_than_colours_are_joined(page: Path, open_page: Open) -> None:
    tab = open_page(page)
    moments = (
        "[0, 1].map(moment => new Map(Array.from({length: 12}, (_, i) => [`t${i}`, moment * i])))"
    )

    stack = f"bayplan.timeline.strip.types.constructor.stack({moments})"
    layers = tab.run(f"{stack}.map(({{name, nodes}}) => [name, nodes])")

    assert [name for name, _ in layers] == [
        *(f"t{i}" for i in range(11, 4, -1)),
        "4 other types",
    ]
    assert layers[-1][1] == [0, 4 + 3 + 2 + 1]


def test_a_page_whose_nodes_stay_has_no_types(example: Path, open_page: Open) -> None:
    assert open_page(example).run("document.querySelector('.types-box').hidden")


def test_a_page_without_an_autoscaler_has_no_costs(example: Path, open_page: Open) -> None:
    assert not open_page(example).run("bayplan.timeline.strip.series.cost")
