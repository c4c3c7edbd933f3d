"""Semver: semantic versions of device attributes.

Mirrors github.com/blang/semver/v4 and the `semver` functions of
staging/src/k8s.io/apiserver/pkg/cel/library/semverlib.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_NUMBER = r"(?:0|[1-9][0-9]*)"
_NAME = r"[0-9A-Za-z-]+"
_PATTERN = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-({_NAME}(?:\.{_NAME})*))?(?:\+{_NAME}(?:\.{_NAME})*)?",
    re.ASCII,
)


class Semver(NamedTuple):
    """A version; build metadata (after a plus sign) is ignored.

    Versions compare as tuples: `pre` is a tuple that sorts a release after its pre-releases.
    """

    major: int
    minor: int
    patch: int
    pre: tuple[tuple[int, int, str], ...]


_RELEASED = ((2, 0, ""),)


@lru_cache(maxsize=4096)
def parse_semver(text: str, normalize: bool = False) -> Semver:
    """Parse a version; raises ValueError when it is invalid.

    With `normalize`, a leading `v`, leading zeros and missing parts are corrected first.
    """
    match = _PATTERN.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        raise ValueError(f'"{text}" is not a semantic version')
    major, minor, patch, before = match.groups()
    return Semver(int(major), int(minor), int(patch), _pre_release(text, before))


def _pre_release(text: str, before: str | None) -> tuple[tuple[int, int, str], ...]:
    """Sort key of a pre-release: numbers before words, fewer parts before more."""
    if before is None:
        return _RELEASED
    parts = []
    for part in before.split("."):
        if part.isdecimal():
            if len(part) > 1 and part.startswith("0"):
                raise ValueError(f'"{text}" is not a semantic version')
            parts.append((0, int(part), ""))
        else:
            parts.append((1, 0, part))
    return tuple(parts)


def _normalized(text: str) -> str:
    text = text.removeprefix("v")
    numbers = re.match(r"[0-9.]*", text)
    assert numbers is not None, "the pattern matches anything"
    core, rest = numbers[0], text[numbers.end() :]
    parts = [part.lstrip("0") or "0" if part else "" for part in core.split(".")]
    return ".".join([*parts, *["0"] * (3 - len(parts))]) + rest
