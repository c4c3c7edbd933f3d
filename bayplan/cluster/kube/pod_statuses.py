"""Pod statuses: conditions and nominated nodes of pods, one patch of a pod at a time.

Mirrors, as far as it goes, pkg/scheduler/backend/api_dispatcher: what is to be written while a patch of the same pod is
under way is put together and follows it. So patches never overtake each other, and each is the difference to what was
written last, not to what a watch has shown so far.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ...api.pod import Pod, PodCondition
from ...errors import ApiError
from .connection import UnreachableError
from .patches import status_patch

log = logging.getLogger(__name__)

Send = Callable[[Pod, bytes], "asyncio.Future[bytes]"]


class Wanted:
    """What is to be written next."""

    def __init__(self) -> None:
        self.conditions: dict[str, PodCondition] = {}
        self.nominated_node_name: str | None = None


class PodStatuses:
    """Used on the scheduler's thread alone, as the futures of `send` are.

    `newest` gives a pod as it was last seen or written, `stored` takes in what the API server returned.
    """

    def __init__(
        self,
        send: Send,
        newest: Callable[[Pod], Pod],
        stored: Callable[[Pod, bytes], object],
        now: Callable[[], str],
    ) -> None:
        self._send = send
        self._newest = newest
        self._stored = stored
        self._now = now
        self._next: dict[str, Wanted] = {}
        """By the uid of a pod whose patch is under way."""

    def write(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set a condition of the pod and its nominated node, each unless None; nothing new is not written."""
        wanted = self._next.get(pod.uid)
        if wanted is not None:
            if condition is not None:
                wanted.conditions[condition.type] = condition
            if nominated_node_name is not None:
                wanted.nominated_node_name = nominated_node_name
            return
        patch = status_patch(self._newest(pod), condition, nominated_node_name, self._now())
        if patch is not None:
            self._next[pod.uid] = Wanted()
            self._send(pod, patch).add_done_callback(lambda done: self._written(pod, done))

    def _written(self, pod: Pod, done: asyncio.Future[bytes]) -> None:
        wanted = self._next.pop(pod.uid)
        if done.cancelled():
            return
        problem = done.exception()
        try:
            if problem is not None:
                raise problem
            self._stored(pod, done.result())
        except ApiError as error:
            if isinstance(error, UnreachableError):  # said already, by those who watch
                log.debug("pod %s: cannot write its status: %s", pod.key, error)
            elif error.code != 404:
                log.warning("pod %s: cannot write its status: %s", pod.key, error)
        for condition in wanted.conditions.values():
            self.write(pod, condition, wanted.nominated_node_name)
        if wanted.nominated_node_name is not None:
            self.write(pod, None, wanted.nominated_node_name)
