"""Spec answers: declarations of plugins about specs, shared by specs that differ in amounts where they read none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from ..api.outline import of_outline
from ..api.pod_spec import PodSpec
from ..framework import Plugin
from ..stamped_cache import StampedCache
from .plugin_calls import ask_hooks

SpecHook = tuple[Plugin, Callable[[PodSpec], Any]]
Answers = tuple[Any, ...]
OfOutline = tuple[Answers, Sequence[int], Sequence[SpecHook]]
"""The answers that hold for all specs of an outline, and the hooks without such an answer, with their positions."""


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
