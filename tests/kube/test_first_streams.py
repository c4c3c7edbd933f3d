"""First streams: the requests that `run` sends ahead are those that the reflectors take up."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bayplan.errors import ApiError
from bayplan.kube.first_streams import LARGE, first_stream
from bayplan.kube.reflector import Reflector
from bayplan.kube.watched_kinds import RESOURCES


class Refusing:
    """Records the streams that are requested, and refuses them."""

    def __init__(self) -> None:
        self.streams: list[tuple[str, list[tuple[str, str | int]]]] = []

    async def request(self, method: str, path: str, *, query: Mapping[str, str | int]) -> bytes:
        raise ApiError("refused")

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str | int], silence_s: float
    ) -> AsyncIterator[Any]:
        self.streams.append((path, list(query.items())))
        if self.streams:
            raise ApiError("refused")
        yield

    async def pause(self, seconds: float) -> None:
        """Goes on at once."""


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_the_first_request_of_a_reflector_is_the_one_that_is_sent_ahead(kind: str) -> None:
    resource, reader = RESOURCES[kind], Refusing()
    reflector = Reflector(resource, reader, lambda batch: None, from_cache=True)

    with pytest.raises(ApiError):
        asyncio.run(reflector.watch(is_initial=True))

    sent_ahead = (resource.path, list(first_stream(LARGE[resource.path]).items()))
    assert reader.streams == [sent_ahead]
