"""Contents of the tiles: the fullest resource, full nodes, taints, pods, and short names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .chromium import Tab
from .conftest import write
from .test_page import choose, colour_at, figures, place_of, ssd_node, web_pod

Open = Callable[..., Tab]
SUFFIX = ".eu-west-1.compute.internal"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Nodes at 90, 99 and 100 percent, one with more memory than CPU in use, one tainted."""
    names = [f"ip-{i}{SUFFIX}" for i in range(5)]
    nodes: list[dict[str, Any]] = [
        ssd_node(name, cpu="10", **{"nvidia.com/gpu": "2"}) for name in names
    ]
    nodes[4]["spec"] = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    pods = [web_pod(f"p{i}", cpu, names[i]) for i, cpu in enumerate(["9", "9900m", "10"])]
    memory = web_pod("remembers", "1", names[3], labels={"app": "cache"})
    memory["spec"]["containers"][0]["resources"]["requests"]["memory"] = "6Gi"
    return write(tmp_path / "page.html", *nodes, *pods, memory, web_pod("small", "1", names[3]))


def at(tab: Tab, number: int, dy: float) -> list[int]:
    x, y = place_of(tab, f"ip-{number}{SUFFIX}")
    return colour_at(tab, x, y + dy)


def test_tiles_have_the_colour_of_the_fullest_resource(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    shown = [at(tab, i, -60) for i in range(5)]
    words = tab.run("bayplan.tiles.words(3)")
    choose(tab, "resource", "0")

    assert len({tuple(colour) for colour in shown}) == 5, "90, 99 and 100 percent differ"
    assert words.startswith("Memory 75%")
    assert at(tab, 3, -60) != shown[3], "20 percent of the CPU"
    assert "full" in tab.text("#legend")
    assert "tainted" in tab.text("#legend")


def test_totals_of_every_resource_are_on_top(open_page: Open, page: Path) -> None:
    shown = figures(open_page(page))

    assert shown["CPU requested"] == "61%"
    assert shown["Memory requested"] == "15%"
    assert shown["gpu requested"] == "0%"


def test_pods_are_drawn_on_their_tile_and_open_on_a_click(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    places = tab.run(
        "bayplan.tiles.podPlaces.map(([l, t, r, b, p]) => [bayplan.data.podName(p), r - l])"
    )
    width = dict(places)
    x, y, _, bottom, _ = tab.run(
        "bayplan.tiles.podPlaces.find(p => bayplan.data.podName(p[4]) === 'p2')"
    )
    left, top = tab.run("(a => [a.left, a.top])(bayplan.tiles.box.getBoundingClientRect())")

    tab.click_at(left + x + 20, top + (y + bottom) / 2)

    assert width["p2"] > width["p1"] > width["p0"] > width["remembers"]
    assert tab.text("#details h2") == "p2"


def test_pods_are_coloured_by_workload_or_priority(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    by_workload = at(tab, 2, 64)

    choose(tab, "pods-by", "'priority'")

    assert at(tab, 2, 64) != by_workload


def test_what_most_names_end_with_is_shown_once(open_page: Open, page: Path) -> None:
    tab = open_page(page.as_uri() + "#view=nodes")
    cells = tab.run(
        "[...document.querySelectorAll('#table-rows .row')].map(r => r.children[0].innerText)"
    )

    tab.click("#view [data-value=picture]")
    tab.run("bayplan.openNode(1)")

    assert cells == [f"ip-{i}" for i in range(5)]
    assert tab.text("#legend").count(f"Node names without {SUFFIX}") == 1
    assert tab.text("#details h2") == f"ip-1{SUFFIX}", "whole where it is opened"


@pytest.mark.parametrize(
    ("names", "suffix"),
    [
        pytest.param(["a.b.c", "d.b.c", "e"], ".b.c", id="most have it"),
        pytest.param(["a.b", "a"], "", id="names would be confused"),
        pytest.param(["10.0.0.1", "10.1.0.1"], "", id="an address has no suffix"),
        pytest.param([], "", id="no node"),
    ],
)
def test_the_suffix_is_that_of_the_command_line(
    open_page: Open, page: Path, names: list[str], suffix: str
) -> None:
    from bayplan.cli.render.node_names import common_suffix

    assert common_suffix(names) == suffix
    data = "Object.getPrototypeOf(bayplan.data).constructor"
    tab = open_page(page)
    empty = "texts: [], resources: [], kinds: [], rows: {}, refusals: [], pods: {}, time: 0"
    tale = f"{{{empty}, nodes: {names}, events: {{t: [], what: [], which: [], value: []}}}}"
    assert tab.run(f"new ({data})({tale}).suffix") == suffix
