"""First streams: the watches that begin with all objects.

Those of pods and nodes are requested before anything else: the API server needs longer to send them than the scheduler
takes to start. This module imports nothing that takes time.
"""

from __future__ import annotations

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""Finished pods need no node; they are excluded."""
LARGE = {PODS: NOT_FINISHED, NODES: ""}
"""Paths of the kinds with many objects, which every server has, with their field selectors."""
WATCH_S = (300.0, 600.0)
"""Timeout of a watch: a random number in between."""
CACHED = "0"
"""The resource version of any state, which the server has in its cache."""


def first_stream(field_selector: str) -> dict[str, str | int]:
    """The query; the shortest timeout instead of a random one, so that a request can be sent ahead."""
    query: dict[str, str | int] = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": CACHED,
        "timeoutSeconds": int(WATCH_S[0]),
    }
    if field_selector:
        query["fieldSelector"] = field_selector
    return {**query, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
