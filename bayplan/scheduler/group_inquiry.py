"""GroupInquiry: the one way to ask a scheduler about a pod group without placing it. `inquiry.py` is about pods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..api.pod import Pod
from ..queue import PodNominator
from .cycle import Scheduler
from .group_attempt import GroupAttempt


class GroupInquiry:
    """What the scheduling cycle of a group would come to if its waiting members `pods` were tried now.

    Nothing is bound, and nominations stay as they are. Evictions go to the scheduler's cluster: ask a scheduler whose
    cluster ignores writes, or do not ask for room.
    """

    def __init__(self, scheduler: Scheduler, pods: Sequence[Pod]) -> None:
        self._scheduler = scheduler
        self.pods = sorted((scheduler.as_read(pod) for pod in pods), key=self._turn)
        """The members in the order in which they are tried."""

    def decide(self, makes_room: bool = True, tells_all: bool = False) -> GroupAttempt:
        """A node for each member, or why there is none.

        If it `makes_room`, with the victims of preemption. If it `tells_all`, with what came of the members on every
        placement, however many there are.
        """
        with _nominations_kept(self._scheduler.queue.nominator):
            return self._scheduler.judge_group(self.pods, makes_room, tells_all)

    def _turn(self, pod: Pod) -> tuple[int, float, str]:
        queued = self._scheduler.queue.get(pod)
        return -pod.priority, math.inf if queued is None else queued.turn, pod.key


@contextmanager
def _nominations_kept(nominator: PodNominator) -> Iterator[None]:
    """Undo what happens to nominations until the end of the block."""
    before = _nominations(nominator)
    try:
        yield
    finally:
        after = _nominations(nominator)
        for uid, (pod, name) in after.items():
            if before.get(uid) != (pod, name):
                nominator.delete(pod)
        for uid, (pod, name) in before.items():
            if after.get(uid) != (pod, name):
                nominator.add(pod, name)


def _nominations(nominator: PodNominator) -> dict[str, tuple[Pod, str]]:
    return {pod.uid: (pod, name) for name, pods in nominator.nominated().items() for pod in pods}
