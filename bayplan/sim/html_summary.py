"""HTML summary: a short text and a small table in HTML for answers, as notebooks show them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, TypeVar

from ..api.node import ZONE, Node
from ..api.pod import Pod
from ..api.pod_groups import labelled_group_of, pod_group_of
from ..api.workloads import workload_of
from ..errors import InputError, package_needed
from ..releases.release import DEFAULT_RELEASE

# Frames: rows of plain values as a pandas DataFrame, where pandas is installed.

T = TypeVar("T")


def chosen(what: str, rows: Mapping[str, Callable[[], T]]) -> T:
    """The rows called `what`; raises InputError for another name."""
    if what not in rows:
        raise InputError(f'to_frame: expected {" or ".join(rows)}; got "{what}"')
    return rows[what]()


def make_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A DataFrame with one line per row; raises InputError when pandas is not installed."""
    with package_needed("frames", "pandas", "notebook"):
        import pandas
    return pandas.DataFrame(list(rows))


def pod_columns(pod: Pod) -> dict[str, Any]:
    """Owner, pod group, labels and requests of a pod; cpu in milli, others in whole units."""
    kind, name = workload_of(pod)
    return {
        "owner": None if pod.controller is None else f"{kind}/{name}",
        "group": pod_group_of(pod) or labelled_group_of(pod),
        "labels": dict(pod.labels),
        **pod.requests,
    }


def zone_of(node: Node) -> str | None:
    """The zone that the node's labels name."""
    return node.labels.get(ZONE)


MAX_ROWS = 20


class ShownAnswer:
    """An answer with a headline and rows: Python shows one line, notebooks a table.

    It has no ABCMeta, which would exclude msgspec Structs; mypy refuses instances without the abstract methods.
    """

    __slots__ = ()

    @property
    def release(self) -> str:
        """The release of kube-scheduler that was reproduced; empty if there are several."""
        return ""

    @abstractmethod
    def headline(self) -> str:
        """The answer in one line."""

    @abstractmethod
    def shown_rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows that a notebook shows, the most important first."""

    def frame_rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of a frame."""
        return self.shown_rows()

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line for each part of the answer."""
        return make_frame(self.frame_rows())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._told()}>"

    def _repr_html_(self) -> str:
        return html_of(self._told(), self.shown_rows())

    def _told(self) -> str:
        """The headline, with the release unless it is the default one."""
        return ", ".join(filter(None, (self.headline(), as_release(self.release))))


def as_release(patch: str) -> str:
    """`as v1.35.8 does`; empty for the default release, and without one."""
    return f"as {patch} does" if patch not in ("", DEFAULT_RELEASE.patch) else ""


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
