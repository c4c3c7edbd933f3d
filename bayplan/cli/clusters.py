"""Clusters: the options that say which live cluster is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="How to reach the cluster. Default: KUBECONFIG, ~/.kube/config, or the service account of "
        "the pod it runs in.",
        show_default=False,
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which context of the kubeconfig. Default: its current one.",
        show_default=False,
    ),
]
LiveKubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Ask about a live cluster, reading only. With -f: as if the files were applied to it.",
        show_default=False,
    ),
]
LiveContextOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which context of the kubeconfig; without --kubeconfig, of the usual one.",
        show_default=False,
    ),
]
