"""Stages: plays what annotations and PodStages say of a pod: creating, pulling, unready, ending, restarting.

A stage is a status that is written and a timer that ends it. Restarts back off as by a kubelet: the
first is immediate, the next ones after 10 s, doubled up to 5 min; a run of 10 min makes the next
restart immediate again (pkg/kubelet/kuberuntime, doBackOff).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from ....api.pod import Pod
from ....api.pod_stages import PLAIN, PREFIX, PodStages, StageRule, rule_for, stages_of
from ...objects import Later
from ..registry.registry import ObjectRegistry
from . import pod_statuses
from .cluster import LiveCluster
from .kubelet_events import KubeletEvents

Tree = dict[str, Any]

FIRST_BACKOFF_S, MAX_BACKOFF_S = 10.0, 300.0
STEADY_S = 2 * MAX_BACKOFF_S
PULL_ATTEMPT_S = 2.0
"""How long a failed attempt to pull an image is shown, before the back-off is."""


class StatusSink(Protocol):
    """Writes what became of pods."""

    def write(self, pod: Pod, edit: Callable[[Tree, str], Tree]) -> Tree | None:
        """Write the status of a pod."""

    def remove(self, pod: Pod) -> None:
        """Remove a terminating pod."""


class StagePlayer:
    """Plays the stages of pods, through `sink`."""

    def __init__(
        self,
        sink: StatusSink,
        cluster: LiveCluster,
        events: KubeletEvents,
        registry: ObjectRegistry,
        timers: Later,
        rules: Sequence[StageRule],
    ) -> None:
        self._sink = sink
        self._cluster = cluster
        self._events = events
        self._registry = registry
        self._timers = timers
        self._rules = tuple(rules)

    def of(self, pod: Pod) -> PodStages | None:
        """The stages of the pod; None when it runs at once and for ever. Wrong annotations become events."""
        base = rule_for(self._rules, pod.namespace, pod.labels) if self._rules else PLAIN
        stages, faults = stages_of(pod.annotations, base)
        for name, fault in faults:
            self._events.warn(pod, "InvalidAnnotation", f"metadata.annotations[{name}]: {fault}")
        return None if stages == PLAIN else stages

    def start(self, pod: Pod, stages: PodStages) -> None:
        """Begin with a pod that was just bound."""
        if stages.start_delay_s:
            self._sink.write(pod, pod_statuses.creating)
            self._after(stages.start_delay_s, pod, partial(self._pull, stages=stages))
        else:
            self._pull(pod, stages)

    def resume(self, pod: Pod, stages: PodStages) -> None:
        """Go on with a pod that ran before the server was started again."""
        record = self._registry.store.get("pods", (pod.namespace, pod.name))
        if record is None:
            return
        tree = record.decode()
        started, stopped = pod_statuses.times(tree)
        if started:
            self._expect(pod, stages, pod_statuses.restarts(tree), self._since_s(started))
        elif stopped:
            wait_s = backoff_s(pod_statuses.restarts(tree), 0) - self._since_s(stopped)
            self._after(max(wait_s, 0), pod, partial(self._restart, stages=stages))

    # The stages

    def _pull(self, pod: Pod, stages: PodStages) -> None:
        if not stages.image_pull_s:
            self._run(pod, stages)
            return
        image = pod.spec.containers[0].image if pod.spec.containers else ""
        note = f"{PREFIX}image-pull-error"
        failed = {"reason": "ErrImagePull", "message": f'failed to pull image "{image}": {note}'}
        self._sink.write(pod, lambda tree, now: pod_statuses.waiting(tree, failed, now))
        self._events.not_pulled(pod, image, note)
        if stages.image_pull_s > PULL_ATTEMPT_S:
            self._after(PULL_ATTEMPT_S, pod, partial(self._back_off, image=image))
        if stages.image_pull_s < math.inf:
            self._after(stages.image_pull_s, pod, partial(self._run, stages=stages))

    def _back_off(self, pod: Pod, image: str) -> None:
        waits = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
        self._sink.write(pod, lambda tree, now: pod_statuses.waiting(tree, waits, now))
        self._events.waits_to_pull(pod, image)

    def _run(self, pod: Pod, stages: PodStages) -> None:
        is_ready = not stages.ready_after_s
        self._sink.write(pod, lambda tree, now: pod_statuses.running(tree, now, is_ready))
        self._events.starting(pod)
        self._expect(pod, stages, 0, 0.0)

    def _expect(self, pod: Pod, stages: PodStages, run: int, elapsed_s: float) -> None:
        """Set the timers of a run, the first of which is 0, that began `elapsed_s` ago."""
        if stages.ready_after_s:
            if not elapsed_s:
                self._events.unhealthy(pod, f"{PREFIX}ready-after")
            left_s = max(stages.ready_after_s - elapsed_s, 0)
            self._after(left_s, pod, partial(self._be_ready, run=run))
        if stages.duration_s is not None:
            left_s = max(stages.duration_s - elapsed_s, 0)
            self._after(left_s, pod, partial(self._end, stages=stages))

    def _be_ready(self, pod: Pod, run: int) -> None:
        def edit(tree: Tree, now: str) -> Tree:
            runs = bool(pod_statuses.times(tree)[0]) and pod_statuses.restarts(tree) == run
            return pod_statuses.ready(tree, now) if runs else tree

        if not pod.is_terminating:
            self._sink.write(pod, edit)

    def _end(self, pod: Pod, stages: PodStages) -> None:
        if pod.is_terminating:
            self._sink.remove(pod)  # its duration ended before its grace period
            return
        tree = self._sink.write(pod, partial(_over, exit_code=stages.exit_code))
        if tree is None or (tree.get("status") or {}).get("phase") != "Running":
            return
        wait_s = backoff_s(pod_statuses.restarts(tree), stages.duration_s or 0)
        if wait_s:
            self._events.waits_to_restart(pod)
        self._after(wait_s, pod, partial(self._restart, stages=stages))

    def _restart(self, pod: Pod, stages: PodStages) -> None:
        if pod.is_terminating:
            return
        is_ready = not stages.ready_after_s
        tree = self._sink.write(pod, lambda tree, now: pod_statuses.restarted(tree, now, is_ready))
        if tree is not None:
            self._events.starting(pod)
            self._expect(pod, stages, pod_statuses.restarts(tree), 0.0)

    # Time

    def _after(self, seconds: float, pod: Pod, action: Callable[[Pod], None]) -> None:
        """Call `action` with the pod as it is then, unless it is gone or finished."""

        def act() -> None:
            stored: Pod | None = self._cluster.get("Pod", pod.namespace, pod.name)
            if stored is not None and stored.uid == pod.uid and not stored.is_finished:
                action(stored)

        self._timers.after(seconds, act)

    def _since_s(self, text: str) -> float:
        passed = self._registry.clock.now() - datetime.fromisoformat(text)
        return max(passed.total_seconds(), 0)


def _over(tree: Tree, now: str, exit_code: int | None) -> Tree:
    """The pod after its containers ended: finished, or about to be started again."""
    policy = tree["spec"].get("restartPolicy") or "Always"
    is_over = exit_code is None or policy == "Never" or (policy == "OnFailure" and not exit_code)
    return (pod_statuses.ended if is_over else pod_statuses.crashed)(tree, exit_code or 0, now)


def backoff_s(restarts: int, ran_s: float) -> float:
    """How long containers wait that were started again so often before, and ran for so long."""
    if not restarts or ran_s >= STEADY_S:
        return 0.0
    return float(min(FIRST_BACKOFF_S * 2 ** min(restarts - 1, 10), MAX_BACKOFF_S))
