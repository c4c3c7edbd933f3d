"""Cluster options: the options that select a live cluster, and the defaults without them."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from .option_groups import option


@dataclass(frozen=True, slots=True)
class ClusterDefaults:
    """Defaults of a command without an option of its own."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    is_kubectl_plugin: bool = False
    """Names without a namespace are in that of the kubeconfig's context, as for kubectl."""


CLUSTER_DEFAULTS: ContextVar[ClusterDefaults] = ContextVar(
    "CLUSTER_DEFAULTS",
    default=ClusterDefaults(),  # noqa: B039  # it is frozen
)

KUBECONFIG = option(
    "--kubeconfig FILE",
    "How to reach the cluster. Default: KUBECONFIG, ~/.kube/config, or the service account of "
    "the pod it runs in.",
)
CONTEXT = option(
    "--context NAME", "Context of the kubeconfig to use. Default: its current context."
)
LIVE_KUBECONFIG = option(
    "--kubeconfig FILE",
    "Ask about the cluster of this kubeconfig, reading only. With -f: as if the files were applied to it. "
    "Default without -f: the cluster that kubectl would talk to.",
)
LIVE_CONTEXT = option(
    "--context NAME",
    "Ask about the cluster of this context of the kubeconfig. Default: its current context.",
)
NAMESPACE = option(
    "-n, --namespace NAME",
    "Namespace of what is named without one, and of manifests without one; simulate shows its pods only.",
)


def chosen_cluster(kubeconfig: Path | None, context: str | None) -> tuple[Path | None, str | None]:
    """The kubeconfig and the context that options name; those in front of the command hold for all."""
    defaults = CLUSTER_DEFAULTS.get()
    return kubeconfig or defaults.kubeconfig, context or defaults.context


def with_namespace(target: str, namespace: str | None) -> str:
    """`pod/web-7` as `pod/shop/web-7`; targets with a namespace of their own, or of other kinds, as they are."""
    from ...answers.pod_search import NAMESPACED
    from ...answers.references import find_kind

    kind, *rest = target.split("/")
    if not namespace or find_kind(kind) not in NAMESPACED or len(rest) != 1:
        return target
    return f"{kind}/{namespace}/{rest[0]}"
