"""Conftest: the servers of the end-to-end tests: the embedded one, and a real one where it is installed.

Tests that use `server` or `cluster` run once with each. Without the binaries the real half is skipped, which the
summary at the end reports.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.live.cluster import ClusterUnderTest, Server
from tests.rig.live.control_plane import (
    DEVICE_GATES,
    POD_GROUP_GATES,
    LiveControlPlane,
    need_assets,
)
from tests.rig.live.embedded import EmbeddedServer

SERVERS = ("embedded", "kube-apiserver")


@pytest.fixture(scope="session", params=SERVERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    yield from _running(request.param, tmp_path_factory)


@pytest.fixture
def cluster(server: Server, tmp_path: Path) -> Iterator[ClusterUnderTest]:
    made = ClusterUnderTest(server, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session", params=SERVERS)
def group_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with pod groups; its schedulers get the same feature gates."""
    yield from _running(request.param, tmp_path_factory, POD_GROUP_GATES)


@pytest.fixture
def group_cluster(group_server: Server, tmp_path: Path) -> Iterator[ClusterUnderTest]:
    made = ClusterUnderTest(group_server, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session", params=SERVERS)
def device_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with the gates of device allocation; its schedulers get the same."""
    yield from _running(request.param, tmp_path_factory, DEVICE_GATES)


@pytest.fixture
def device_cluster(device_server: Server, tmp_path: Path) -> Iterator[ClusterUnderTest]:
    made = ClusterUnderTest(device_server, tmp_path)
    yield made
    made.close()


def _running(
    name: str, folders: pytest.TempPathFactory, gates: tuple[str, ...] = ()
) -> Iterator[Server]:
    if name == "kube-apiserver":
        need_assets()
    folder = folders.mktemp(name)
    running: Server = (
        EmbeddedServer(folder, gates, ["--authorization=rbac"])
        if name == "embedded"
        else LiveControlPlane(folder, gates=gates)
    )
    yield running
    running.stop()
