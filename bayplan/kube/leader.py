"""Leader: leader election between schedulers by a Lease.

Mirrors k8s.io/client-go/tools/leaderelection. Another's lease has expired when, by our own clock,
it has not changed for its duration: clocks of different machines are never compared. Difference to
upstream: the leader checks `is_leading` before each write, which is false as soon as the lease may
have passed to another, even while the renewal is still being tried.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from ..clock import Clock, rfc3339
from ..errors import ApiError, BayplanError, NotFoundError
from ..observe.families import Family, ReadCounter, ReadGauge
from .reflector import Chunks
from .retry_backoff import Backoff

JITTER_FACTOR = 1.2
NEVER = float("-inf")
TOLERATED_S = 20.0
"""Seconds after the end of a lease that was not renewed in which a scheduler still reports healthy."""

Tree = dict[str, Any]
Result = TypeVar("Result")

log = logging.getLogger(__name__)
STRATEGY = "OldestEmulationVersion"
API_VERSION = "coordination.k8s.io/v1beta1"
RENEW_S = 300
"""Interval in which a candidate is renewed without a ping."""
SILENCE_S = 30.0
FIRST_WAIT_S, MAX_WAIT_S = 1.0, 5.0


class ElectionTimes(NamedTuple):
    """The lease duration, the renew deadline, and the retry period."""

    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def problem(self) -> str | None:
        """Why these settings are invalid; None if they are valid."""
        if self.lease_duration_s < 1:
            return f"leaseDuration: expected 1s or more; got {self.lease_duration_s:g}s"
        if self.lease_duration_s <= self.renew_deadline_s:
            expected = f"more than renewDeadline, which is {self.renew_deadline_s:g}s"
            return f"leaseDuration: expected {expected}; got {self.lease_duration_s:g}s"
        longest_s = self.retry_period_s * JITTER_FACTOR
        if self.renew_deadline_s <= longest_s:
            expected = f"more than {JITTER_FACTOR:g} times retryPeriod, which is {longest_s:g}s"
            return f"renewDeadline: expected {expected}; got {self.renew_deadline_s:g}s"
        return None


class Lock(Protocol):
    """The lock that all candidates compete for. Each call may raise ApiError."""

    name: str

    async def get(self) -> Tree:
        """The current lease; raises NotFoundError when there is none."""

    async def create(self, spec: Tree) -> Tree:
        """Create the lease; raises ConflictError when another was faster."""

    async def update(self, lease: Tree) -> Tree:
        """Write the lease; raises ConflictError unless `lease` has the current version."""

    async def record_event(self, lease: Tree, note: str) -> None:
        """Write an Event about the lease."""


class LeaderElector:
    """Competes for the lease under the name `identity`: `acquire`, then `hold`, then `release`.

    Runs on one event loop; `is_leading` may be called from any thread.
    """

    def __init__(
        self,
        lock: Lock,
        identity: str,
        clock: Clock,
        times: ElectionTimes | None = None,
        *,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._lock = lock
        self.identity = identity
        self._clock = clock
        self._times = times or ElectionTimes()
        self._jitter = jitter
        self._lease: Tree = {}
        self._seen_at = 0.0
        self._seen_spec: Tree = {}
        self._slow_renewals = 0
        self._recording: asyncio.Future[None] | None = None
        self._good_until = NEVER
        """Time until which no other candidate can have the lease; a single number, because other threads read it."""

    @property
    def leader(self) -> str:
        """The last observed holder of the lease; empty if there was none."""
        return str(self._seen_spec.get("holderIdentity") or "")

    @property
    def is_leading(self) -> bool:
        """Whether this process may write now."""
        return self._clock.monotonic() < self._good_until

    def problem(self) -> str | None:
        """The problem for a health check: a leader that should have stepped down long ago."""
        if self.leader != self.identity:
            return None
        silence_s = self._clock.monotonic() - self._seen_at
        if silence_s <= self._times.lease_duration_s + TOLERATED_S:
            return None
        return f"failed election to renew leadership on lease {self._lock.name}"

    def families(self) -> list[Family]:
        """client-go's metrics of leader election."""
        name = (self._lock.name,)
        return [
            ReadGauge(
                "leader_election_master_status{name}",
                "Whether this process holds the lease: 1 is yes.",
                lambda: {name: int(self.is_leading)},
            ),
            ReadCounter(
                "leader_election_slowpath_total{name}",
                "How often a renewal had to read the lease first.",
                lambda: {name: self._slow_renewals},
            ),
        ]

    async def acquire(self) -> None:
        """Return when we lead."""
        log.info("attempting to acquire the lease %s as %s", self._lock.name, self.identity)
        reported = ""
        while not await self._acquire_or_renew():
            if self.leader != reported:
                reported = self.leader
                log.info("the lease %s is held by %s", self._lock.name, reported or "no holder")
            retry_s = self._times.retry_period_s
            await asyncio.sleep(retry_s * (1 + self._jitter() * JITTER_FACTOR))
        log.info("acquired the lease %s", self._lock.name)
        # In parallel with the renewals, which do not wait for it.
        self._recording = asyncio.ensure_future(self._record("became leader"))

    def end_term(self) -> None:
        """Stop writing: another candidate holds the lease."""
        self._good_until = NEVER

    async def hold(self) -> None:
        """Renew the lease until that fails for too long, or another candidate has it; then leading ends."""
        while await self._renew():
            await asyncio.sleep(self._times.retry_period_s)
        self._good_until = NEVER
        log.info("failed to renew the lease %s", self._lock.name)
        await self._record("stopped leading")

    async def release(self) -> bool:
        """Release the lease, so that another need not wait for its end; return whether that
        succeeded."""
        was_leading, self._good_until = self.is_leading, NEVER
        if not was_leading:
            return False
        try:
            async with asyncio.timeout(self._times.renew_deadline_s):
                lease = await self._lock.get()
                spec = lease.get("spec") or {}
                if spec.get("holderIdentity") != self.identity:
                    return False
                now = rfc3339(self._clock.now(), "microseconds")
                given_up = _spec("", 1, now, now, spec.get("leaseTransitions") or 0)
                self._see(await self._lock.update({**lease, "spec": given_up}), given_up)
        except (BayplanError, TimeoutError) as error:
            log.warning("unable to release the lease %s: %s", self._lock.name, _words(error))
            return False
        await self._record("stopped leading")
        return True

    async def _renew(self) -> bool:
        """Try to renew until the deadline."""
        deadline = self._clock.monotonic() + self._times.renew_deadline_s
        while True:
            left_s = deadline - self._clock.monotonic()
            if left_s <= 0:
                return False
            try:
                async with asyncio.timeout(left_s):
                    if await self._acquire_or_renew():
                        return True
                    await asyncio.sleep(self._times.retry_period_s)
            except TimeoutError:
                return False

    async def _acquire_or_renew(self) -> bool:
        """Try once to acquire or renew the lease; return whether we hold it."""
        try:
            return await self._try()
        except (ApiError, TimeoutError) as error:
            log.warning("unable to get at the lease %s: %s", self._lock.name, _words(error))
            return False

    async def _try(self) -> bool:
        if self.leader == self.identity and self._is_valid():
            # The leader expects no change, and need not read first.
            if await self._update():
                return True
            self._slow_renewals += 1
        sent_at = self._clock.monotonic()
        try:
            await self._read()
        except NotFoundError:
            now = rfc3339(self._clock.now(), "microseconds")
            spec = _spec(self.identity, self._duration, now, now, 0)
            self._see(await self._within(self._lock.create(spec)), spec)
            self._leads_since(sent_at)
            return True
        if self.leader != self.identity:
            self.end_term()
            if self.leader and self._is_valid():
                return False
        return await self._update()

    async def _read(self) -> None:
        lease = await self._within(self._lock.get())
        spec = lease.get("spec") or {}
        if spec != self._seen_spec:
            self._see(lease, spec)
        self._lease = lease

    async def _update(self) -> bool:
        """Write the lease as ours; False when it has changed."""
        seen, now = self._seen_spec, rfc3339(self._clock.now(), "microseconds")
        transitions = seen.get("leaseTransitions") or 0
        acquired = seen.get("acquireTime") or now
        if seen.get("holderIdentity") != self.identity:
            transitions, acquired = transitions + 1, now
        spec = _spec(self.identity, self._duration, acquired, now, transitions)
        if seen.get("strategy"):
            spec["strategy"] = seen["strategy"]
        sent_at = self._clock.monotonic()
        try:
            written = await self._within(self._lock.update({**self._lease, "spec": spec}))
        except (ApiError, TimeoutError) as error:
            log.info("unable to write the lease %s: %s", self._lock.name, _words(error))
            return False
        self._see(written, spec)
        self._leads_since(sent_at)
        return True

    @property
    def _duration(self) -> int:
        return int(self._times.lease_duration_s)

    def _is_valid(self) -> bool:
        """Whether the observed lease is still valid, by our own clock."""
        duration_s = float(self._seen_spec.get("leaseDurationSeconds") or 0)
        return self._clock.monotonic() < self._seen_at + duration_s

    def _see(self, lease: Tree, spec: Tree) -> None:
        self._lease, self._seen_spec = lease, lease.get("spec") or spec
        self._seen_at = self._clock.monotonic()

    def _leads_since(self, sent_at: float) -> None:
        # Others may count from the moment at which the server wrote it, which was not before we
        # sent it.
        self._good_until = sent_at + self._duration

    async def _within(self, answer: Awaitable[Result]) -> Result:
        """Time limit of one request, so that it cannot use all of the remaining time."""
        async with asyncio.timeout(max(self._times.renew_deadline_s / 2, 1.0)):
            return await answer

    async def _record(self, what: str) -> None:
        try:
            await self._within(self._lock.record_event(self._lease, f"{self.identity} {what}"))
        except (BayplanError, TimeoutError) as error:
            log.debug("unable to record an event about %s: %s", self._lock.name, _words(error))


