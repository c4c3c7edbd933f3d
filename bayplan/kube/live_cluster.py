"""Live cluster: read all objects of a live cluster that affect placement, or its use, once, without writing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..errors import ApiError, InputError

if TYPE_CHECKING:
    from .cluster_reader import OnKind
    from .connection import Connection

log = logging.getLogger(__name__)
Result = TypeVar("Result")
FORBIDDEN, NOT_FOUND = 403, 404
RETRY_S = 1.0
UNAVAILABLE = 503
PATH = "/apis/metrics.k8s.io/v1beta1/pods"


class LiveObjects(msgspec.Struct, frozen=True):
    """The objects, and their source."""

    server: str
    """The address of the API server."""
    objects: list[Any]
    context: str = ""
    """The name of the kubeconfig's context; empty for the service account of a pod."""
    namespace: str = "default"
    """The namespace that kubectl uses when none is given."""
    version: str = ""
    """The version of the API server, such as v1.36.4; empty if unknown."""


@asynccontextmanager
async def connected(
    kubeconfig: str | Path | None, context: str | None
) -> AsyncIterator[Connection]:
    """A connection for the duration of the `with`; None stands for the default kubeconfig, with its
    current context."""
    from .connection import Connection
    from .credentials import load_credentials

    connection = Connection(await load_credentials(kubeconfig, context))
    try:
        yield connection
    finally:
        await connection.close()


def read_live(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    namespace: str = "",
    on_kind: OnKind | None = None,
) -> LiveObjects:
    """Read the cluster once. With a `namespace`, only its objects and cluster-scoped ones.

    Raises InputError when credentials are missing, ApiError when the server is
    unreachable or denies access.
    """

    async def read() -> LiveObjects:
        from .cluster_reader import read_snapshot

        async with connected(kubeconfig, context) as connection:
            objects = await read_snapshot(connection, namespace, on_kind)
            known = connection.credentials
            version = await read_version(connection)
            return LiveObjects(connection.server, objects, known.context, known.namespace, version)

    return run_to_end(read())


async def read_version(connection: Connection, ended: asyncio.Event | None = None) -> str:
    """The version of the API server; empty if unknown. With `ended` the request is repeated until then or until it is
    answered.
    """
    while True:
        try:
            return str((await connection.get("/version")).get("gitVersion", ""))
        except ApiError as error:
            if ended is None or ended.is_set() or error.code in (FORBIDDEN, NOT_FOUND):
                return ""
            log.warning("/version: %s; asking again", error)
            await asyncio.sleep(RETRY_S)


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run it to its end; in a notebook, where a loop is running already, in a separate thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, work).result()


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
