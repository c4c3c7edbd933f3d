"""GroupConditions: the condition PodGroupScheduled, with the result of a pod group's scheduling.

Mirrors updatePodGroupCondition of pkg/scheduler/schedule_one_podgroup.go.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from msgspec.structs import replace

from ..api.pod_groups import POD_GROUP_SCHEDULED, PodGroup, PodGroupCondition
from ..clock import Clock
from ..errors import ApiError
from ..framework import SUCCESS, Status, failure
from ..framework.handle import Executor
from .group_attempt import GroupAttempt
from .parts import SchedulerCluster

log = logging.getLogger(__name__)

SCHEDULED = POD_GROUP_SCHEDULED


class GroupConditions:
    """Writes the result of a group's cycle to its status, if that is new."""

    def __init__(self, cluster: SchedulerCluster, executor: Executor, clock: Clock) -> None:
        self._cluster = cluster
        self._executor = executor
        self._clock = clock

    def set(self, account: GroupAttempt) -> None:
        """Set the condition; one that is True stays so, and a group that is gone has none."""
        where = account.group
        group = self._cluster.get("PodGroup", where.namespace, where.name)
        if not isinstance(group, PodGroup):
            log.warning("pod group %s: it is gone, and its condition is not written", where.key)
            return
        known = group.scheduled
        wanted = self._condition(account.status, group, known)
        if wanted == known or (known and known.status == "True" and wanted.status != "True"):
            return
        others = [c for c in group.status.conditions or () if c.type != SCHEDULED]
        status = replace(group.status, conditions=(*others, wanted))
        self._write(replace(group, status=status))

    def _condition(
        self, status: Status, group: PodGroup, known: PodGroupCondition | None
    ) -> PodGroupCondition:
        value = "True" if status.is_success else "False"
        reason = "Unschedulable" if status.is_rejected else "SchedulerError"
        if known is not None and known.status == value:
            since = known.last_transition_time
        else:
            since = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return PodGroupCondition(
            type=SCHEDULED,
            status=value,
            observed_generation=group.metadata.generation,
            last_transition_time=since,
            reason="Scheduled" if status.is_success else reason,
            message="" if status.is_success else status.message,
        )

    def _write(self, group: PodGroup) -> None:
        def write() -> Status | Awaitable[Status]:
            try:
                answer = self._cluster.update_status(group)
            except ApiError as error:
                return failure(error)
            return _written(answer) if isinstance(answer, Awaitable) else SUCCESS

        def written(status: Status) -> None:
            if not status.is_success:  # the next cycle of the group writes it again
                log.warning(
                    "pod group %s: cannot write its condition: %s", group.key, status.message
                )

        self._executor.run(write, written)


async def _written(answer: Awaitable[PodGroup]) -> Status:
    try:
        await answer
    except ApiError as error:
        return failure(error)
    return SUCCESS
