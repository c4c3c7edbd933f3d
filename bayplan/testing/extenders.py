"""FakeExtender: a web service that is none: it answers from memory, as it is told, and notes what it is asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import ApiError

Answer: TypeAlias = Any
"""A value to be sent as JSON, bytes to be sent as they are, an exception to raise, or a function of the request that
makes one of these."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the URL, the decoded body, and how long the caller would have waited."""

    url: str
    args: Any
    timeout_s: float

    @property
    def verb(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]


class FakeExtender:
    """The transport of an extender, with its answers by verb; a verb it does not know is a 404.

    Give it to `build_scheduler(extender_transport=lambda config: fake)`.
    """

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = answers
        self.asked: list[Asked] = []

    def post(self, url: str, body: bytes, timeout_s: float) -> bytes:
        asked = Asked(url, json.loads(body), timeout_s)
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
        """What it was asked, in order."""
        return [asked.verb for asked in self.asked]
