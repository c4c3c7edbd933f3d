"""Table layout: a table the way kubectl prints them, capitals above and no lines, laid out for the width there is.

Where there is not enough room, texts are broken between words, columns that can be spared are left out and named below,
and, when that is not enough, names are broken after one of their separators. Columns with names are never left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

GAP = 2
"""Spaces between columns."""
NARROWEST_TEXT = 24
"""A column of text is not made narrower than this, or than its longest word."""
HEADING_STYLE = "bold"
LINES_AT_ONCE = 1000
"""Lines that are printed together; all lines of a table with 40,000 nodes take 10 MB."""

Piece: TypeAlias = tuple[str, str]
"""A text and its style."""
Cell: TypeAlias = str | Sequence[Piece]
Span: TypeAlias = tuple[int, int]
"""Beginning and end of a part of a text."""

_WORD = re.compile(r"\S+")
_PART = re.compile(r"[^-./,@_]*[-./,@_]+|[^-./,@_]+")


@dataclass(slots=True)
class Layout:
    """The columns that are shown, and how wide each is."""

    columns: list[int]
    widths: list[int]
    is_whole: bool
    """Whether every cell has one line."""
    left_out: list[str] = field(default_factory=list)


class Listing:
    """Rows of texts, or of pieces of text with their styles."""

    def __init__(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence[Cell]] = (),
        *,
        right: Collection[str] = (),
        styles: Mapping[str, str] | None = None,
        text: Collection[str] = (),
        spare: Collection[str] = (),
        is_styled: bool = True,
    ) -> None:
        """Columns by heading: `right` are aligned to the right, `text` is broken between words, `spare` may be left
        out, the last first. If it is not styled, cells are kept as plain text, equal ones once.
        """
        self.rows: list[Sequence[Cell]] = []
        self._headings = headings
        self._right = right
        self._styles = styles or {}
        self._text = text
        self._spare = spare
        self._plain_cells: dict[str, str] | None = None if is_styled else {}
        for row in rows:
            self.add(*row)

    def add(self, *cells: Cell, style: str = "") -> None:
        """Add a row; with a style it counts for all cells."""
        if self._plain_cells is not None:
            share = self._plain_cells.setdefault
            self.rows.append(tuple([share(text, text) for text in map(_plain, cells)]))
        else:
            self.rows.append([[(_plain(cell), style)] for cell in cells] if style else cells)

    def lines(self, width: int | None = None) -> list[str]:
        """The lines without styles, for this width; without one nothing is broken or left out."""
        return [*self.plain(self.layout(width))]

    def plain(self, layout: Layout) -> Iterator[str]:
        """The lines without styles."""
        if layout.is_whole:
            return self._aligned(layout)
        return ("".join([text for text, _ in line]).rstrip() for line in self.styled(layout))

    def layout(self, width: int | None = None) -> Layout:
        """The columns that fit, and their widths."""
        columns = [*range(len(self._headings))]
        texts = [*map(self._cells, columns)]
        is_whole = not any("\n" in "".join(column) for column in texts)
        widths = [
            max(_widths(column if is_whole else self._column(i))) for i, column in enumerate(texts)
        ]
        if width is None or _total(widths) <= width:
            return Layout(columns, widths, is_whole)
        narrowest = [self._narrowest(i, widths[i]) for i in columns]
        left_out: list[str] = []
        while _total([narrowest[i] for i in columns]) > width:
            spare = [i for i in columns if self._headings[i] in self._spare]
            if not spare:
                break
            columns.remove(spare[-1])
            left_out.insert(0, self._headings[spare[-1]])
        whole = [widths[i] for i in columns]
        given = _shrunk(whole, [narrowest[i] for i in columns], width)
        if _total(given) > width:
            given = _shrunk(given, [self._shortest(i, narrowest[i]) for i in columns], width)
        return Layout(columns, given, is_whole and given == whole, left_out)

    def styled(self, layout: Layout) -> Iterator[list[Piece]]:
        """The lines as pieces with their styles."""
        headings = [
            self._broken_heading(i, w) for i, w in zip(layout.columns, layout.widths, strict=True)
        ]
        height = max(map(len, headings))
        filled = [[""] * (height - len(lines)) + lines for lines in headings]
        yield from self._row_lines(
            [[[(text, HEADING_STYLE)] for text in lines] for lines in filled], layout
        )
        for row in self.rows:
            cells = []
            for i, width in zip(layout.columns, layout.widths, strict=True):
                pieces = self._pieces(i, row[i])
                text = "".join([text for text, _ in pieces])
                cells.append([_cut(pieces, span) for span in self._spans(i, text, width)])
            yield from self._row_lines(cells, layout)

    def _row_lines(self, cells: list[list[list[Piece]]], layout: Layout) -> Iterator[list[Piece]]:
        """The lines of a row, of which each cell has its own lines."""
        for number in range(max(map(len, cells))):
            line: list[Piece] = []
            for place, (i, width) in enumerate(zip(layout.columns, layout.widths, strict=True)):
                pieces = cells[place][number] if number < len(cells[place]) else []
                fill = " " * (width - sum(_width(text) for text, _ in pieces))
                padded = (
                    [(fill, ""), *pieces]
                    if self._headings[i] in self._right
                    else [*pieces, (fill, "")]
                )
                line += [(" " * GAP, ""), *padded] if place else padded
            yield line

    def _column(self, i: int) -> list[str]:
        """The lines of a column's heading and cells."""
        return [line for text in self._cells(i) for line in text.split("\n")]

    def _cells(self, i: int) -> list[str]:
        cells = [row[i] for row in self.rows]
        plain = [cell if cell.__class__ is str else _plain(cell) for cell in cells]
        return [self._headings[i], *plain]

    def _narrowest(self, i: int, width: int) -> int:
        """The width that the column needs at least."""
        if self._headings[i] not in self._text:
            return width
        return min(width, max(NARROWEST_TEXT, self._longest(i, _WORD)))

    def _shortest(self, i: int, width: int) -> int:
        """The width that the column needs when names are broken, too."""
        return width if self._headings[i] in self._right else min(width, self._longest(i, _PART))

    def _longest(self, i: int, part: re.Pattern[str]) -> int:
        found = (each for text in self._column(i) for each in part.findall(text))
        return max(map(_width, found), default=1)

    def _broken_heading(self, i: int, width: int) -> list[str]:
        heading = self._headings[i]
        return [heading[start:end] for start, end in self._spans(i, heading, width)]

    def _pieces(self, i: int, cell: Cell) -> Sequence[Piece]:
        style = self._styles.get(self._headings[i], "")
        return [(cell, style)] if isinstance(cell, str) else [(t, s or style) for t, s in cell]

    def _spans(self, i: int, text: str, width: int) -> list[Span]:
        """The lines of a cell."""
        spans: list[Span] = []
        start = 0
        for line in text.split("\n"):
            if _width(line) <= width:
                spans.append((start, start + len(line)))
            else:
                by_word = self._headings[i] in self._text
                spans += break_line(text, (start, start + len(line)), width, by_word)
            start += len(line) + 1
        return spans

    def _aligned(self, layout: Layout) -> Iterator[str]:
        """The lines where no cell is broken, column by column: a hundredth of the time for long tables."""
        forms, columns = [], []
        for i, width in zip(layout.columns, layout.widths, strict=True):
            texts, side = self._cells(i), "" if self._headings[i] in self._right else "-"
            form = f"%{side}{width}s"
            if not "".join(texts).isascii():  # a form counts a wide letter as one
                fills = [" " * (width - _width(text)) for text in texts]
                texts = [b + a if side else a + b for a, b in zip(fills, texts, strict=True)]
                form = "%s"
            forms.append(form)
            columns.append(texts)
        line = (" " * GAP).join(forms)
        return ((line % row).rstrip() for row in zip(*columns, strict=True))


