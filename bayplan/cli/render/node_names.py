"""Node names: the suffix that most names share is shown once where room is short.

An example is .eu-west-1.compute.internal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from .consoles import PIPE_WIDTH

_SUFFIX = re.compile(r"\.(?=[a-z])")


class NodeNames:
    """Names without the suffix that they share; it is empty where there is room for whole names."""

    def __init__(self, suffix: str = "") -> None:
        self.suffix = suffix
        self._ends = re.compile(rf"(?<=[\w-]){re.escape(suffix)}(?![\w-]|\.\w)") if suffix else None

    @classmethod
    def of(cls, console: Console, names: Iterable[str]) -> NodeNames:
        """For a console: output without a terminal has whole names, for grep."""
        return cls("" if console.width >= PIPE_WIDTH else common_suffix(names))

    @classmethod
    def told(cls, console: Console, names: Iterable[str]) -> NodeNames:
        """For a console, on which the common suffix of the names is printed once."""
        found = cls.of(console, names)
        if found.suffix:
            console.print(Text(f"Node names without {found.suffix}\n", style="dim"), soft_wrap=True)
        return found

    def short(self, name: str) -> str:
        """The name without the suffix."""
        return name.removesuffix(self.suffix)

    def in_text(self, text: str) -> str:
        """A text without the suffix of the names in it."""
        return text if self._ends is None else self._ends.sub("", text)


WHOLE_NAMES = NodeNames()


def common_suffix(names: Iterable[str]) -> str:
    """The longest suffix, from a dot on, that most of the names have; empty when names could be confused without it."""
    known = set(names)
    counts: Counter[str] = Counter()
    for name in known:
        counts.update({name[found.start() :] for found in _SUFFIX.finditer(name)})
    shared = [suffix for suffix, count in counts.items() if 2 * count > len(known)]
    suffix = max(shared, key=len, default="")
    if suffix and any(
        name.removesuffix(suffix) in known for name in known if name.endswith(suffix)
    ):
        return ""
    return suffix
