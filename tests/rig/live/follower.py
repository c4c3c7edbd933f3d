"""Follower: the objects of one list, kept up to date by a watch in its own thread.

Reconnects after an outage. Tests wait on its state (`wait`) instead of polling the server.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .client import GONE_WRONG, LiveClient, RefusedError, Tree, Watch

Key = tuple[str, str]
OnEvent = Callable[[str, Tree], None]
Result = TypeVar("Result")

AGAIN_S = 0.1
WAIT_S = float(os.environ.get("BAYPLAN_E2E_WAIT_S", "60"))
"""Default timeout of waiting tests."""


class ListFollower:
    """Follows the list at `path`. `on_event` is called in the follower's thread with every change, in order."""

    def __init__(self, client: LiveClient, path: str, on_event: OnEvent | None = None) -> None:
        self.objects: dict[Key, Tree] = {}
        self._client = client
        self._path = path
        self._on_event = on_event
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._watch: Watch | None = None
        self._guard = threading.Lock()  # of _ended and _watch together
        version = self._relist()
        self._thread = threading.Thread(target=self._follow, args=(version,), daemon=True)
        self._thread.start()

    def wait(
        self, look: Callable[[dict[Key, Tree]], Result], what: str, timeout_s: float = WAIT_S
    ) -> Result:
        """Wait until `look` returns a true value, and return that; raises AssertionError on a
        timeout."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not (found := look(self.objects)):
                left = deadline - time.monotonic()
                assert left > 0, f"not within {timeout_s:g} s: {what}"
                self._changed.wait(left)
            return found

    def stop(self) -> None:
        """Stop following."""
        with self._guard:
            self._ended.set()
            if self._watch is not None:
                self._watch.close()
        self._thread.join(WAIT_S)

    def _follow(self, version: str) -> None:
        while not self._ended.is_set():
            try:
                version = self._watch_from(version) or self._relist()
            except (*GONE_WRONG, RefusedError, ValueError, AttributeError):
                # http.client raises one of the last two when it is closed while it reads.
                self._ended.wait(AGAIN_S)

    def _watch_from(self, version: str) -> str:
        """Watch as long as possible; return the version to resume from, empty if a new list is
        needed."""
        watch = self._client.watch(self._path, version)
        with self._guard:
            self._watch = watch
            if self._ended.is_set():
                watch.close()
        try:
            for event in watch:
                if event["type"] == "ERROR":
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._take(event["type"], event["object"])
        except (*GONE_WRONG, ValueError, AttributeError):
            self._ended.wait(AGAIN_S)
        finally:
            watch.close()
        return version

    def _relist(self) -> str:
        """List, and deliver the difference as events."""
        found = self._client.get(self._path)
        now = {key_of(tree): tree for tree in found["items"]}
        for key, tree in list(self.objects.items()):
            if key not in now:
                self._take("DELETED", tree)
        for key, tree in now.items():
            if self.objects.get(key) != tree:
                self._take("MODIFIED" if key in self.objects else "ADDED", tree)
        version: str = found["metadata"]["resourceVersion"]
        return version

    def _take(self, kind: str, tree: Tree) -> None:
        if self._on_event is not None:
            self._on_event(kind, tree)
        with self._changed:
            if kind == "DELETED":
                self.objects.pop(key_of(tree), None)
            else:
                self.objects[key_of(tree)] = tree
            self._changed.notify_all()


def key_of(tree: Any) -> Key:
    """Namespace and name."""
    return tree["metadata"].get("namespace", ""), tree["metadata"]["name"]