def show_listing(console: Console, listing: Listing, indent: int = 0) -> None:
    """Print a listing for the width of the console, and which columns there was no room for."""
    width = console.width - indent
    layout = listing.layout(width)
    margin = " " * indent
    if console.is_terminal:
        for line in listing.styled(layout):
            text = Text.assemble(margin, *line)
            text.rstrip()
            console.print(text, soft_wrap=True)
    else:
        lines = (f"{margin}{line}\n" if line else "\n" for line in listing.plain(layout))
        while part := "".join(islice(lines, LINES_AT_ONCE)):
            # Not as text, which rich would wrap line by line.
            console.print(Segments([Segment(part)]), soft_wrap=True, end="")
    if layout.left_out:
        told = f"no room for {', '.join(layout.left_out)}: a wider terminal shows more"
        for part in wrap_text(told, width):
            console.print(Text(f"{margin}{part}", "dim"), soft_wrap=True)


def wrap_text(text: str, width: int) -> list[str]:
    """The lines of a text, broken between words."""
    return [text[start:end] for start, end in break_line(text, (0, len(text)), width, by_word=True)]


def break_line(text: str, span: Span, width: int, by_word: bool) -> list[Span]:
    """The parts of a line that is wider than `width`: broken between words, or after a separator of a name."""
    start, end = span
    pattern = _WORD if by_word else _PART
    lines: list[Span] = []
    for found in pattern.finditer(text, start, end):
        begin, stop = found.span()
        if lines and _width(text[lines[-1][0] : stop].rstrip()) <= width:
            lines[-1] = (lines[-1][0], stop)
        elif by_word and _width(found[0]) > width:
            lines += break_line(text, (begin, stop), width, by_word=False)
        else:
            lines.append((begin, stop))
    return [(a, a + len(text[a:b].rstrip())) for a, b in lines] or [span]


def _cut(pieces: Sequence[Piece], span: Span) -> list[Piece]:
    """The part of styled pieces that a span of their text covers."""
    cut, at = [], 0
    for text, style in pieces:
        start, end = max(span[0] - at, 0), min(span[1] - at, len(text))
        if start < end:
            cut.append((text[start:end], style))
        at += len(text)
    return cut


def _shrunk(widths: list[int], narrowest: list[int], limit: int) -> list[int]:
    """The widths, made narrower from the widest on until they fit, or until all are as narrow as they may be."""
    widths = [max(min(w, limit), least) for w, least in zip(widths, narrowest, strict=True)]
    while _total(widths) > limit:
        able = [i for i, width in enumerate(widths) if width > narrowest[i]]
        if not able:
            break
        widths[max(able, key=lambda i: widths[i])] -= 1
    return widths


def _total(widths: Collection[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _plain(cell: Cell) -> str:
    return cell if isinstance(cell, str) else "".join([text for text, _ in cell])


def _widths(texts: Sequence[str]) -> list[int]:
    """The width of each text; one check of all of them is enough for the letters of most tables."""
    return [*map(len if "".join(texts).isascii() else cell_len, texts)]


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)
