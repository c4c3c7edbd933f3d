"""Listings at every width: broken texts, omitted columns, and columns that always stay."""

import io
import re

import pytest
from rich.console import Console

from bayplan.cli.render.table_layout import Listing, break_line, show_listing, wrap_text

POD = "notification-dispatcher-754fd7b96f-msvpv"
NODE = "ip-10-1-0-11.eu-west-1.compute.internal"
WHY = "0/60 nodes are available: 51 Insufficient cpu"


def make_listing() -> Listing:
    listing = Listing(
        ("POD", "NODE", "SCORE", "TIME", "WHY"),
        right=("SCORE", "TIME"),
        text=("WHY",),
        spare=("SCORE", "TIME"),
    )
    listing.add(POD, NODE, "500", "0s", WHY)
    listing.add("b", "c", "-", "10s", "")
    return listing


def printed(listing: Listing, width: int, is_terminal: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=is_terminal, color_system=None)
    show_listing(console, listing)
    return out.getvalue().splitlines()


def test_columns_are_aligned() -> None:
    listing = Listing(("NAME", "COUNT", "LAST"), right=("COUNT",))
    listing.add("a", "1", "")
    listing.add("wide 漢字", "12,345", [("x", "red"), ("y", "")])

    assert listing.lines() == [
        "NAME        COUNT  LAST",
        "a               1",
        "wide 漢字  12,345  xy",
    ]


def test_a_listing_without_rows_has_its_headings() -> None:
    assert Listing(("NAME", "COUNT")).lines() == ["NAME  COUNT"]


@pytest.mark.parametrize("width", range(60, 200, 7))
def test_no_line_is_too_long_and_no_word_is_broken(width: int) -> None:
    lines = make_listing().lines(width)

    assert max(map(len, lines)) <= width
    whole = re.split(r"[-./ ]+", f"POD NODE SCORE TIME WHY {POD} {NODE} {WHY} b c 500 0s 10s - ")
    assert {part for line in lines for part in re.split(r"[-./ ]+", line)} <= {*whole}


@pytest.mark.parametrize("width", [200, 120, 80, 60, 20])
def test_names_are_never_left_out(width: int) -> None:
    headings = make_listing().lines(width)[0].split()

    assert headings[:2] == ["POD", "NODE"]
    assert headings[-1] == "WHY"


def test_columns_that_can_be_spared_are_left_out_before_names_are_broken_and_are_named() -> None:
    lines = printed(make_listing(), 110)

    assert lines[0].split() == ["POD", "NODE", "WHY"]
    assert POD in lines[1]
    assert NODE in lines[1]
    assert lines[-1] == "no room for SCORE, TIME: a wider terminal shows more"


def test_text_is_broken_before_columns_are_left_out() -> None:
    lines = printed(make_listing(), 125)

    assert "SCORE" in lines[0]
    assert lines[1].endswith("0/60 nodes are available: 51")
    assert "no room" not in lines[-1]


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_terminal_gets_the_same_lines(width: int) -> None:
    plain = printed(make_listing(), width)

    assert [line.rstrip() for line in printed(make_listing(), width, is_terminal=True)] == plain


def test_styles_stay_with_their_part_of_a_broken_cell() -> None:
    listing = Listing(("WHY",), text=("WHY",))
    listing.add([("one two three four five ", "red"), ("six seven eight", "green")])

    layout = listing.layout(24)
    lines = [*listing.styled(layout)][1:]

    assert lines == [
        [("one two three four five", "red"), (" ", "")],
        [("six seven eight", "green"), (" " * 9, "")],
    ]


def test_a_heading_of_two_lines_stands_above_its_column() -> None:
    listing = Listing(("A", "FREE ON\n6 TAINTED"), right=("FREE ON\n6 TAINTED",))
    listing.add("x", "1")

    assert listing.lines() == ["     FREE ON", "A  6 TAINTED", "x          1"]


def test_a_row_has_its_style() -> None:
    listing = Listing(("A", "B"), styles={"B": "cyan"})
    listing.add("x", "y", style="bold")

    (_, line) = listing.styled(listing.layout())
    assert [piece for piece in line if piece[0].strip()] == [("x", "bold"), ("y", "bold")]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        pytest.param("a b c", 3, ["a b", "c"], id="between words"),
        pytest.param("web-0.shop.svc", 6, ["web-0.", "shop.", "svc"], id="a long word at dots"),
        pytest.param("unbreakable", 4, ["unbreakable"], id="a word is never broken inside"),
        pytest.param("", 4, [""], id="nothing"),
    ],
)
def test_wrapping(text: str, width: int, lines: list[str]) -> None:
    assert wrap_text(text, width) == lines


def test_a_name_is_broken_after_a_separator() -> None:
    spans = break_line(POD, (0, len(POD)), 24, by_word=False)

    assert [POD[start:end] for start, end in spans] == [
        "notification-dispatcher-",
        "754fd7b96f-msvpv",
    ]
