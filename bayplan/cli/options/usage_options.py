"""Usage options: where the measured use of pods comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .cluster_options import chosen_cluster
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
