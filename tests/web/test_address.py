"""Links to parts of the page: the fragment of the address, the Back button, and the button that copies it."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from .chromium import Tab
from .test_page import ROW, choose

Open = Callable[..., Tab]


def fragment(tab: Tab) -> dict[str, str]:
    """The fields of the address."""
    tab.run("bayplan.address.put('replaceState')")  # what waits to be written
    return {name: values[0] for name, values in parse_qs(tab.run("location.hash")[1:]).items()}


def go_back(tab: Tab) -> None:
    tab.run(
        "new Promise(done => { addEventListener('popstate', done, {once: true}); history.back(); })"
    )
    tab.settle()


def test_the_address_names_what_is_shown(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    at_first = fragment(tab)

    choose(tab, "resource", "bayplan.data.resources.indexOf('memory')")
    choose(tab, "group", "''")
    choose(tab, "sort", "'use'")
    tab.click("#tab-pods")
    tab.run("bayplan.openPod(bayplan.model.podNamed('shop/db-0'))")

    assert at_first == {}
    assert fragment(tab) == {
        "resource": "memory",
        "group": "-",
        "sort": "use",
        "list": "pods",
        "pod": "shop/db-0",
    }


def test_a_link_opens_what_it_names(open_page: Open, example: Path) -> None:
    link = (
        "#resource=example.com/gpu&group=node.example.com/disk&sort=use&list=log&node=gpu-b1&q=gpu"
    )
    tab = open_page(example.as_uri() + link)

    assert tab.text("#details h2") == "gpu-b1"
    assert tab.run("bayplan.data.resources[bayplan.tiles.resource]") == "example.com/gpu"
    assert [tab.run(f"document.getElementById('{name}').value") for name in ("group", "sort")] == [
        "node.example.com/disk",
        "use",
    ]
    assert tab.run("bayplan.lists.tab") == "log"
    assert tab.run("document.getElementById('query').value") == "gpu"
    assert tab.run("document.getElementById('found').hidden")


def test_back_returns_to_what_was_shown(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    tab.click(ROW)
    tab.run("bayplan.openNode(0)")
    node = tab.text("#details h2")

    go_back(tab)
    pod = tab.text("#details h2")
    go_back(tab)

    assert (node, pod) == ("worker-a1", "in-memory-index")
    assert tab.run("document.getElementById('details').hidden")
    assert tab.run("location.hash") == ""


@pytest.mark.parametrize(
    ("page", "field"),
    [
        pytest.param("day", "t", id="a time where time passes"),
        pytest.param("example", "at", id="a number of changes where none does"),
    ],
)
def test_a_link_goes_to_its_moment(
    open_page: Open, request: pytest.FixtureRequest, page: str, field: str
) -> None:
    path: Path = request.getfixturevalue(page)
    tab = open_page(path)
    tab.run("bayplan.timeline.isFollowing = false; bayplan.timeline.go(0.37)")
    moment, fields = tab.run("bayplan.model.at"), fragment(tab)

    other = open_page(f"{path.as_uri()}#{field}={fields[field]}")

    assert set(fields) == {field}
    assert 0 < moment < tab.run("bayplan.model.last")
    assert other.run("bayplan.model.at") == moment


def test_a_link_to_a_pod_that_is_not_there_says_so(open_page: Open, example: Path) -> None:
    tab = open_page(example.as_uri() + "#pod=shop/nothing")

    assert tab.text("#said") == "shop/nothing is not here."
    assert tab.run("document.getElementById('details').hidden")


def test_the_button_copies_the_link(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    tab.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    tab.click(ROW)

    tab.click("#copy-link")

    assert tab.run("window.copied").endswith("report.html#pod=research/in-memory-index")
    assert tab.text("#copy-link") == "Copied"
