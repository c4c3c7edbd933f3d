"""Pod stages: how a pod without containers starts, becomes ready and ends, by annotations.

`bayplan up` and simulations play them. docs/annotations.md describes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from .selectors import LabelSelector
from .text.durations import EXPECTED, parse_duration

PREFIX = "bayplan.dev/"
DURATION = f"{PREFIX}duration"
START_DELAY = f"{PREFIX}start-delay"
READY_AFTER = f"{PREFIX}ready-after"
IMAGE_PULL_ERROR = f"{PREFIX}image-pull-error"
EXIT_CODE = f"{PREFIX}exit-code"
FOREVER = "forever"
MAX_EXIT_CODE = 255


class PodStages(msgspec.Struct, frozen=True):
    """The stages of a pod on its node, in this order. `image_pull_s` may be infinite.

    With an exit code the pod's restartPolicy decides what follows its end; without one it succeeds.
    """

    start_delay_s: float = 0.0
    image_pull_s: float = 0.0
    ready_after_s: float = 0.0
    duration_s: float | None = None
    exit_code: int | None = None


PLAIN = PodStages()


class StageRule(msgspec.Struct, frozen=True):
    """The stages of the pods that it selects, of all namespaces if `namespaces` is empty."""

    stages: PodStages
    selector: LabelSelector = LabelSelector()
    namespaces: tuple[str, ...] = ()

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether the rule is about a pod with this namespace and these labels."""
        return (not self.namespaces or namespace in self.namespaces) and self.selector.matches(
            labels
        )


class StageValue(msgspec.Struct, frozen=True):
    """Expected form of one field of the stages."""

    field: str
    expected: str
    read: Callable[[str], Any]
    """Returns the value; None when the text is wrong."""


def _exit_code(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= 3
    return int(text) if is_number and int(text) <= MAX_EXIT_CODE else None


VALUES: Mapping[str, StageValue] = {
    START_DELAY: StageValue("start_delay_s", EXPECTED, parse_duration),
    IMAGE_PULL_ERROR: StageValue(
        "image_pull_s",
        f'{EXPECTED}, or "{FOREVER}"',
        lambda text: math.inf if text == FOREVER else parse_duration(text),
    ),
    READY_AFTER: StageValue("ready_after_s", EXPECTED, parse_duration),
    DURATION: StageValue("duration_s", EXPECTED, lambda text: parse_duration(text) or None),
    EXIT_CODE: StageValue("exit_code", f"expected a number from 0 to {MAX_EXIT_CODE}", _exit_code),
}


def stages_of(
    annotations: Mapping[str, str] | None, base: PodStages = PLAIN
) -> tuple[PodStages, list[tuple[str, str]]]:
    """`base` with the stages of the annotations; and the wrong annotations, each with its fault."""
    if not annotations:
        return base, []
    changes: dict[str, Any] = {}
    for name, value in VALUES.items():
        text = annotations.get(name)
        found = value.read(text) if text is not None else None
        if found is not None:
            changes[value.field] = found
    stages = msgspec.structs.replace(base, **changes) if changes else base
    return stages, list(annotation_faults(annotations))


def annotation_faults(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The wrong annotations of stages, each with the expected and the found value."""
    for name, value in VALUES.items():
        text = annotations.get(name)
        if text is not None and value.read(text) is None:
            yield name, f'{value.expected}; got "{text}"'
