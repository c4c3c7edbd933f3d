"""Clusters: the options that say which live cluster is meant, and the way to it."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError

if TYPE_CHECKING:
    from ..cluster.kube.connection import Connection

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


def need_packages() -> None:
    """InputError, with advice, when what talks to a cluster is not installed."""
    for package in ("aiohttp", "kubernetes_asyncio"):
        if importlib.util.find_spec(package) is None:
            problem = "expected it to be installed; got nothing. Try: pip install 'mooring[kube]'"
            raise InputError(f"{package}: {problem}")


@asynccontextmanager
async def connected(kubeconfig: Path | None, context: str | None) -> AsyncIterator[Connection]:
    """A connection for the time of the `with`."""
    from ..cluster.kube.connection import Connection
    from ..cluster.kube.credentials import load_credentials

    connection = Connection(await load_credentials(kubeconfig, context))
    try:
        yield connection
    finally:
        await connection.close()
