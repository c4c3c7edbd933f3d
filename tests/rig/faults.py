"""Faults: which share of the requests to an API server meets which fault, as data, chosen by a seed.

The fault proxy (`testing/live`) injects them into the traffic of a real API server, the simulated API server
(`testing/simulated`) into its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """Shares of the requests, between 0 and 1, that meet a fault; at most one each."""

    seed: int = 0
    refused: float = 0.0
    """Answered with one of `statuses`; the API server does not get them."""
    statuses: tuple[int, ...] = (500, 503, 429)
    retry_after: float = 0.0
    """The share of the refusals with a Retry-After header."""
    retry_after_s: int = 1
    delayed: float = 0.0
    """Handed on after up to `delay_s`."""
    delay_s: float = 1.0
    cut: float = 0.0
    """The connection is closed; the API server does not get the request."""
    lost: float = 0.0
    """The API server gets the request and the connection is closed before the response."""
    torn: float = 0.0
    """The API server gets the request and the connection is closed in the middle of the response."""
    watch_cut: float = 0.0
    """Watches whose connection is closed within `watch_s`."""
    watch_stalled: float = 0.0
    """Watches that deliver nothing for `stall_s`, and are closed then."""
    stall_s: float = 5.0
    watch_expired: float = 0.0
    """Watches that end with the error 410 Gone."""
    watch_s: float = 3.0

    def of_request(self, number: int, is_watch: bool) -> tuple[str, random.Random]:
        """The fault of a request, "" for none, and the generator for its details."""
        dice = random.Random(f"{self.seed}/{number}")
        kinds = ["watch_cut", "watch_stalled", "watch_expired"] if is_watch else ["torn"]
        kinds += ["refused", "delayed", "cut", "lost"]
        weights = [getattr(self, kind) for kind in kinds]
        rest = max(0.0, 1 - sum(weights))
        (kind,) = dice.choices([*kinds, ""], [*weights, rest])
        return kind, dice

    def refusal(self, dice: random.Random) -> tuple[int, int]:
        """The status of a refusal and its Retry-After in seconds, 0 for none."""
        status = dice.choice(self.statuses)
        return status, self.retry_after_s if dice.random() < self.retry_after else 0
