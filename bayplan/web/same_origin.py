"""Same origin: only the page itself may send requests that ask or change something.

A browser sends the origin of a page with each POST, and asks before it sends a header of its own to another site. A
request of the page of another site is refused for either reason.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

PAGE_HEADER = "X-Bayplan-Page"


def foreign_reason(request: web.Request) -> str:
    """Why the request is not one of the page; empty when it is."""
    if request.headers.get(PAGE_HEADER) != "1":
        return f"expected the header {PAGE_HEADER}: 1; got none"
    if request.content_type != "application/json":
        return f"expected a body of application/json; got {request.content_type}"
    origin = request.headers.get("Origin")
    if origin is not None and _site(origin) != request.host.lower():
        return f"expected a request of this page; got one of {origin!r}"
    fetched = request.headers.get("Sec-Fetch-Site", "same-origin")
    if fetched != "same-origin":
        return f"expected a request of this page; got one that is {fetched}"
    return ""


def _site(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
