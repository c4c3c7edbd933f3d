"""Usage options: where the measured use of pods comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .cluster_options import chosen_cluster

if TYPE_CHECKING:
    from ...manifests.measured_use import MeasuredUse

LIVE = "live"
UsageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--usage",
        metavar="FILE",
        help="Measured use of pods, shown beside their requests: the JSON of a Prometheus query ([cpu=]FILE), a "
        "PodMetricsList, CSV, or live for metrics.k8s.io of the cluster. May be given several times.",
        show_default=False,
    ),
]


def read_measured(
    usage: Sequence[str] | None, kubeconfig: Path | None = None, context: str | None = None
) -> MeasuredUse | None:
    """The use that the options name; None without any."""
    if not usage:
        return None
    from ...manifests.measured_use import MeasuredUse, add_document, read_use

    files = [text for text in usage if text != LIVE]
    if len(files) == len(usage):
        return read_use(files)
    from ...kube.live_metrics import read_live_metrics

    use = read_use(files) if files else MeasuredUse()
    server, tree = read_live_metrics(*chosen_cluster(kubeconfig, context))
    add_document(use, tree, server)
    return use
