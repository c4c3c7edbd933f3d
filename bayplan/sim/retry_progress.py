"""Retry progress: whether a simulation makes progress, or only repeats retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized
from typing import Any

from ..api.pod import Pod
from ..api.storage import PersistentVolumeClaim
from ..clock import Clock
from .agenda import Agenda

PATIENCE_S = 60.0
PATIENCE_BACKOFFS = 6
SPARE_ATTEMPTS = 100
PATIENCE_CHANGES = 100


class Progress:
    """Watches the cluster for progress: objects added, deleted, bound or finished.

    A plugin that always fails, or pods that preempt each other, would be retried for ever. So the
    run stops when only retries happened for a while. A claim that is changed again and again, and
    still has no volume, is no progress either: its provisioner fails.
    """

    def __init__(self, clock: Clock, agenda: Agenda, max_backoff_s: float) -> None:
        self._clock = clock
        self._agenda = agenda
        self._patience_s = max(PATIENCE_S, PATIENCE_BACKOFFS * max_backoff_s)
        self._last_s = 0.0
        self._attempts = 0
        self._under_way: dict[str, float] = {}
        self._changes: Counter[str] = Counter()

    def attempted(self, uid: str, goes_on: bool) -> None:
        """Record an attempt; `goes_on` when the pod waits on Permit or is being bound."""
        self._attempts += 1
        if goes_on:
            self._under_way[uid] = self._clock.monotonic()

    def ended(self, uid: str) -> None:
        """Record the end of a pod's attempt."""
        self._under_way.pop(uid, None)

    def is_hectic(self, waiting: Sized) -> bool:
        """Whether more failed attempts were made at this moment than there are pending pods."""
        return self._attempts > SPARE_ATTEMPTS and self._attempts > len(waiting) + SPARE_ATTEMPTS

    def moment_passed(self) -> None:
        """Record that time advanced."""
        self._attempts = 0

    @property
    def is_stuck(self) -> bool:
        """Whether only retries happened for long, and no other timer is set.

        A pod that has been binding for as long (a slow PreBind, a long Permit) may still arrive.
        """
        limit = self._clock.monotonic() - self._patience_s
        if self._agenda.pending or self._last_s >= limit:
            return False
        return not any(since <= limit for since in self._under_way.values())

    def on_add(self, obj: Any) -> None:
        self._move()

    def on_update(self, old: Any, new: Any) -> None:
        if isinstance(new, Pod):
            if (
                old.node_name != new.node_name
                or old.is_terminating != new.is_terminating
                or old.is_finished != new.is_finished
            ):
                self._move()
            return
        if isinstance(new, PersistentVolumeClaim) and not new.spec.volume_name:
            self._changes[new.uid] += 1
            if self._changes[new.uid] > PATIENCE_CHANGES:
                return
        self._move()

    def on_delete(self, obj: Any) -> None:
        self._move()

    def _move(self) -> None:
        self._last_s = self._clock.monotonic()
        self._attempts = 0
