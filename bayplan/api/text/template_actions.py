"""Template actions: the parts of a text that a template engine, such as Helm's, replaces."""

from __future__ import annotations

import re

ACTION = re.compile(rb"\{\{-?\s*(?:/\*|[.$\w(\"`])[^\n]{0,200}")
_SHOWN = 60


def shown_action(data: bytes, found: re.Match[bytes]) -> str:
    """The beginning of an action, at most to its end, for a message."""
    line = data[found.start() : found.start() + _SHOWN].split(b"\n")[0].decode(errors="replace")
    action, end, _ = line.partition("}}")
    return action + end


def first_action(data: bytes) -> str:
    """The first action of a text as it is shown; empty if there is none."""
    found = ACTION.search(data)
    return shown_action(data, found) if found else ""
