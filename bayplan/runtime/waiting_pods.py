"""Waiting pods: pods that Permit plugins hold back until they are allowed, rejected, or time runs out.

Mirrors pkg/scheduler/framework/runtime/waiting_pods_map.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..api.pod import Pod
from ..api.text.durations import format_go_duration
from ..clock import Timer, Timers
from ..framework import SUCCESS, Code, Status, unschedulable

Decided = Callable[[Status], None]


class HeldPod:
    """One pod with its chosen node. The first decision counts; `decided` is called once."""

    def __init__(
        self, pod: Pod, timeouts_s: Mapping[str, float], timers: Timers, decided: Decided
    ) -> None:
        self.pod = pod
        self._decided: Decided | None = decided
        self._pending: dict[str, Timer] = {
            plugin: timers.after(timeout_s, self._expired(plugin, timeout_s))
            for plugin, timeout_s in timeouts_s.items()
        }

    @property
    def pending_plugins(self) -> list[str]:
        """The plugins that still hold the pod back."""
        return list(self._pending)

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of `plugin`; it continues when no plugin holds it."""
        timer = self._pending.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._pending:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Refuse the pod; returns whether that was the first decision."""
        return self._decide(Status(Code.Unschedulable, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Preempt the waiting pod, which is retried as after an error. Returns whether this was the first decision."""
        return self._decide(Status(Code.Error, (message,), plugin))

    def _expired(self, plugin: str, timeout_s: float) -> Callable[[], None]:
        def expire() -> None:
            waited = format_go_duration(timeout_s)
            text = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            self._decide(unschedulable(text).by(plugin))

        return expire

    def _decide(self, status: Status) -> bool:
        decided, self._decided = self._decided, None
        if decided is None:
            return False
        for timer in self._pending.values():
            timer.cancel()
        decided(status)
        return True


class HeldPods:
    """The waiting pods of all profiles, by uid, in the order in which they began to wait."""

    def __init__(self) -> None:
        self._pods: dict[str, HeldPod] = {}

    def add(self, waiting: HeldPod) -> None:
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def get(self, uid: str) -> HeldPod | None:
        """The waiting pod with this uid, or None."""
        return self._pods.get(uid)

    def reject(self, uid: str) -> bool:
        """Refuse the pod because it is gone; returns whether it was waiting."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", "removed")

    def __iter__(self) -> Iterator[HeldPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)
