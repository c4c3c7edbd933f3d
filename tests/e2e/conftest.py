"""Conftest: the servers of the end-to-end tests: the embedded one, and a real one where it is installed.

Tests that use `server` or `cluster` run once with each. Without the binaries the real half is
skipped, and the summary at the end says so.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.testing.live.cluster import ClusterUnderTest, Server
from bayplan.testing.live.control_plane import LiveControlPlane, assets_folder, missing_assets
from bayplan.testing.live.embedded import EmbeddedServer

SERVERS = {"embedded": EmbeddedServer, "kube-apiserver": LiveControlPlane}
NOT_RUN = "NOT RUN against a real kube-apiserver"


@pytest.fixture(scope="session", params=list(SERVERS))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    if request.param == "kube-apiserver" and missing_assets():
        missing = ", ".join(missing_assets())
        pytest.skip(f"{NOT_RUN}: no {missing} in {assets_folder()}")
    running: Server = SERVERS[request.param](tmp_path_factory.mktemp(request.param))
    yield running
    running.stop()


@pytest.fixture
def cluster(server: Server, tmp_path: Path) -> Iterator[ClusterUnderTest]:
    made = ClusterUnderTest(server, tmp_path)
    yield made
    made.close()
