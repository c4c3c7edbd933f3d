"""Cluster options: the options that select a live cluster and the measured use of its pods, and their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .option_groups import option

if TYPE_CHECKING:
    from ...kube.connection import Connection
    from ...manifests.measured_use import MeasuredUse
    from ...web.live import ReadUse, UseByPod

LIVE = "live"
USAGE = option(
    "--usage FILE",
    "Measured use of pods, shown beside their requests: the JSON of a Prometheus query ([cpu=]FILE), a "
    "PodMetricsList, CSV, or live for metrics.k8s.io of the cluster. May be given several times.",
)


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


def read_measured(
    usage: Sequence[str] | None, kubeconfig: Path | None = None, context: str | None = None
) -> MeasuredUse | None:
    """The use that the options name; None without any."""
    if not usage:
        return None
    use, is_live = _read_files(usage)
    if is_live:
        from ...kube.live_cluster import read_live_metrics
        from ...manifests.measured_use import add_document

        server, tree = read_live_metrics(*chosen_cluster(kubeconfig, context))
        add_document(use, tree, server)
    return use


def _read_files(usage: Sequence[str]) -> tuple[MeasuredUse, bool]:
    """The use in files, and whether that of the cluster is wanted, too."""
    from ...manifests.measured_use import MeasuredUse, read_use

    files = [text for text in usage if text != LIVE]
    return read_use(files) if files else MeasuredUse(), len(files) < len(usage)


def page_use(usage: Sequence[str], connection: Connection | None = None) -> ReadUse | None:
    """Reads the use for a live page; None without an option. Files are read at once, the cluster's use again and again.

    Raises InputError for wrong files, and for `live` without a connection.
    """
    if not usage:
        return None
    from ...errors import InputError
    from ...manifests.measured_use import MeasuredUse, add_document

    found, is_live = _read_files(usage)
    of_files = found.by_pod()
    if is_live and connection is None:
        raise InputError(
            f"--usage: expected a file; got {LIVE}: nothing runs here, and nothing is measured"
        )

    async def read() -> UseByPod:
        if not is_live or connection is None:
            return of_files
        from ...kube.live_cluster import read_metrics

        use = MeasuredUse()
        add_document(use, await read_metrics(connection), connection.server)
        return {**of_files, **use.by_pod()}

    return read
