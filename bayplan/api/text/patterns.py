"""Patterns: regular expressions that users write, matched in linear time.

Go's syntax is that of RE2, and so is the time it takes: no expression can stop the program. RE2 is imported with the
first expression.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from ...errors import BayplanError

MISSING = "regular expressions of objects need the package google-re2; install bayplan[kube]"
MAX_MEMORY = 8 << 20
"""Bytes that one expression may use."""


class PatternError(BayplanError):
    """A regular expression that is invalid, or too large."""


class LinearPattern(Protocol):
    """A compiled expression."""

    def search(self, text: str) -> Any:
        """The first match, which has the text as its item 0, or None."""

    def finditer(self, text: str) -> Any:
        """All matches that do not overlap."""


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> LinearPattern:
    """The expression; raises PatternError when it is invalid."""
    try:
        import re2  # an optional extra
    except ImportError:
        raise PatternError(MISSING) from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        found: LinearPattern = re2.compile(text, options)
    except re2.error as error:
        fault = error.args[0] if error.args else ""
        shown = fault.decode(errors="replace") if isinstance(fault, bytes) else str(fault)
        raise PatternError(f"error parsing regexp: {shown}") from None
    except UnicodeEncodeError:
        raise PatternError("error parsing regexp: invalid UTF-8") from None
    return found
