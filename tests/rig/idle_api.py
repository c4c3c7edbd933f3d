"""Idle API: fixtures of an API server in the process whose pods do not run, for a conftest to take over."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.apiserver.server import make_kubeconfig
from tests.rig.api_server import ServerInThread, api_server


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    """A server whose pods do not run, without nodes."""
    with api_server(runs_pods=False) as server:
        yield server


@pytest.fixture
def kubeconfig(api: ServerInThread, tmp_path: Path) -> Path:
    """A kubeconfig for the server."""
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(make_kubeconfig(api.server.url)))
    return path
