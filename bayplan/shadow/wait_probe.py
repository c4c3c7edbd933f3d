"""Wait probe: finds pods that wait although a node has room, by asking about all waiting pods every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..api.pod import Pod
from .decision_account import WaitAccount

EVERY_S = 5.0
MOST_SPECS = 200
"""Limit on the distinct pods that are probed at a time."""


class WaitProbe:
    """Notes since when each waiting pod has had a feasible node; `has_room` is true if one has, now."""

    def __init__(self, account: WaitAccount, has_room: Callable[[Pod], bool]) -> None:
        self._account = account
        self._account.every_s = EVERY_S
        self._has_room = has_room
        self._since: dict[str, tuple[str, float]] = {}
        """By uid: the pod's key, and when a node had room for it first."""
        self._next_s = EVERY_S
        self._last_s = 0.0
        self._round: Iterator[None] | None = None
        """The probes of one time that are under way."""

    def look(
        self,
        at_s: float,
        waiting: Callable[[], Iterable[Pod]],
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Probe again if it is time, until it `is_over`; the next call goes on."""
        if self._round is None:
            if at_s < self._next_s:
                return
            self._next_s = at_s + EVERY_S
            self._round = self._probes(at_s, list(waiting()))
        for _ in self._round:
            if is_over():
                return
        self._round = None

    def _probes(self, at_s: float, waiting: Sequence[Pod]) -> Iterator[None]:
        """Probe all that wait, with a pause after each."""
        rooms: dict[int, bool] = {}
        found: dict[str, tuple[str, float]] = {}
        for pod in waiting:
            key = id(pod.spec)  # equal specs are one object
            if key not in rooms and len(rooms) < MOST_SPECS:
                rooms[key] = self._has_room(pod)
                yield
            if rooms.get(key):
                found[pod.uid] = self._since.get(pod.uid) or (pod.key, at_s)
        self._count(self._since.keys() - found.keys())
        self._since, self._last_s = found, at_s

    def finish(self) -> None:
        """Count the pods that still wait."""
        self._round = None
        self._count(self._since.keys())
        self._since = {}

    def _count(self, gone: Iterable[str]) -> None:
        """Count pods that had room at two questions or more: from the first to the last of them."""
        for uid in gone:
            key, since_s = self._since[uid]
            if self._last_s > since_s:
                self._account.add(key, self._last_s - since_s)
