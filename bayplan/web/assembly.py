"""Assembly: the files of the page joined into one, without a build step.

Nothing of the page comes from elsewhere, and its policy (Content-Security-Policy) lets nothing run but what is in
these files: scripts and styles are known by their hashes. Data is JSON in an element that is never executed, with `<`
written so that no text can end the element.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

SCRIPTS = (
    "format.js",
    "model.js",
    "data.js",
    "elements.js",
    "paint.js",
    "tiles.js",
    "lists.js",
    "details.js",
    "account.js",
    "timeline.js",
    "search.js",
    "live.js",
    "main.js",
)
"""In the order in which they are joined: each uses only what stands before it, or what runs later."""


def assemble(data: Any, *, is_live: bool) -> str:
    """The whole page, with `data` in it; a live one may ask the server that it came from, a report nobody."""
    page = _read("page.html")
    parts = {
        "POLICY": policy_of(is_live=is_live),
        "STYLE": _read("page.css"),
        "DATA": embed(data),
        "SCRIPT": _script(),
    }
    pieces = []
    for (
        name,
        text,
    ) in parts.items():  # each place is filled once, and what was filled in is not looked at again
        before, mark, page = page.partition(f"%%{name}%%")
        assert mark, f"page.html has a place for {name}"
        pieces += [before, text]
    return "".join((*pieces, page))


def policy_of(*, is_live: bool) -> str:
    """The Content-Security-Policy of the page."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(_script())}'",
            f"style-src '{_hash(_read('page.css'))}'",
            "img-src data:",
            "connect-src 'self'" if is_live else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def embed(data: Any) -> str:
    """JSON that can stand in a script element: no `<`, so neither `</script>` nor `<!--` is in it."""
    text = msgspec.json.encode(data).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _script() -> str:
    joined = "\n".join(_read(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{joined}\n}})();\n'


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
