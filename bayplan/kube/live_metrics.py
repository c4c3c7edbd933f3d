"""Live metrics: the current use of the pods of a live cluster, from metrics.k8s.io."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ApiError, InputError
from .live_cluster import NOT_FOUND, connected, run_to_end

if TYPE_CHECKING:
    from .connection import Connection

UNAVAILABLE = 503
PATH = "/apis/metrics.k8s.io/v1beta1/pods"


async def read_metrics(connection: Connection) -> Any:
    """The PodMetricsList of the server behind `connection`.

    Raises InputError when the server has no metrics, ApiError when it is unreachable or denies access.
    """
    expected = (
        f"--usage live: expected metrics.k8s.io, as metrics-server has it, at {connection.server}"
    )
    try:
        found = await connection.get(PATH)
    except ApiError as error:
        if error.code == NOT_FOUND:
            raise InputError(f"{expected}; got none") from None
        if error.code == UNAVAILABLE:
            raise InputError(f"{expected}; got no answer from metrics-server: {error}") from None
        raise
    if not found.get("items"):
        raise InputError(f"{expected}; got no pods: it may have measured none yet")
    return found


def read_live_metrics(
    kubeconfig: str | Path | None = None, context: str | None = None
) -> tuple[str, Any]:
    """The address of the server, and its PodMetricsList; errors as in `read_metrics`."""

    async def read() -> tuple[str, Any]:
        async with connected(kubeconfig, context) as connection:
            return connection.server, await read_metrics(connection)

    return run_to_end(read())
