"""Live metrics: the current use of the pods of a live cluster, from metrics.k8s.io."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import ApiError, InputError
from .live_cluster import NOT_FOUND, connected, run_to_end

PATH = "/apis/metrics.k8s.io/v1beta1/pods"


def read_live_metrics(
    kubeconfig: str | Path | None = None, context: str | None = None
) -> tuple[str, Any]:
    """The address of the server, and its PodMetricsList.

    Raises InputError when the server has no metrics, ApiError when it is unreachable or denies access.
    """

    async def read() -> tuple[str, Any]:
        async with connected(kubeconfig, context) as connection:
            try:
                return connection.server, await connection.get(PATH)
            except ApiError as error:
                if error.code == NOT_FOUND:
                    raise InputError(
                        f"--usage live: expected metrics.k8s.io, as metrics-server has it, at {connection.server}; "
                        "got none"
                    ) from None
                raise

    return run_to_end(read())
