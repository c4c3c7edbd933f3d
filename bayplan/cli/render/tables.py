"""Tables: the parts that all reports share: tables as kubectl prints them, bars, amounts and counts."""

from __future__ import annotations

from rich.console import Console

from ...api.text.durations import format_duration
from ...api.text.quantity import format_quantity
from ...errors import counted
from ...sim.measures import Measure, MeasureUnit, Metric
from .consoles import say
from .table_layout import Listing, Piece, show_listing

BAR_WIDTH = 10
GIB = 1 << 30


def section(
    console: Console,
    listing: Listing,
    *,
    even_empty: bool = False,
    most: int | None = None,
    what: str = "row",
) -> None:
    """Print a listing and an empty line; one without rows only if `even_empty`. Of more than `most` rows, those after
    them are only counted.
    """
    most = len(listing.rows) if most is None else most
    hidden = len(listing.rows) - most
    del listing.rows[most:]
    if listing.rows or even_empty:
        show_listing(console, listing)
        console.print()
    hint(console, hidden, what)


def value_change(before: str, after: str) -> str:
    """`2→3`, or `2` when it stays."""
    return before if before == after else f"{before}→{after}"


def share_change(before: float, after: float) -> str:
    """Two shares as percentages, `50→77%`."""
    return value_change(percent(before), percent(after)) + "%"


def percent(share: float) -> str:
    """A share in whole percent, never rounded up: `99` is not full, `<1` is not empty. The page does the same."""
    hundredths = (
        share * 100 + 1e-12
    )  # a quotient may be a little less than the number that it stands for
    return "<1" if share > 0 and hundredths < 1 else f"{int(hundredths)}"


def hint(console: Console, hidden: int, what: str) -> None:
    """Print how much was left out."""
    if hidden > 0:
        console.print(f"… and {counted(hidden, f'more {what}')}; --all shows them\n", style="dim")


def amount(value: int, resource: str) -> str:
    """An amount in few digits: cores for cpu, GiB for memory."""
    if resource == "cpu":
        return f"{value / 1000:g}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{value / GIB:.1f}".removesuffix(".0") + "Gi" if value else "0"
    return format_quantity(value, resource)


def price_text(price: float | None) -> str:
    """A price per hour: with two digits after the point, or more where it is small."""
    if price is None:
        return "-"
    return f"{price:,.2f}" if price >= 10 else f"{price:.4f}".rstrip("0").ljust(4, "0")


def duration(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def make_bar(before: float, after: float, width: int = BAR_WIDTH) -> list[Piece]:
    """A bar of the amounts in use, added or freed, and free: pieces with their styles."""
    old, new = _cells(before, width), _cells(after, width)
    return [
        ("█" * min(old, new), "blue"),
        ("▓" * (new - old), "green") if new >= old else ("▒" * (old - new), "red"),
        ("░" * (width - max(old, new)), "dim"),
    ]


def _cells(share: float, width: int) -> int:
    """Cells of a bar to fill; a little is never shown as nothing, nor nearly all as full."""
    if share <= 0:
        return 0
    cells = min(max(round(share * width), 1), width)
    return cells - 1 if cells == width and share < 1 and width > 1 else cells


ARROWS = {1: " ↑", -1: " ↓"}
"""Whether more or less is better."""


def titled(measure: Measure) -> str:
    """The title of a measure, and whether more or less is better."""
    return f"{measure.title}{ARROWS.get(measure.direction, '')}"


def shown_metric(metric: Metric) -> str:
    """The mean, with several seeds with the margin of its confidence interval."""
    mean = _value(metric.measure, metric.mean)
    return mean if metric.margin is None else f"{mean} ±{_value(metric.measure, metric.margin)}"


def show_other_filters(console: Console, name: str, first: str, difference: str) -> None:
    """Print that a scheduler has other filters than the first, and the meaning of the mark beside its values."""
    text = (
        f"† {name} filters nodes {difference}: this measure does not mean the same as for {first}"
    )
    say(console, text, "dim")


def _value(measure: Measure, value: float) -> str:
    match measure.unit:
        case MeasureUnit.COUNT | MeasureUnit.AMOUNT:
            return f"{value:,.1f}".removesuffix(".0")
        case MeasureUnit.SECONDS if measure.is_repeatable:
            return format_duration(value)
        case MeasureUnit.SECONDS:
            return f"{value * 1e6:,.0f}µs"
        case MeasureUnit.RATIO | MeasureUnit.PRICE:
            return f"{value:,.2f}"
    return f"{value * 100:.1f}%"
