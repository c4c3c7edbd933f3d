"""Assembly: join the files of the page into one, without a build step.

The page loads nothing from elsewhere, and its policy (Content-Security-Policy) allows only the
scripts and styles in these files, by hash. Data is JSON in an element that is never executed, with
`<` escaped so that no text can end the element.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

SCRIPTS = (
    "chinese.js",
    "words.js",
    "names.js",
    "format.js",
    "model.js",
    "data.js",
    "elements.js",
    "arrows.js",
    "paint.js",
    "tiles.js",
    "filter.js",
    "waiting.js",
    "lists.js",
    "table.js",
    "export.js",
    "choices.js",
    "summary.js",
    "details.js",
    "account.js",
    "series.js",
    "types.js",
    "strip.js",
    "timeline.js",
    "mirror.js",
    "compare.js",
    "search.js",
    "address.js",
    "live.js",
    "ask.js",
    "edit.js",
    "main.js",
)
"""In join order: each uses only code before it, or code that runs later."""


def assemble(data: Any, *, is_live: bool) -> str:
    """The whole page with `data`; a live one may connect to its own server, a report to none."""
    page = _read("page.html")
    parts = {
        "POLICY": policy_of(is_live=is_live),
        "STYLE": _read("page.css"),
        "DATA": embed(data),
        "SCRIPT": _script(),
    }
    pieces = []
    for name, text in parts.items():  # each is replaced once; inserted text is not searched
        before, mark, page = page.partition(f"%%{name}%%")
        assert mark, f"page.html has a placeholder for {name}"
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
    """JSON for a script element: no `<`, so neither `</script>` nor `<!--` can occur."""
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
