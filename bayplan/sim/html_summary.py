"""HTML summary: a short text and a small table in HTML for answers, as notebooks show them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

MAX_ROWS = 20


class ShownAnswer:
    """An answer with a headline and rows, of which Python shows one line and notebooks a table.

    It has no ABCMeta, which would exclude msgspec Structs; mypy refuses instances without the abstract methods.
    """

    __slots__ = ()

    @abstractmethod
    def headline(self) -> str:
        """The answer in one line."""

    @abstractmethod
    def shown_rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows that a notebook shows, the most important first."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def _repr_html_(self) -> str:
        return html_of(self.headline(), self.shown_rows())


def html_of(headline: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """A headline and a table of the first rows; every text is escaped."""
    left = iter(rows)
    shown = list(islice(left, MAX_ROWS))
    hidden = sum(1 for _ in left)
    names = list(dict.fromkeys(name for row in shown for name in row))
    parts = [f"<p><b>{escape(headline)}</b></p>"]
    if shown:
        parts.append(f"<table><thead>{_line('th', names)}</thead><tbody>")
        parts += (_line("td", [row.get(name) for name in names]) for row in shown)
        parts.append("</tbody></table>")
    if hidden:
        parts.append(f"<p>… and {hidden:,} more; to_frame() has all</p>")
    return "\n".join(parts)


def _line(tag: str, values: Sequence[Any]) -> str:
    cells = "".join(f"<{tag}>{escape(_text(value))}</{tag}>" for value in values)
    return f"<tr>{cells}</tr>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
