"""Kubelet events: the events that fake kubelets write about pods.

Warnings are always written. Normal events, about pods that start or stop, are written about a few pods a second only,
as a kubelet's eventRecordQPS does: starting ten thousand pods costs no more.
"""

from __future__ import annotations

from ...api.pod import Pod
from ...clock import Clock
from .embedded_cluster import LiveCluster
from .recorder import Reporter

BURST, PER_S = 50.0, 5.0
"""Pods about which normal events are written at once, and per second."""


class KubeletEvents:
    """Writes the events of kubelets."""

    def __init__(self, cluster: LiveCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._tokens = BURST
        self._since_s = clock.monotonic()

    def starting(self, pod: Pod) -> None:
        """The containers of the pod are started, from images that the node has."""
        if not self._may_tell():
            return
        for container in pod.spec.init_containers or ():
            self._start(pod, container.name, container.image, "initContainers")
        for container in pod.spec.containers or ():
            self._start(pod, container.name, container.image, "containers")

    def stopping(self, pod: Pod) -> None:
        """The containers of a running pod are stopped."""
        if pod.status.phase != "Running" or not self._may_tell():
            return
        for container in pod.spec.containers or ():
            text = f"Stopping container {container.name}"
            self._tell(pod, "Killing", text, f"spec.containers{{{container.name}}}")

    def not_pulled(self, pod: Pod, image: str, why: str) -> None:
        """An attempt to pull an image has failed."""
        path = self._first(pod)
        self._tell(pod, "Pulling", f'Pulling image "{image}"', path)
        self.warn(pod, "Failed", f'Failed to pull image "{image}": {why}', path)
        self.warn(pod, "Failed", "Error: ErrImagePull", path)

    def waits_to_pull(self, pod: Pod, image: str) -> None:
        """The next attempt to pull an image waits."""
        path = self._first(pod)
        self._tell(pod, "BackOff", f'Back-off pulling image "{image}"', path)
        self.warn(pod, "Failed", "Error: ImagePullBackOff", path)

    def waits_to_restart(self, pod: Pod) -> None:
        """Containers that ended wait for their next start."""
        place = f"{pod.name}_{pod.namespace}({pod.uid})"
        for container in pod.spec.containers or ():
            text = f"Back-off restarting failed container {container.name} in pod {place}"
            self.warn(pod, "BackOff", text, f"spec.containers{{{container.name}}}")

    def warn(self, pod: Pod, reason: str, message: str, field_path: str = "") -> None:
        """Something is wrong with the pod."""
        reporter = Reporter("kubelet", pod.node_name)
        self._cluster.tell(pod, reporter, ("Warning", reason), message, field_path)

    def unhealthy(self, pod: Pod, why: str) -> None:
        """The readiness probe of the pod's first container fails."""
        self.warn(pod, "Unhealthy", f"Readiness probe failed: {why}", self._first(pod))

    def _start(self, pod: Pod, name: str, image: str, kind: str) -> None:
        path = f"spec.{kind}{{{name}}}"
        present = "already present on machine and can be accessed by the pod"
        self._tell(pod, "Pulled", f'Container image "{image}" {present}', path)
        self._tell(pod, "Created", "Container created", path)
        self._tell(pod, "Started", "Container started", path)

    def _tell(self, pod: Pod, reason: str, message: str, field_path: str) -> None:
        reporter = Reporter("kubelet", pod.node_name)
        self._cluster.tell(pod, reporter, ("Normal", reason), message, field_path)

    def _may_tell(self) -> bool:
        now_s = self._clock.monotonic()
        self._tokens = min(self._tokens + (now_s - self._since_s) * PER_S, BURST)
        self._since_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _first(self, pod: Pod) -> str:
        containers = pod.spec.containers or ()
        return f"spec.containers{{{containers[0].name}}}" if containers else ""
