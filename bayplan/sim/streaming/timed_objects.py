"""Timed objects: objects that are added at their times, read one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from ...cluster.objects import ClusterObject
from ...errors import InputError
from ...manifests.timeline import InputObject, Timeline, created_at
from ..agenda import Agenda


def split_arrivals(
    objects: Iterable[InputObject],
) -> tuple[list[InputObject], Iterator[ClusterObject]]:
    """What is there at the start, and the objects that are added later, which are sorted by time."""
    rest = iter(objects)
    present: list[InputObject] = []
    for obj in rest:
        if not isinstance(obj, Timeline) and created_at(obj):
            return present, _later(chain([obj], rest))
        present.append(obj)
    return present, iter(())


def _later(objects: Iterable[InputObject]) -> Iterator[ClusterObject]:
    for obj in objects:
        if isinstance(obj, Timeline):
            raise InputError("stream: expected a Timeline before the first object with a time")
        yield obj


class Arrivals:
    """Adds each object when its time has come; only the next one is in memory.

    Of all that happens at one time, arrivals are first, as in a simulation that has all objects from the start.
    """

    def __init__(
        self,
        objects: Iterator[ClusterObject],
        agenda: Agenda,
        add: Callable[[ClusterObject], None],
    ) -> None:
        self._objects = objects
        self._agenda = agenda
        self._add = add
        self._next: ClusterObject | None = None
        self._at_s = 0.0
        self._advance()

    def _advance(self) -> None:
        """Take the next object, and set a timer for it; raises InputError when it comes too late."""
        obj = self._next = next(self._objects, None)
        if obj is None:
            return
        at_s = created_at(obj)
        if at_s < self._at_s:
            problem = f"expected objects sorted by time; got {at_s:g} s after {self._at_s:g} s"
            raise InputError(f"stream: {obj.kind} {obj.key}: {problem}")
        self._at_s = at_s
        self._agenda.first_at(at_s, self._arrive)

    def _arrive(self) -> None:
        obj = self._next
        assert obj is not None, "a timer is set for the next object only"
        self._add(obj)
        self._advance()