class LeaseSender(Protocol):
    """The required part of a `Connection`."""

    async def get(self, path: str) -> Tree:
        """GET `path`."""

    async def send(self, method: str, path: str, tree: Any = None) -> Tree:
        """Send `tree` and return the response."""


class LeaseLock:
    """A Lease of coordination.k8s.io/v1 behind an API server. `component` is the source of events."""

    def __init__(
        self, connection: LeaseSender, namespace: str, name: str, clock: Clock, component: str
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self.name = name
        self._clock = clock
        self._component = component
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    async def get(self) -> Tree:
        """The current lease."""
        return await self._connection.get(f"{self._leases}/{self.name}")

    async def create(self, spec: Tree) -> Tree:
        """Create the lease."""
        metadata = {"namespace": self._namespace, "name": self.name}
        head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        return await self._connection.send(
            "POST", self._leases, {**head, "metadata": metadata, "spec": spec}
        )

    async def update(self, lease: Tree) -> Tree:
        """Write the lease; its resourceVersion is the precondition."""
        return await self._connection.send("PUT", f"{self._leases}/{self.name}", lease)

    async def record_event(self, lease: Tree, note: str) -> None:
        """Write an Event, as client-go's leader election does."""
        now = self._clock.now()
        second = rfc3339(now)
        known = lease.get("metadata") or {}
        regarding = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": self._namespace,
            "name": self.name,
            **{key: known[key] for key in ("uid", "resourceVersion") if key in known},
        }
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "namespace": self._namespace,
                "name": f"{self.name}.{int(now.timestamp() * 1e9):x}",
            },
            "involvedObject": regarding,
            "type": "Normal",
            "reason": "LeaderElection",
            "message": note,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "count": 1,
            "firstTimestamp": second,
            "lastTimestamp": second,
        }
        path = f"/api/v1/namespaces/{self._namespace}/events"
        await self._connection.send("POST", path, event)


def make_identity() -> str:
    """The host's name and a unique suffix, so that two processes on a host differ."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _spec(holder: str, duration_s: int, acquired: str, renewed: str, transitions: int) -> Tree:
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration_s,
        "acquireTime": acquired,
        "renewTime": renewed,
        "leaseTransitions": transitions,
    }


def _words(error: BaseException) -> str:
    return str(error) or "no answer in time"


class CoordinatedElector(LeaderElector):
    """Renews a lease that the API server gives to `identity`, by default to the oldest emulated version.

    Mirrors tryCoordinatedRenew of client-go; feature gate CoordinatedLeaderElection.
    """

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
