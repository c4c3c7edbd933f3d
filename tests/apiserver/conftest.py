"""Conftest: a running API server for every test that needs one."""

from collections.abc import Iterator

import pytest

from tests.rig.api_server import ServerInThread, api_server


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    with api_server() as server:
        yield server
