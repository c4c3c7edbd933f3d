"""Pod groups on the page: members together, where they are, and why a group waits."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

from .chromium import Tab

Open = Callable[..., Tab]
GANG = Path(__file__).resolve().parents[2] / "examples" / "gang"
GATES = (
    "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "gangs.html"
    arguments = ["simulate", "-f", str(GANG), GATES, "--html", str(path), "--until", "1m"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    return path


def test_groups_are_listed_with_their_members_and_why_they_wait(
    page: Path, open_page: Open
) -> None:
    tab = open_page(page)

    tab.click("#tab-groups")
    tab.settle()

    assert tab.texts("#tab-groups .number") == ["4"]
    groups = dict(zip(tab.texts(".list .group .name"), tab.texts(".list .group .why"), strict=True))
    assert groups["red"].startswith("in example.com/rack")
    names = tab.texts(".list .row .name")
    assert names[0] == "red"
    assert all(name.startswith("red-") for name in names[1:7])
    data = tab.run("bayplan.data.groups.map(group => [group.name, group.cause, group.pods.length])")
    assert data[3][0] == "huge"
    assert "of 9 members fit" in data[3][1]
    assert data[3][2] == 9


def test_pods_on_tiles_have_the_colour_of_their_group(page: Path, open_page: Open) -> None:
    tab = open_page(page.as_uri() + "#podsBy=group")

    colours = (
        "bayplan.data.groups.map(g => [...new Set(g.pods.map(p => bayplan.tiles.podColour(p)))])"
    )
    by_group = tab.run(colours)

    assert [len(colours) for colours in by_group] == [1, 1, 1, 1]
    assert len({colours[0] for colours in by_group}) == 4
    assert not tab.run("document.getElementById('by-group').hidden")


def test_a_page_without_groups_has_no_tab_for_them(example: Path, open_page: Open) -> None:
    assert open_page(example).texts("#tabs button")[1].startswith("All pods")
