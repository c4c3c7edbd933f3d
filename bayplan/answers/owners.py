"""Owners: whether an evicted pod is recreated."""

from __future__ import annotations

from ..api.pod import Pod
from ..cluster.memory import is_daemon, is_static, successor_of

__all__ = ["is_bare", "is_daemon", "is_static", "is_there", "successor_of"]


def is_bare(pod: Pod) -> bool:
    """Whether no controller would recreate the pod."""
    return pod.controller is None


def is_there(pod: Pod) -> bool:
    """Whether the pod is neither finished nor terminating."""
    return not pod.is_finished and not pod.is_terminating
