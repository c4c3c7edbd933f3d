"""The tables of nodes and pods on the page, and their downloads."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .chromium import Tab
from .test_address import fragment

Open = Callable[..., Tab]
CELLS = """[...document.querySelectorAll('#table-rows .row')].map(
    row => [...row.children].map(cell => cell.innerText))"""


def column(tab: Tab, title: str) -> list[str]:
    """The shown cells of a column."""
    titles = tab.run(
        "[...document.querySelectorAll('#table-head button')].map(button => button.title)"
    )
    return [row[titles.index(title)] for row in tab.run(CELLS)]


def sort(tab: Tab, title: str) -> None:
    tab.click(f"#table-head button[title='{title}']")
    tab.settle()


def test_nodes_are_a_table_that_is_sorted_by_any_column(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    tab.click("#view [data-value=nodes]")
    tab.settle()
    by_name = column(tab, "Node")

    sort(tab, "CPU requested")
    by_cpu = column(tab, "CPU requested")
    sort(tab, "CPU requested")

    assert by_name == sorted(by_name)
    assert by_cpu[0] == "77% · 3.1 / 4"
    assert (
        column(tab, "CPU requested") == by_cpu[::-1] or column(tab, "CPU requested")[0] != by_cpu[0]
    )
    assert column(tab, "gpu requested").count("–") == 6
    assert "cordoned" in column(tab, "State")
    assert fragment(tab) == {"view": "nodes", "order": "cpu"}


def test_a_row_opens_its_pod_by_keyboard_and_a_link_keeps_the_order(
    open_page: Open, example: Path
) -> None:
    tab = open_page(example.as_uri() + "#view=pods&order=-memory")
    shown = column(tab, "Pod")

    tab.run("document.getElementById('table').focus()")
    tab.press("ArrowDown", "Enter")

    assert shown[0] == "in-memory-index"
    assert tab.text("#details h2") == shown[1]
    assert tab.run("document.querySelectorAll('#table-rows .row').length") < 60


def test_the_table_is_filtered_as_the_list_is(open_page: Open, example: Path) -> None:
    tab = open_page(example.as_uri() + "#view=pods&ns=research")

    assert set(column(tab, "Namespace")) == {"research"}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_table_is_saved_with_plain_values(open_page: Open, example: Path, form: str) -> None:
    tab = open_page(example.as_uri() + "#view=nodes")
    tab.run("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }")

    tab.click(f"#export-{form}")

    text = tab.run("window.saved.text()")
    rows = json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))
    assert [row["node"] for row in rows][:2] == ["gpu-b1", "worker-a1"]
    assert {int(row["cpu allocatable"]) for row in rows} == {4000, 8000, 16000}
    assert tab.text("#said") == f"nodes.{form} was saved."


def test_a_text_in_the_form_of_a_formula_stays_text(open_page: Open, example: Path) -> None:
    tab = open_page(example.as_uri() + "#view=pods")
    tab.run("bayplan.data.pods.name[0] = '=HYPERLINK(\"x\")'")

    assert '"\'=HYPERLINK(""x"")"' in tab.run("bayplan.exports.text('csv')")


def test_the_whole_picture_is_saved(open_page: Open, example: Path) -> None:
    tab = open_page(example, height=500)
    tab.run("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }")

    tab.click("#export-png")
    tab.wait_for("window.saved")

    assert tab.run("window.saved.type") == "image/png"
    height = "createImageBitmap(window.saved).then(picture => picture.height)"
    assert tab.run(height) == tab.run("2 * (bayplan.tiles.total + 32)")
