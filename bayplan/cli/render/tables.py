"""Tables: the parts that all reports share: tables as kubectl prints them, bars, amounts and counts."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...api.quantity import format_quantity

BAR_WIDTH = 10
GIB = 1 << 30


def new_table() -> Table:
    """A table the way kubectl prints them: capitals above, no lines."""
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")


def section(console: Console, table: Table) -> None:
    """Print a table and an empty line."""
    lines = [] if console.is_terminal else list(plain_lines(table))
    if lines and max(map(cell_len, lines)) <= console.width:
        console.out("\n".join(lines), highlight=False)
    else:
        console.print(table)
    console.print()


def plain_lines(table: Table) -> Iterator[str]:
    """The lines of a table from `new_table` as rich would print them where there is room, a hundred times faster."""
    columns = []
    for column in table.columns:
        cells = [str(column.header), *map(str, column.cells)]
        width = max(map(cell_len, cells))
        fill = str.rjust if column.justify == "right" else str.ljust
        columns.append([fill(cell, width - cell_len(cell) + len(cell)) for cell in cells])
    return ("  ".join(row).rstrip() for row in zip(*columns, strict=True))


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


def make_bar(before: float, after: float, width: int = BAR_WIDTH) -> Text:
    """A bar of what was in use, what was added or freed, and what is free."""
    old, new = _cells(before, width), _cells(after, width)
    bar = Text()
    bar.append("█" * min(old, new), style="blue")
    if new >= old:
        bar.append("▓" * (new - old), style="green")
    else:
        bar.append("▒" * (old - new), style="red")
    bar.append("░" * (width - max(old, new)), style="dim")
    return bar


def _cells(share: float, width: int) -> int:
    """Cells of a bar to fill; a little is never shown as nothing, nor nearly all as full."""
    if share <= 0:
        return 0
    cells = min(max(round(share * width), 1), width)
    return cells - 1 if cells == width and share < 1 and width > 1 else cells
