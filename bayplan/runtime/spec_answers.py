"""Spec answers: declarations of plugins about specs, shared by specs that differ in amounts where they read none.

Such specs have the same `PodSpec.outline`, whose amounts cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

import msgspec

from ..api.containers import ResourceRequirements
from ..api.pod_spec import PodSpec
from ..framework import Plugin
from ..stamped_cache import StampedCache
from .plugin_calls import ask_hooks

SpecHook = tuple[Plugin, Callable[[PodSpec], Any]]
Answers = tuple[Any, ...]
OfOutline = tuple[Answers, Sequence[int], Sequence[SpecHook]]
"""The answers that hold for all specs of an outline, and the hooks without such an answer, with their positions."""
T = TypeVar("T")

MEASURED = ("host_ports", "images", "device_resources", "requested_names", "wanted_names")
"""Values that a spec computes from the names of resources, or from none."""


class AmountsReadError(Exception):
    """An amount of a resource was read in a spec without amounts."""


def of_outline(spec: PodSpec, make: Callable[[PodSpec], T]) -> T | None:
    """The result of `make` for a spec, if it is the same for all specs of its outline; None if it reads an amount.

    It returns something that can be hashed, and not None. An exception counts as reading: it may work with the spec.
    """
    reads = _Reads()
    try:
        made = make(_without_amounts(spec, reads))
        hash(made)
    except Exception:  # raised again for the spec itself, unless an amount was the cause
        return None
    return None if reads.happened else made


class _Reads:
    """Whether an amount was read."""

    __slots__ = ("happened",)

    def __init__(self) -> None:
        self.happened = False

    def note(self) -> NoReturn:
        """Note it, for those who catch the exception."""
        self.happened = True
        raise AmountsReadError


class _Names(Mapping[str, Any]):
    """Names of resources; reading an amount is noted."""

    __slots__ = ("_names", "_reads")

    def __init__(self, names: Mapping[str, Any], reads: _Reads) -> None:
        self._names = names
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        return self._reads.note() if name in self._names else self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __eq__(self, other: object) -> bool:
        self._reads.note()

    def __hash__(self) -> int:
        self._reads.note()


class OutlineSpec(PodSpec, frozen=True, eq=False, dict=True, gc=True, weakref=True):
    """A spec whose amounts cannot be read; nor can it be part of a key."""

    def __hash__(self) -> int:
        reads: _Reads = self.__dict__["reads"]
        reads.note()


def _without_amounts(spec: PodSpec, reads: _Reads) -> OutlineSpec:
    fields: dict[str, Any] = {name: getattr(spec, name) for name in PodSpec.__struct_fields__}
    for name in ("containers", "init_containers"):
        fields[name] = fields[name] and tuple(
            [
                msgspec.structs.replace(each, resources=_bare_resources(each.resources, reads))
                for each in fields[name]
            ]
        )
    fields["overhead"] = _names(fields["overhead"], reads)
    fields["resources"] = _bare_resources(fields["resources"], reads)
    bare = OutlineSpec(**fields)
    bare.__dict__.update({name: getattr(spec, name) for name in MEASURED}, reads=reads)
    return bare


def _bare_resources(
    resources: ResourceRequirements | None, reads: _Reads
) -> ResourceRequirements | None:
    if resources is None:
        return None
    requests, limits = _names(resources.requests, reads), _names(resources.limits, reads)
    return ResourceRequirements(requests, limits, resources.claims)


def _names(amounts: Mapping[str, Any] | None, reads: _Reads) -> Any:
    return _Names(amounts, reads) if amounts else amounts


class SpecAnswers:
    """The answers of hooks about specs, in the order of the hooks; `reduced` drops the parts that are not used.

    Hooks that read no amounts are called once per outline, the others for each spec. Stale: everything, when a spec
    comes with another stamp.
    """

    def __init__(self, hooks: Sequence[SpecHook], reduced: Callable[[Any], Hashable]) -> None:
        self._hooks = hooks
        self._reduced = reduced
        self._reading: set[int] = set()
        """The hooks, by their numbers, that read the amounts of some spec."""
        self._known: StampedCache[Hashable, OfOutline] = StampedCache("answers about outlines")

    def about(self, spec: PodSpec, stamp: Hashable) -> Answers:
        """The answer of each hook about a spec."""
        known = self._known.get(spec.outline, stamp)
        if known is None:
            known = self._known.put(spec.outline, self._about_outline(spec))
        answers, reading, hooks = known
        if not reading:
            return answers
        found = list(answers)
        for number, answer in zip(reading, self._ask(hooks, spec), strict=True):
            found[number] = answer
        return tuple(found)

    def _about_outline(self, spec: PodSpec) -> OfOutline:
        every = range(len(self._hooks))
        quiet = [number for number in every if number not in self._reading]
        found = of_outline(spec, partial(self._ask, [self._hooks[number] for number in quiet]))
        known = {} if found is None else dict(zip(quiet, found, strict=True))
        for number in quiet if found is None else ():
            answer = of_outline(spec, partial(self._ask, [self._hooks[number]]))
            if answer is None:
                self._reading.add(number)
            else:
                known[number] = answer[0]
        reading = [number for number in every if number not in known]
        answers = tuple([known.get(number) for number in every])
        return answers, reading, [self._hooks[number] for number in reading]

    def _ask(self, hooks: Sequence[SpecHook], spec: PodSpec) -> Answers:
        return tuple([self._reduced(answer) for answer in ask_hooks(hooks, spec)])
