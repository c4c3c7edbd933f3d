"""Candidate: leader election in which the API server chooses the holder of the lease.

Mirrors NewCandidate and tryCoordinatedRenew of k8s.io/client-go/tools/leaderelection; feature gate
CoordinatedLeaderElection. Each replica announces itself with a LeaseCandidate and answers its pings. A controller of
the API server writes a candidate into the Lease, by default the one with the oldest emulated version. The holder renews
the lease, until it has a preferred holder: then the term ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

import msgspec

from ..clock import Clock, rfc3339
from ..errors import ApiError, NotFoundError
from .leader import LeaderElector, LeaseSender
from .reflector import Chunks
from .retry_backoff import Backoff

STRATEGY = "OldestEmulationVersion"
API_VERSION = "coordination.k8s.io/v1beta1"
RENEW_S = 300
"""Interval in which a candidate is renewed without a ping."""
SILENCE_S = 30.0
FIRST_WAIT_S, MAX_WAIT_S = 1.0, 5.0

Tree = dict[str, Any]
log = logging.getLogger(__name__)


class CoordinatedElector(LeaderElector):
    """Waits until the lease is given to `identity`, and renews it."""

    async def _try(self) -> bool:
        try:
            await self._read()
        except NotFoundError:
            return False  # until there are candidates
        if self.leader != self.identity:
            self.end_term()
            return False
        if not self._is_valid():
            return False
        if self._seen_spec.get("preferredHolder"):
            log.info("the term of the lease %s ends", self._lock.name)
            return False
        self._slow_renewals += 1
        return await self._update()


class CandidateConnection(LeaseSender, Protocol):
    """The required part of a `Connection`."""

    def stream(
        self, path: str, query: Mapping[str, str | int], silence_s: float
    ) -> AbstractAsyncContextManager[Chunks]:
        """The body of the response as a stream."""


class CandidateSpec(NamedTuple):
    """The lease and the name of a candidate, and the versions by which it is chosen."""

    namespace: str
    lease: str
    identity: str
    binary_version: str
    emulation_version: str


class LeaseCandidate:
    """The LeaseCandidate of this process."""

    def __init__(self, connection: CandidateConnection, spec: CandidateSpec, clock: Clock) -> None:
        self._connection = connection
        self._spec = spec
        self._clock = clock
        self._path = f"/apis/{API_VERSION}/namespaces/{spec.namespace}/leasecandidates"

    async def run(self) -> None:
        """Announce the candidate, and renew it when it is pinged and every few minutes; never returns."""
        backoff = Backoff(FIRST_WAIT_S, MAX_WAIT_S)
        while True:
            try:
                candidate = await self._renew()
                backoff.reset()
                await self._wait_for_ping(candidate)
            except (ApiError, TimeoutError) as error:
                problem = str(error) or "no answer in time"
                log.warning("unable to renew the lease candidate: %s", problem)
                await asyncio.sleep(backoff.next_s())

    async def _renew(self) -> Tree:
        """Create the candidate, or write that it is alive."""
        own, now = f"{self._path}/{self._spec.identity}", rfc3339(self._clock.now(), "microseconds")
        try:
            candidate = await self._connection.get(own)
        except NotFoundError:
            return await self._connection.send("POST", self._path, self._new(now))
        spec = {**(candidate.get("spec") or {}), "renewTime": now}
        return await self._connection.send("PUT", own, {**candidate, "spec": spec})

    def _new(self, now: str) -> Tree:
        spec = self._spec
        return {
            "apiVersion": API_VERSION,
            "kind": "LeaseCandidate",
            "metadata": {"namespace": spec.namespace, "name": spec.identity},
            "spec": {
                "leaseName": spec.lease,
                "binaryVersion": spec.binary_version,
                "emulationVersion": spec.emulation_version,
                "strategy": STRATEGY,
                "renewTime": now,
            },
        }

    async def _wait_for_ping(self, candidate: Tree) -> None:
        """Return when the candidate is to be renewed: it was pinged or deleted, or the watch has ended."""
        query: dict[str, str | int] = {
            "watch": 1,
            "fieldSelector": f"metadata.name={self._spec.identity}",
            "resourceVersion": candidate["metadata"]["resourceVersion"],
            "timeoutSeconds": RENEW_S,
        }
        rest = b""
        async with self._connection.stream(self._path, query, RENEW_S + SILENCE_S) as body:
            async for chunk in body.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                if any(map(_asks_for_renewal, lines)):
                    return


def _asks_for_renewal(line: bytes) -> bool:
    """Whether an event of the watch is a ping, or something that ends the watch."""
    if not line.strip():
        return False
    event = msgspec.json.decode(line)
    if event["type"] != "MODIFIED" and event["type"] != "ADDED":
        return True
    spec = event["object"].get("spec") or {}
    # Both have the same format, so they are compared as text.
    return (spec.get("pingTime") or "") > (spec.get("renewTime") or "")
