"""Published: the common part of importers of published traces: their tables, and a window of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...api.pod_stages import DURATION
from ...api.text.durations import format_duration, parse_duration
from ...errors import InputError
from ...manifests.timeline import CREATED_AT
from ..plain_part import PlainPart
from .table_rows import Row, read_table
from .trace_manifests import Manifest

CSV_ENDINGS = (".csv", ".csv.gz", ".tar.gz")


@dataclass(frozen=True)
class TraceTable(PlainPart):
    """One table of a trace, as its schema describes it."""

    PLAIN = "name about optional=is_optional"

    name: str
    """Its file without the ending."""
    header: str
    """Its columns, as the first line of a file names them."""
    about: str
    is_optional: bool = False
    needed: tuple[str, ...] = ()
    """The columns that are required when the first line names columns; empty for all."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(self.header.split(","))

    def find(self, folder: Path) -> Path | None:
        """The file of the table in `folder`; None when there is none."""
        files = (folder / f"{self.name}{ending}" for ending in CSV_ENDINGS)
        return next((file for file in files if file.is_file()), None)

    def needed_file(self, folder: Path) -> Path:
        """The file of the table in `folder`; raises InputError when there is none."""
        if (file := self.find(folder)) is not None:
            return file
        expected = " or ".join(f"{self.name}{ending}" for ending in CSV_ENDINGS)
        raise InputError(f"{folder}: expected a folder with {expected}; got none of them")

    def rows(self, file: Path) -> Iterator[Row]:
        """The rows of a file of this table."""
        return read_table(file, self.columns, self.needed)


@dataclass(frozen=True)
class TraceFormat(PlainPart):
    """A trace that can be imported, for listings."""

    PLAIN = "name about schema files"

    name: str
    about: str
    schema: str
    """Address of its published schema."""
    files: tuple[TraceTable, ...]


@dataclass(frozen=True)
class TraceWindow:
    """A part of the time of a trace; pods that run when it begins are created then, for the rest of their duration."""

    from_s: float = 0.0
    until_s: float = float("inf")

    def cut(self, pods: Iterator[Manifest]) -> Iterator[Manifest]:
        """The pods of the window, with times from its beginning."""
        if self == TraceWindow():
            return pods
        return (pod for pod in pods if self._keep(pod))

    def _keep(self, pod: Manifest) -> bool:
        """Whether the pod is in the window; changes its times."""
        notes = pod["metadata"].setdefault("annotations", {})
        created_s = parse_duration(notes.get(CREATED_AT, "0")) or 0.0
        if created_s >= self.until_s:
            return False
        gone_s = self.from_s - created_s
        if gone_s > 0 and DURATION in notes:
            left_s = (parse_duration(notes[DURATION]) or 0.0) - gone_s
            if left_s <= 0:
                return False
            notes[DURATION] = format_duration(left_s)
        notes.pop(CREATED_AT, None)
        if gone_s < 0:
            notes[CREATED_AT] = format_duration(-gone_s)
        return True


@dataclass(kw_only=True)
class PublishedTrace(ABC):
    """The files of a trace. `notes` are remarks about the import, complete when all objects were read."""

    window: TraceWindow = TraceWindow()
    notes: list[str] = field(default_factory=list)

    @abstractmethod
    def nodes(self) -> Iterator[Manifest]:
        """Yield the manifests of the nodes."""

    @abstractmethod
    def all_pods(self) -> Iterator[Manifest]:
        """Yield the manifests of all pods, with times from the beginning of the trace."""

    def pods(self) -> Iterator[Manifest]:
        """Yield the manifests of the pods of the window."""
        return self.window.cut(self.all_pods())

    def objects(self) -> Iterator[Manifest]:
        """Yield the manifests: nodes, then pods."""
        yield from self.nodes()
        yield from self.pods()
