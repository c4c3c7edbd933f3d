"""Patterns: regular expressions of schemas, which are written for RE2, in Python's syntax."""

from __future__ import annotations

import re
from functools import lru_cache

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(
    r"\\.|\[:(?P<name>[a-z]+):\]|\(\?(?P<flags>[imsU-]+)\)|\[\^?\]?|[\]$()|]|[^\\\[\]$()|]+",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> re.Pattern[str]:
    """The expression; raises re.error when it is invalid."""
    return re.compile("".join(_translated(text)), re.ASCII)


def _translated(text: str) -> list[str]:
    """The parts of the expression in Python's syntax.

    `$` is the end of the text there, not also the place before a final line break. Flags count up to the end of their
    group: each alternative after them gets a group of its own.
    """
    out: list[str] = []
    flags = [""]  # of each open group
    within = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if within:
            out.append(
                _CLASSES.get(match["name"] or "", token if token[0] != "[" else f"\\{token}")
            )
            within = token != "]"
        elif match["flags"]:
            out.append(")" * bool(flags[-1]) + f"(?{match['flags']}:")
            flags[-1] = match["flags"]
        elif token == "(":
            out.append(token)
            flags.append("")
        elif token == ")":
            out.append(")" * bool(flags.pop() if len(flags) > 1 else "") + token)
        elif token == "|" and flags[-1]:
            out.append(f")|(?{flags[-1]}:")
        elif token[0] == "[":
            out.append(token.replace("]", r"\]"))
            within = True
        else:
            out.append({"$": r"\Z", r"\z": r"\Z"}.get(token, token))
    return [*out, ")" * bool(flags[-1])]
