"""Victim evictions: deleting the victims of a preemption.

Mirrors pkg/scheduler/framework/preemption/executor.go.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from ...api.pod import Pod
from ...api.pod_groups import GroupPreemptor
from ...errors import ApiError
from ...framework import SUCCESS, Plugin, Status, failure
from ...framework.handle import preempted_event
from ...framework.interface import Preemption
from ...framework.victims import Victims
from ...observe.group_metrics import BY_POD, BY_POD_GROUP

log = logging.getLogger(__name__)


class VictimEvictions:
    """Deletes victims of `plugin`, or stops those that are not bound yet."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self.last: dict[str, Pod] = {}
        """By uid of the preempting pod or group: its last victim, while that is being deleted."""

    def evict(
        self, pod: Pod, chosen: Victims, account: Preemption, is_on_trial: bool = False
    ) -> None:
        """Evict the victims; lower-priority pods nominated to the node lose their nomination.

        Deleting pods takes time: until it is done the pod stays out of the queue.
        """
        if not chosen.evicted:
            return
        self._clear_nominations(pod, chosen, account, is_on_trial)
        self.delete(chosen.pods, pod, [pod])

    def delete(
        self, victims: Sequence[Pod], preemptor: Pod | GroupPreemptor, pods: Sequence[Pod]
    ) -> None:
        """Delete `victims` in the background; `pods` are retried at once when that fails."""
        handle = self._plugin.handle
        evicted = [victim for victim in victims if not victim.is_terminating]
        to_delete = [victim for victim in evicted if not self._stop(victim, preemptor)]
        is_last_stopped = bool(evicted) and evicted[-1] not in to_delete
        wakes = is_last_stopped and handle.release.stopped_victims_wake
        if not to_delete:
            if wakes:
                handle.activate(pods)
            return
        self.last[preemptor.uid] = to_delete[-1]
        metrics, release = handle.metrics, handle.release
        is_group = isinstance(preemptor, GroupPreemptor)
        if is_group and release.groups_are_entries and metrics.preemptions is not None:
            metrics.preemptions.victims.observe(len(victims))
        else:
            metrics.preemption_victims.observe(len(victims))
        over = metrics.evicting(BY_POD_GROUP if is_group else BY_POD)

        def evict_last() -> Awaitable[None] | None:
            if not release.holds_preemptor_to_the_end:
                self.last.pop(preemptor.uid, None)
            return handle.client.evict(to_delete[-1], preemptor)

        def delete() -> Status | Awaitable[Status]:
            evict = handle.client.evict
            answers = [evict(victim, preemptor) for victim in to_delete[:-1]]
            others = [answer for answer in answers if answer is not None]
            if others:
                return _evicted(others, evict_last, release.deletes_last_after_failure)
            last = evict_last()
            return SUCCESS if last is None else _evicted([last])

        def finished(status: Status) -> None:
            over(status.is_success)
            self.last.pop(preemptor.uid, None)
            if wakes or not status.is_success:  # retry if victims stay, rather than wait for them
                handle.activate(pods)

        if handle.executor is not None:
            handle.executor.run(delete, finished)
            return
        status = delete()
        assert isinstance(status, Status), "a client that takes its time needs an executor"
        finished(status)

    def _clear_nominations(
        self, pod: Pod, chosen: Victims, account: Preemption, is_on_trial: bool = False
    ) -> None:
        """Clear the nominations of lower-priority pods to the node.

        While the nodes of a group are on trial, the members after the pod still see them: kube-scheduler reads cleared
        nominations from the API server.
        """
        handle = self._plugin.handle
        nominated = handle.nominator.nominated_pods(chosen.node_name)
        rivals = [rival for rival in nominated if rival.priority < pod.priority]
        account.cleared += rivals

        def clear() -> Status:
            for rival in rivals:
                handle.nominator.delete(rival)
                handle.client.clear_nomination(rival)
            return SUCCESS

        def cleared(status: Status) -> None:
            if not status.is_success:  # the preemptor does not depend on this
                log.warning(
                    "node %s: cannot clear nominations: %s", chosen.node_name, status.message
                )

        if is_on_trial and handle.executor is not None:
            handle.executor.run(clear, cleared)
        else:
            clear()

    def evict_within_attempt(self, pod: Pod, chosen: Victims, account: Preemption) -> Status:
        """Evict the victims with feature gate SchedulerAsyncPreemption off: a failed eviction fails the attempt.

        The scheduler's thread never waits for an API server: until a client has answered, no other pod is tried, and
        the attempt does not end.
        """
        handle = self._plugin.handle
        handle.metrics.preemption_victims.observe(len(chosen.pods))
        over = handle.metrics.evicting(BY_POD, is_async=False)
        try:
            answers = [
                handle.client.evict(victim, pod)
                for victim in chosen.evicted
                if not self._stop(victim, pod)
            ]
        except ApiError as error:
            over(False)
            return failure(error)

        def go_on(status: Status) -> None:
            """End the attempt, after the victims were deleted or a deletion failed."""
            pause = handle.pause
            pause.count -= 1
            over(status.is_success)
            if status.is_success:
                self._clear_nominations(pod, chosen, account)
            ended, pause.ended = pause.ended, None
            if ended is not None:
                ended(status)

        later = [answer for answer in answers if answer is not None]
        if later:
            assert handle.executor is not None, "a client that takes its time needs an executor"
            handle.pause.count += 1
            handle.executor.run(lambda: _evicted(later), go_on)
        else:
            over(True)
            self._clear_nominations(pod, chosen, account)
        return SUCCESS

    def _stop(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> bool:
        """Stop a victim that is not bound yet, without deleting it; False when it is too late for that."""
        handle, name = self._plugin.handle, self._plugin.name
        waiting_pods, pre_binding = handle.waiting_pods, handle.pre_binding
        waiting = waiting_pods.get(victim.uid) if waiting_pods is not None else None
        fails = handle.release.waiting_victims_fail
        if waiting is not None and not fails:
            return waiting.reject(name, "preempted")
        stopped = waiting is not None and waiting.preempt(name, "preempted")
        if fails and not stopped and pre_binding is not None:
            stopped = pre_binding.cancel(victim.uid, f"preempted by {name}")
        if stopped:
            handle.client.record_event(preempted_event(victim, preemptor, in_memory=True))
        return stopped


async def _evicted(
    others: Sequence[Awaitable[None]],
    evict_last: Callable[[], Awaitable[None] | None] = lambda: None,
    evicts_last_always: bool = False,
) -> Status:
    """Wait for the deletion of the other victims, then delete the last one; usually not if one of the others failed."""
    problem: ApiError | None = None
    for answer in others:
        try:
            await answer
        except ApiError as error:
            problem = error
    if problem is not None and not evicts_last_always:
        return failure(problem)
    last = evict_last()
    status = SUCCESS if last is None else await _evicted([last])
    return status if problem is None else failure(problem)
