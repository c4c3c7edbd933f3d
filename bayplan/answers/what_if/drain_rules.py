"""Drain rules: which pods kubectl drain evicts, and which ones make it refuse a node.

Mirrors staging/src/k8s.io/kubectl/pkg/drain/filters.go. A pod of a DaemonSet counts as one even if the input lacks the
DaemonSet, as a dump often does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...api.pod import Pod
from ..owners import is_bare, is_daemon, is_static, is_there

DAEMON_SETS = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
LOCAL_STORAGE = "Pods with local storage (use --delete-emptydir-data to override)"
UNMANAGED = "Pods that declare no controller (use --force to override)"


@dataclass(frozen=True, slots=True)
class DrainRules:
    """The flags of kubectl drain.

    Unlike there, pods of DaemonSets are ignored unless `ignore_daemonsets` is False; they stay in any case.
    """

    force: bool = False
    delete_emptydir_data: bool = False
    disable_eviction: bool = False
    ignore_daemonsets: bool = True

    def is_evicted(self, pod: Pod) -> bool:
        """Whether a drain removes the pod."""
        return not is_daemon(pod) and not is_static(pod)

    def refusals(self, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
        """The pods of a node that keep it from being drained, by kubectl's words."""
        found: dict[str, list[Pod]] = {}
        for pod in filter(is_there, pods):
            reason = self._refusal(pod)
            if reason:
                found.setdefault(reason, []).append(pod)
        return found

    def _refusal(self, pod: Pod) -> str:
        if is_daemon(pod):
            return DAEMON_SETS if not self.ignore_daemonsets else ""
        if is_static(pod):
            return ""
        if has_local_storage(pod) and not self.delete_emptydir_data:
            return LOCAL_STORAGE
        return UNMANAGED if is_bare(pod) and not self.force else ""


def has_local_storage(pod: Pod) -> bool:
    """Whether the pod has an emptyDir, which is deleted with it."""
    return any(volume.empty_dir is not None for volume in pod.spec.volumes or ())


def refusal_text(node_name: str, refusals: Mapping[str, Iterable[Pod]]) -> str:
    """The line that kubectl prints about a node that it does not drain."""
    errors = [
        f"cannot delete {reason}: {', '.join(pod.key for pod in pods)}"
        for reason, pods in refusals.items()
    ]
    listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return f'unable to drain node "{node_name}" due to error: {listed}'
