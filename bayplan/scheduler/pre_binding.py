"""PreBindingPods: the pods whose PreBind is under way, which can still be stopped."""

from __future__ import annotations

from ..framework.cancellation import Cancellation


class PreBindingPods:
    """The pods whose PreBind is under way; those can still be stopped."""

    def __init__(self) -> None:
        self._pods: dict[str, Cancellation] = {}

    def begin(self, uid: str) -> Cancellation:
        """PreBind begins; the result cancels its plugins when the pod is stopped."""
        cancellation = self._pods[uid] = Cancellation()
        return cancellation

    def cancel(self, uid: str, reason: str) -> bool:
        """Stop a pod before it is bound; False when it is not in PreBind, or past it."""
        cancellation = self._pods.get(uid)
        if cancellation is None:
            return False
        cancellation.set(reason)
        return True

    def finish(self, uid: str) -> None:
        """PreBind is over: the pod can no longer be stopped."""
        self._pods.pop(uid, None)
