"""Conftest: a server with RBAC for every test that needs one."""

from collections.abc import Iterator

import pytest

from tests.rig.api_server import ServerInThread, api_server

from .rig import GuardedApi, guarded_api


@pytest.fixture
def guarded() -> Iterator[GuardedApi]:
    with guarded_api() as api:
        yield api


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    with api_server() as server:
        yield server
