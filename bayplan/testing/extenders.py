"""FakeExtender: an in-memory extender with given responses that records its requests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import ApiError

Answer: TypeAlias = Any
"""A value to be sent as JSON, bytes to be sent unchanged, an exception to raise, or a function of
the request that returns one of these."""


@dataclass(frozen=True, slots=True)
class ExtenderRequest:
    """One request: the URL, the decoded body, and its timeout."""

    url: str
    args: Any
    timeout_s: float

    @property
    def verb(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]


class FakeExtender:
    """The transport of an extender, with its responses by verb; an unknown verb is a 404.

    Pass it to `build_scheduler(extender_transport=lambda config: fake)`.
    """

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = answers
        self.asked: list[ExtenderRequest] = []

    def post(self, url: str, body: bytes, timeout_s: float) -> bytes:
        asked = ExtenderRequest(url, json.loads(body), timeout_s)
        self.asked.append(asked)
        if asked.verb not in self.answers:
            raise ApiError(f'Post "{url}": code 404', 404)
        answer = self.answers[asked.verb]
        if callable(answer):
            answer = answer(asked.args)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def verbs(self) -> list[str]:
        """The requests, in order."""
        return [asked.verb for asked in self.asked]
