"""Fixtures for the tests of drivers: an API server in a thread, and the driver of `run` on it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from bayplan.config.defaults import default_config
from bayplan.drivers.kube_driver import DriverOptions, KubeDriver
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from tests.rig.api_server import ServerInThread, api_server

from .driven_server import DEADLINE_S, Work


@pytest.fixture
def server() -> Iterator[ServerInThread]:
    with api_server(runs_pods=False) as server:
        yield server


@pytest.fixture
def drive(server: ServerInThread, tmp_path: Path) -> Callable[..., None]:
    """Runs a driver on the server while some work is done."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(make_kubeconfig(server.server.url)))

    def run(work: Work, leads: bool = True, options: DriverOptions | None = None) -> None:
        async def go() -> None:
            connection = Connection(await load_credentials(path))
            driver = KubeDriver(connection, default_config(), options)
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await driver.start()
                    if leads:
                        driver.lead()
                    await driver.unless_it_fails(_as_coroutine(work(driver)))
            finally:
                await driver.stop()
                await connection.close()

        asyncio.run(go())

    return run


async def _as_coroutine(answer: Awaitable[None]) -> None:
    await answer
