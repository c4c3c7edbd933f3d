"""Tables: the parts that all reports share: tables as kubectl prints them, bars, amounts and counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from ...api.quantity import format_quantity

BAR_WIDTH = 10
GIB = 1 << 30


def new_table() -> Table:
    """A table the way kubectl prints them: capitals above, no lines."""
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")


Cell: TypeAlias = str | Sequence[tuple[str, str]]
"""A text, or pieces of text with their styles."""


class Listing:
    """A table that is plain text where there is room, which takes a hundredth of the time that rich takes for it."""

    def __init__(
        self,
        headings: Sequence[str],
        *,
        right: Collection[str] = (),
        styles: Mapping[str, str] | None = None,
        folded: Collection[str] = (),
    ) -> None:
        """Columns by heading: `right` are aligned to the right, `folded` are broken where they are too long."""
        self.rows: list[Sequence[Cell]] = []
        self._headings = headings
        self._right = right
        self._styles = styles or {}
        self._folded = folded

    def lines(self) -> list[str]:
        """The lines as rich prints them where there is room."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self._headings)
        return _aligned(
            ([heading, *map(_plain, cells)], heading in self._right)
            for heading, cells in zip(self._headings, columns, strict=True)
        )

    def to_table(self) -> Table:
        """The same for rich."""
        table = new_table()
        for heading in self._headings:
            is_folded = heading in self._folded
            table.add_column(
                heading,
                style=self._styles.get(heading),
                justify="right" if heading in self._right else "left",
                overflow="fold" if is_folded else "ellipsis",
                no_wrap=not is_folded,
            )
        for row in self.rows:
            table.add_row(*(Text(c) if isinstance(c, str) else Text.assemble(*c) for c in row))
        return table


def _plain(cell: Cell) -> str:
    return cell if isinstance(cell, str) else "".join([text for text, _ in cell])


def _aligned(columns: Iterable[tuple[list[str], bool]]) -> list[str]:
    """The lines of columns, each given with whether it is aligned to the right."""
    filled = []
    for texts, is_right in columns:
        widths = [*map(_width, texts)]
        most = max(widths)
        fills = [" " * (most - width) for width in widths]
        pairs = zip(fills, texts, strict=True) if is_right else zip(texts, fills, strict=True)
        filled.append([*map("".join, pairs)])
    return ["  ".join(row).rstrip() for row in zip(*filled, strict=True)]


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def section(console: Console, table: Table | Listing) -> None:
    """Print a table and an empty line."""
    lines: list[str] = []
    if not console.is_terminal:
        lines = table.lines() if isinstance(table, Listing) else plain_lines(table)
    if lines and max(map(_width, lines)) <= console.width:
        # Not as text, which rich would wrap line by line.
        console.print(Segments([Segment("\n".join([*lines, ""]))]), soft_wrap=True)
    else:
        console.print(table.to_table() if isinstance(table, Listing) else table)
    console.print()


def plain_lines(table: Table) -> list[str]:
    """The lines of a table from `new_table` as rich would print them where there is room, a hundred times faster."""
    return _aligned(
        ([str(column.header), *map(str, column.cells)], column.justify == "right")
        for column in table.columns
    )


def hint(console: Console, hidden: int, what: str) -> None:
    """Say how much was left out."""
    if hidden > 0:
        console.print(f"… and {count(hidden, f'more {what}')}; --all shows them\n", style="dim")


def count(number: int, what: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def amount(value: int, resource: str) -> str:
    """An amount in few digits: cores for cpu, GiB for memory."""
    if resource == "cpu":
        return f"{value / 1000:g}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{value / GIB:.1f}".removesuffix(".0") + "Gi" if value else "0"
    return format_quantity(value, resource)


def duration(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def make_bar(before: float, after: float, width: int = BAR_WIDTH) -> list[tuple[str, str]]:
    """A bar of what was in use, what was added or freed, and what is free: pieces with their styles."""
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
