"""Accessibility: an audit of the page in each of its states, light and dark, English and Chinese.

The audit here checks contrast, names and references. axe-core checks much more; `make test-page` gets it.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .chromium import Tab
from .conftest import write
from .test_compare_page import page as comparison
from .test_page import ssd_node, web_pod

__all__ = ["comparison"]

Open = Callable[..., Tab]
AUDIT = (Path(__file__).parent / "audit.js").read_text("utf-8")
AXE = Path(__file__).parents[2] / "build" / "axe" / "package" / "axe.min.js"
RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']"
SHOWN = {
    "the picture": "",
    "a pod": "pod=research/in-memory-index",
    "a pod with scores": "pod=shop/db-0",
    "a node": "node=gpu-b1",
    "the node table": "view=nodes",
    "the pod table": "view=pods",
    "changes": "list=log",
    "a filter": "list=pods&ns=shop",
    "Chinese": "lang=zh&node=worker-c2",
}


def audit_with_axe(tab: Tab) -> list[str]:
    tab.run(f"{AXE.read_text('utf-8')};0")
    found = "r.violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.html.slice(0, 120)}`))"
    return list(tab.run(f"axe.run(document, {{runOnly: {RULES}}}).then(r => {found})"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", [pytest.param(part, id=name) for name, part in SHOWN.items()])
def test_nothing_is_hard_to_read_or_without_a_name(
    open_page: Open, example: Path, fragment: str, scheme: str
) -> None:
    tab = open_page(f"{example.as_uri()}#{fragment}", scheme=scheme)

    assert tab.run(AUDIT) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("document.querySelector('.why').style.color = '#999'", id="contrast"),
        pytest.param(
            "document.getElementById('group').closest('label').firstChild.remove()", id="a name"
        ),
        pytest.param("document.getElementById('list').id = 'tiles'", id="an id"),
    ],
)
def test_the_audit_finds(open_page: Open, example: Path, change: str) -> None:
    tab = open_page(example)
    tab.run("document.body.style.background = '#fff'")
    tab.run(change)

    assert tab.run(AUDIT) != []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    open_page: Open, example: Path, comparison: Path, tmp_path: Path, scheme: str
) -> None:
    if not AXE.exists() and not os.environ.get("BAYPLAN_NEEDS_CHROMIUM"):
        pytest.skip("axe-core is not installed")  # the summary searches for this text
    empty = write(tmp_path / "empty.html", ssd_node("a"), web_pod("p", node="a"))
    pages = [f"{example.as_uri()}#{fragment}" for fragment in SHOWN.values()]
    pages += [f"{comparison.as_uri()}#list=diff", empty.as_uri()]

    found = {page: audit_with_axe(open_page(page, scheme=scheme)) for page in pages}

    assert {page: problems for page, problems in found.items() if problems} == {}


def test_ramps_have_readable_words_on_every_colour(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    contrasts = """bayplan.tiles.ramp.map(({fill, ink}) => {
        const light = (text) => {
            const hex = [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16));
            const rgb = text.startsWith('#') ? hex : text.match(/\\d+/g).map(Number);
            const [r, g, b] = rgb.map(v => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
        };
        const [low, high] = [light(fill), light(ink)].sort((a, b) => a - b);
        return high / low;
    })"""

    lowest = min(tab.run(contrasts))
    tab.click("#theme [data-value=dark]")
    lowest = min(lowest, *tab.run(contrasts))
    tab.click("#theme [data-value=auto]")  # the browser remembers the choice for other tests

    assert lowest >= 4.5
