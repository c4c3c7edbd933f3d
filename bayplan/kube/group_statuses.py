"""Group statuses: conditions of PodGroups, one patch per group at a time.

Mirrors PatchPodGroupStatus of pkg/scheduler/util/utils.go: a strategic merge patch with the conditions that differ. A
write that arrives while another of the same group is running follows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..api.pod_groups import PodGroup
from .patches import group_status_patch

Send = Callable[[PodGroup, bytes], Awaitable[bytes]]


class GroupStatuses:
    """Used on the scheduler's thread alone.

    `newest` returns a group as last seen or written, and raises NotFoundError if there is none; `stored` receives the
    API server's response.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send: Send,
        newest: Callable[[PodGroup], PodGroup],
        stored: Callable[[PodGroup, bytes], PodGroup],
    ) -> None:
        self._loop = loop
        self._send = send
        self._newest = newest
        self._stored = stored
        self._last: dict[str, asyncio.Task[PodGroup]] = {}
        """The last write of each group, by uid, until it has ended."""

    def write(self, group: PodGroup) -> Awaitable[PodGroup]:
        """Merge the group's conditions into its status; the future raises ApiError when the cluster refuses."""
        task = self._loop.create_task(self._write(group, self._last.get(group.uid)))
        self._last[group.uid] = task
        task.add_done_callback(lambda done: self._ended(group.uid, done))
        return task

    async def _write(self, group: PodGroup, before: asyncio.Task[PodGroup] | None) -> PodGroup:
        if before is not None:
            await asyncio.wait([before])
        newest = self._newest(group)
        patch = group_status_patch(newest, group)
        return newest if patch is None else self._stored(group, await self._send(group, patch))

    def _ended(self, uid: str, done: asyncio.Task[PodGroup]) -> None:
        if self._last.get(uid) is done:
            del self._last[uid]
