"""Stages: plays the annotations and PodStages of a pod: creating, pulling, unready, ending, restarting.

The order of stages and their timers are the same in simulations and in `bayplan up`; a sink writes the states of the
pod. Restarts back off as by a kubelet: the first is immediate, the next ones after 10 s, doubled up to 5 min; a run of
10 min makes the next restart immediate again (pkg/kubelet/kuberuntime, doBackOff).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from ...api.pod import Pod
from ...api.pod_stages import PLAIN, PodStages, StageRule, stages_of
from ..objects.object_index import ControllerCluster, Later

FIRST_BACKOFF_S, MAX_BACKOFF_S = 10.0, 300.0
STEADY_S = 2 * MAX_BACKOFF_S
PULL_ATTEMPT_S = 2.0
"""Seconds for which a failed attempt to pull an image is shown, before the back-off is."""


class StageSink:
    """Writes the states of pods on their nodes; by default nothing."""

    def create_containers(self, pod: Pod) -> None:
        """Write that the containers are being created."""

    def fail_to_pull(self, pod: Pod, image: str) -> None:
        """Write that an attempt to pull an image has failed."""

    def wait_to_pull(self, pod: Pod, image: str) -> None:
        """Write that the next attempt to pull an image waits."""

    def run(self, pod: Pod, is_ready: bool, restarts: int) -> None:
        """Write that the containers run, after `restarts` restarts."""

    def make_ready(self, pod: Pod) -> None:
        """Write that the running pod is ready."""

    def crash(self, pod: Pod, exit_code: int, wait_s: float) -> None:
        """Write that the containers have ended and are started again in `wait_s`."""

    def end(self, pod: Pod, exit_code: int) -> None:
        """Write that the containers have ended and are not restarted."""

    def remove(self, pod: Pod) -> None:
        """Remove a terminating pod that has ended."""

    def refuse(self, pod: Pod, annotation: str, fault: str) -> None:
        """Report an invalid annotation of the pod, which is ignored."""


class StagePlayer:
    """Plays the stages of pods, through `sink`. After `max_restarts` containers do not change."""

    def __init__(
        self,
        sink: StageSink,
        cluster: ControllerCluster,
        timers: Later,
        rules: Sequence[StageRule] = (),
        max_restarts: float = math.inf,
    ) -> None:
        self._sink = sink
        self._cluster = cluster
        self._timers = timers
        self._rules = tuple(rules)
        self._max_restarts = max_restarts

    @property
    def has_rules(self) -> bool:
        """Whether pods without annotations may have stages."""
        return bool(self._rules)

    def of(self, pod: Pod) -> PodStages | None:
        """The stages of the pod; None if it runs at once and does not end."""
        if not pod.annotations and not self._rules:
            return None
        selecting = (r.stages for r in self._rules if r.selects(pod.namespace, pod.labels))
        base = next(selecting, PLAIN)
        stages, faults = stages_of(pod.annotations, base)
        for name, fault in faults:
            self._sink.refuse(pod, name, fault)
        return None if stages == PLAIN else stages

    def start(self, pod: Pod, stages: PodStages) -> None:
        """Begin with a pod that was just bound."""
        if stages.start_delay_s:
            self._sink.create_containers(pod)
            self._after(stages.start_delay_s, pod, partial(self._pull, stages=stages))
        else:
            self._pull(pod, stages)

    def expect(
        self, pod: Pod, stages: PodStages, restarts: int = 0, elapsed_s: float = 0.0
    ) -> None:
        """Set the timers of a run that began `elapsed_s` ago."""
        duration_s = stages.duration_s
        if stages.ready_after_s and stages.ready_after_s < (duration_s or math.inf):
            left_s = max(stages.ready_after_s - elapsed_s, 0)
            self._after(left_s, pod, self._make_ready)
        if duration_s is not None:
            end = partial(self._end, stages=stages, restarts=restarts)
            self._after(max(duration_s - elapsed_s, 0), pod, end)

    def expect_restart(
        self, pod: Pod, stages: PodStages, restarts: int, elapsed_s: float = 0.0
    ) -> None:
        """Set the timer of the next start of containers that ended `elapsed_s` ago."""
        wait_s = max(backoff_s(restarts, 0) - elapsed_s, 0)
        self._after(wait_s, pod, partial(self._restart, stages=stages, restarts=restarts + 1))

    # The stages

    def _pull(self, pod: Pod, stages: PodStages) -> None:
        if not stages.image_pull_s:
            self._run(pod, stages)
            return
        image = pod.spec.containers[0].image if pod.spec.containers else ""
        self._sink.fail_to_pull(pod, image)
        if stages.image_pull_s > PULL_ATTEMPT_S:
            self._after(PULL_ATTEMPT_S, pod, partial(self._sink.wait_to_pull, image=image))
        if stages.image_pull_s < math.inf:
            self._after(stages.image_pull_s, pod, partial(self._run, stages=stages))

    def _run(self, pod: Pod, stages: PodStages, restarts: int = 0) -> None:
        self._sink.run(pod, not stages.ready_after_s, restarts)
        self.expect(pod, stages, restarts)

    def _make_ready(self, pod: Pod) -> None:
        if not pod.is_terminating:
            self._sink.make_ready(pod)

    def _end(self, pod: Pod, stages: PodStages, restarts: int) -> None:
        exit_code, policy = stages.exit_code, pod.spec.restart_policy
        if pod.is_terminating:
            self._sink.remove(pod)  # its duration ended before its grace period
        elif exit_code is None or policy == "Never" or (policy == "OnFailure" and exit_code == 0):
            self._sink.end(pod, exit_code or 0)
        else:
            wait_s = backoff_s(restarts, stages.duration_s or 0)
            is_last = restarts >= self._max_restarts
            if wait_s or not is_last:
                self._sink.crash(pod, exit_code, wait_s)
            if not is_last:
                again = partial(self._restart, stages=stages, restarts=restarts + 1)
                self._after(wait_s, pod, again)

    def _restart(self, pod: Pod, stages: PodStages, restarts: int) -> None:
        if not pod.is_terminating:
            self._run(pod, stages, restarts)

    def _after(self, seconds: float, pod: Pod, action: Callable[[Pod], None]) -> None:
        """Call `action` with the state of the pod at that time, unless the pod was deleted or has finished."""

        def act() -> None:
            stored: Pod | None = self._cluster.get("Pod", pod.namespace, pod.name)
            if stored is not None and stored.uid == pod.uid and not stored.is_finished:
                action(stored)

        self._timers.after(seconds, act)


def backoff_s(restarts: int, ran_s: float) -> float:
    """Seconds that containers wait before a restart, by the number of restarts and the length of the last run."""
    if not restarts or ran_s >= STEADY_S:
        return 0.0
    return float(min(FIRST_BACKOFF_S * 2 ** min(restarts - 1, 10), MAX_BACKOFF_S))
