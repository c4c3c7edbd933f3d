"""Live shadow: follows a live cluster, and judges the decisions of its schedulers as they become visible.

Everything runs on one event loop: reflectors fill a backlog, and the work on it is done in slices. A decision is
judged only if every watch was open around it; while the work is behind, changes are followed and decisions skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from ..answers.judged_decision import Agreement, JudgedDecision
from ..api.pod import Pod
from ..clock import Clock
from ..errors import ApiError
from ..kube.cluster_reader import ClusterFollower
from ..kube.connection import Connection
from ..kube.reflector import ADDED, DELETED, Batch, ObjectEvent, Reflector
from ..kube.watched_kinds import RESOURCES, Resource
from .shadow_run import ShadowRun

log = logging.getLogger(__name__)

BEHIND_S = 2.0
"""Age of the oldest change at which decisions are skipped."""
CAUGHT_UP_S = 0.5
SETTLE_S = 2.0
"""Time after an interruption during which decisions are not judged."""
START_TRIES = 5
NOT_FOUND = " not found"
TURNS = 4
"""Turns of the event loop between two slices: reading a change from a connection takes several."""
SLICE_S = 0.02
IDLE_S = 0.02
RESOLVE_S = 0.2
"""Time for open decisions before changes are followed again."""
HURRIED = 200
"""Open decisions from which on nearby states are no longer compared for decisions that may be sampled."""
MOST_OPEN = 2_000
"""Decisions whose verdict is open, at most."""

INTERRUPTED = "the connection to the API server was interrupted"
LATE = "pods arrived seconds after they were created"
BEHIND = "it had fallen behind"
STALE = "the watch had stalled"
NOT_ARRIVED = "an object of the pod, such as its claim, had not arrived"

MakeRun = Callable[[list[Any]], ShadowRun]


class LiveShadow:
    """Follows the cluster behind `connection`; `make_run` gets all objects once they are read."""

    def __init__(self, connection: Connection, make_run: MakeRun, clock: Clock) -> None:
        self.run: ShadowRun | None = None
        self.is_behind = False
        self._connection = connection
        self._make_run = make_run
        self._clock = clock
        self._follower = ClusterFollower(
            connection, self._receive, tuple(RESOURCES.values()), START_TRIES
        )
        self._fresh = FreshnessCheck(connection, self._follower)
        self._present: dict[tuple[str, str, str], Any] = {}
        self._backlog = Backlog()
        self._started_s = clock.monotonic()
        self._unclear_until_s = 0.0
        self._unclear_cause = INTERRUPTED
        self._delays = ArrivalDelays()

    @property
    def _begun(self) -> ShadowRun:
        """The run, once all objects were read."""
        assert self.run is not None, "nothing is followed before"
        return self.run

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return self._clock.monotonic() - self._started_s

    @property
    def lag_s(self) -> float:
        """Age of the oldest change that was not followed yet."""
        now_s = self.now_s
        return now_s - self._backlog.oldest_s(now_s)

    @property
    def is_ready(self) -> bool:
        """Whether all objects were read."""
        return self.run is not None

    @property
    def interrupted(self) -> list[str]:
        """The kinds whose changes do not arrive now."""
        return self._follower.interrupted

    async def follow(self, ended: asyncio.Event, seconds: float | None = None) -> None:
        """Follow until `ended`, or for `seconds` after all objects were read. Raises ApiError if refused."""
        following = asyncio.ensure_future(self._follower.run())
        ending = asyncio.ensure_future(ended.wait())
        working: asyncio.Future[None] | None = None
        try:
            await _first(following, ending, asyncio.ensure_future(self._follower.synced.wait()))
            if not ended.is_set():
                self._begin()
                working = asyncio.ensure_future(self._work())
                await asyncio.wait(
                    {following, ending, working},
                    timeout=seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in (following, working):
                    if task.done():
                        task.result()
        finally:
            every: tuple[asyncio.Future[Any] | None, ...] = (following, ending, working)
            tasks = [each for each in every if each is not None]
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._finish()

    def _begin(self) -> None:
        """All objects are known: build the view."""
        self.run = self._make_run(list(self._present.values()))
        self.run.holds = self._hold
        self._present = {}
        self._started_s = self._clock.monotonic()
        self._unclear_until_s = 0.0

    async def _finish(self) -> None:
        """Follow and judge all that was received, unless that takes too long."""
        if self.run is None:
            return
        end_s = self.now_s + BEHIND_S
        while len(self._backlog) and self.now_s < end_s:
            self._take_next()
        for decision in self._fresh.take_all():
            self.run.count(decision)
        self.run.finish(self.now_s)
        self._count_skipped(BEHIND)
        for decision in self._fresh.take_all():
            self.run.count(decision)

    # Receiving

    def _receive(self, batch: Batch) -> None:
        if self.run is None:
            for type, obj in batch:
                key = (obj.kind, obj.namespace, obj.name)
                if type == DELETED:
                    self._present.pop(key, None)
                else:
                    self._present[key] = obj
            return
        now_s = self.now_s
        self._note_delay(now_s, batch)
        self._backlog.add(now_s, batch, self._cause(now_s))

    def _cause(self, now_s: float) -> str:
        """Reason why decisions cannot be judged now; "" if they can."""
        if self._follower.interrupted:
            self._doubt(now_s, INTERRUPTED)
        return self._unclear_cause if now_s < self._unclear_until_s else ""

    def _doubt(self, now_s: float, cause: str) -> None:
        """Judge no decision for a while."""
        self._unclear_until_s, self._unclear_cause = now_s + SETTLE_S, cause

    def _note_delay(self, now_s: float, batch: Batch) -> None:
        """Compare the age of new pods with that of others: a watch that stalled delivers them late."""
        created = [
            obj.creation_timestamp
            for type, obj in batch
            if type == ADDED and isinstance(obj, Pod) and obj.creation_timestamp
        ]
        if created and self._delays.is_late(now_s, self._clock.now(), created):
            self._doubt(now_s, LATE)

    # Working

    async def _work(self) -> None:
        """Follow the changes as they come; in between, judge open decisions."""
        while True:
            end_s = self.now_s + SLICE_S
            while len(self._backlog) and self.now_s < end_s:
                self._take_next()
            await _let_read()
            now_s = self.now_s
            cause = self._cause(now_s)
            if cause and self._begun.follower.open_decisions:
                self._begun.follower.skip_open()
                self._count_skipped(cause)
            self._look_at_waits(now_s)
            for decision, is_fresh in await self._fresh.results(now_s):
                self._count_held(decision, is_fresh)
            if not self.is_behind and await self._resolve(now_s):
                continue
            if not len(self._backlog):
                await asyncio.sleep(IDLE_S)

    def _look_at_waits(self, now_s: float) -> None:
        """Check waiting pods for the time of a slice, as some checks are slow, for example of volumes."""
        end_s = now_s + SLICE_S
        if not self.is_behind:
            self._begun.look_at_waits(now_s, lambda: self.now_s > end_s)

    async def _resolve(self, now_s: float) -> int:
        """Judge open decisions, for a while; returns their number. Changes are received meanwhile, and not followed."""
        follower, end_s = self._begun.follower, now_s + RESOLVE_S
        before, slice_s = follower.settled, now_s + SLICE_S
        oldest_s = self._backlog.oldest_s(now_s)
        with closing(follower.resolving(oldest_s, lambda: self.now_s > end_s)) as resolving:
            for _ in resolving:
                if self.now_s > slice_s:
                    await _let_read()
                    slice_s = self.now_s + SLICE_S
        follower.is_hurried = follower.open_decisions > HURRIED
        return follower.settled - before

    def _take_next(self) -> None:
        change = self._backlog.pop()
        self._note_age(self.now_s - change.at_s)
        cause = change.cause or (BEHIND if self.is_behind else "")
        self._begun.take(
            change.at_s,
            change.obj,
            is_deleted=change.is_deleted,
            is_judged=not cause,
            resolves=False,
        )
        if cause:
            self._count_skipped(cause)
        elif self._begun.follower.open_decisions > MOST_OPEN:
            self._begun.follower.skip_open()
            self._count_skipped(BEHIND)

    def _note_age(self, age_s: float) -> None:
        if self.is_behind:
            if age_s < CAUGHT_UP_S:
                self.is_behind = False
                log.warning("caught up: decisions are judged again")
        elif age_s > BEHIND_S:
            self.is_behind = True
            log.warning("%.1f s behind: decisions are skipped until it has caught up", age_s)
            self._begun.follower.skip_open()
            self._count_skipped(BEHIND)

    def _count_skipped(self, cause: str) -> None:
        follower = self._begun.follower
        self._begun.account.skip(cause, follower.skipped)
        follower.skipped = 0

    # Differences

    def _hold(self, decision: JudgedDecision) -> bool:
        """Hold a difference back until the objects that it is about were listed again."""
        if decision.agreement is not Agreement.DIFFERENT:
            return False
        if _lacks_object(decision):
            self._begun.drop(decision)
            self._begun.account.skip(NOT_ARRIVED, 1)
            return True
        self._fresh.add(decision)
        return True

    def _count_held(self, decision: JudgedDecision, is_fresh: bool) -> None:
        if is_fresh:
            self._begun.count(decision)
            return
        log.warning("nodes, pods: a watch has stalled; it is opened again")
        self._doubt(self.now_s, STALE)
        self._begun.drop(decision)
        self._begun.account.skip(STALE, 1)


def _lacks_object(decision: JudgedDecision) -> bool:
    """Whether the pod is refused for an object that is not followed; its scheduler read that object, or refused for
    the same reason.
    """
    found = decision.assessment
    if found is None:
        return False
    if not decision.node_name:
        return NOT_FOUND in found.message and NOT_FOUND not in decision.message
    return any(reason.endswith(NOT_FOUND) for one in found.refusals for reason in one.reasons)


async def _let_read() -> None:
    """Let the watches receive changes."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def _first(*tasks: asyncio.Future[Any]) -> None:
    """Wait for the first of the tasks, and raise if it failed; the last one is ended."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks[-1].cancel()
    if tasks[0].done():
        tasks[0].result()


LATE_S = 3.0
"""A delay that is this much longer than the shortest shows a late watch; creation times have whole seconds."""
DRIFT = 0.001
"""Seconds per second by which clocks may differ."""
LASTING_S = 60.0
"""Delays that are longer for this time are a change of clocks, not a late watch."""


class ArrivalDelays:
    """Follows the shortest delay, which is latency and the difference of two clocks."""

    def __init__(self) -> None:
        self._least_s: float | None = None
        self._least_at_s = 0.0
        self._late_since_s: float | None = None

    def is_late(self, now_s: float, now: datetime, created: Iterable[str]) -> bool:
        """Note the pods that arrived at once; returns whether they are late."""
        delay_s = max((now - _time_of(text)).total_seconds() for text in created)
        least = self._least_s
        if least is not None:
            least += (now_s - self._least_at_s) * DRIFT
        if least is None or delay_s <= least:
            self._accept(now_s, delay_s)
            return False
        if delay_s <= least + LATE_S:
            self._late_since_s = None
            return False
        if self._late_since_s is None:
            self._late_since_s = now_s
        if now_s - self._late_since_s > LASTING_S:
            self._accept(now_s, delay_s)
        return True

    def _accept(self, now_s: float, delay_s: float) -> None:
        self._least_s, self._least_at_s, self._late_since_s = delay_s, now_s, None


def _time_of(text: str) -> datetime:
    """A time of the API; without a zone it is UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


MOST_CHANGES = 50_000
"""From here on only the latest change of each object is kept."""


class ReceivedChange(NamedTuple):
    """A change, and when it was received. `cause`: why a decision in it cannot be judged; "" if it can."""

    at_s: float
    obj: Any
    is_deleted: bool
    cause: str


class Backlog:
    """A queue of changes in the order in which they were received."""

    def __init__(self, most: int = MOST_CHANGES) -> None:
        self._changes: deque[ReceivedChange] = deque()
        self._most = self._limit = most
        self.merged = 0
        """Number of changes that were dropped for a later one of the same object."""

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, at_s: float, batch: Iterable[ObjectEvent], cause: str) -> None:
        """Append received changes."""
        for type, obj in batch:
            self._changes.append(ReceivedChange(at_s, obj, type == DELETED, cause))
        if len(self._changes) > self._limit:
            self._merge()

    def oldest_s(self, now_s: float) -> float:
        """Time when the first change was received; now if there is none."""
        return self._changes[0].at_s if self._changes else now_s

    def pop(self) -> ReceivedChange:
        """Remove the first change."""
        return self._changes.popleft()

    def _merge(self) -> None:
        """Keep the latest change of each object, in order of time."""
        latest = {(one.obj.kind, one.obj.namespace, one.obj.name): one for one in self._changes}
        kept = sorted(latest.values(), key=lambda one: one.at_s)
        self.merged += len(self._changes) - len(kept)
        self._changes = deque(kept)
        # every object may have changed: merge again when the queue has doubled
        self._limit = max(self._most, 2 * len(kept))


LEAST_LOOKS = 10
WAIT_S = 2.0
"""Time in which a watch has to deliver a listed object."""
MOST_AT_ONCE = 4


class _Held(msgspec.Struct):
    """A difference, and the objects that were listed for it."""

    decision: JudgedDecision
    listing: asyncio.Future[Batch | None]
    due_s: float = 0.0
    looks: int = 0
    """Number of checks of the watches; events are read between two checks."""


class FreshnessCheck:
    """Holds differences until it is clear that the view of the nodes in them was up to date."""

    def __init__(self, connection: Connection, follower: ClusterFollower) -> None:
        self._connection = connection
        self._follower = follower
        self._waiting: deque[JudgedDecision] = deque()
        self._held: list[_Held] = []

    def add(self, decision: JudgedDecision) -> None:
        """Check a difference."""
        self._waiting.append(decision)

    async def results(self, now_s: float) -> list[tuple[JudgedDecision, bool]]:
        """The differences that were checked, and whether the view was up to date."""
        self._start()
        found = []
        for held in list(self._held):
            if not held.listing.done():
                continue
            listed = held.listing.result()
            is_behind = listed is None or self._follower.is_behind(listed)
            held.due_s = held.due_s or now_s + WAIT_S
            held.looks += 1
            if is_behind and (now_s < held.due_s or held.looks < LEAST_LOOKS):
                continue
            self._held.remove(held)
            found.append((held.decision, not is_behind))
            if is_behind:
                self._follower.restart(("Node", "Pod"))
        return found

    def take_all(self) -> list[JudgedDecision]:
        """The differences that were not checked, at the end."""
        found = [held.decision for held in self._held] + list(self._waiting)
        for held in self._held:
            held.listing.cancel()
        self._held, self._waiting = [], deque()
        return found

    def _start(self) -> None:
        while self._waiting and len(self._held) < MOST_AT_ONCE:
            decision = self._waiting.popleft()
            self._held.append(_Held(decision, asyncio.ensure_future(self._list(decision))))

    async def _list(self, decision: JudgedDecision) -> Batch | None:
        """The nodes of the decision and their pods, as they are now; None if they cannot be listed."""
        names = {decision.node_name, decision.nominated_node, decision.chosen_node} - {""}
        listed: Batch = []
        nodes, pods = RESOURCES["Node"], RESOURCES["Pod"]
        try:
            for name in sorted(names):
                for resource, selector in (
                    (nodes, f"metadata.name={name}"),
                    (pods, f"spec.nodeName={name},{pods.field_selector}"),
                ):
                    chosen = Resource(resource.kind, resource.plural, selector)
                    await Reflector(chosen, self._connection, listed.extend).read_all()
        except ApiError as error:
            log.warning("nodes, pods: %s", error)
            return None
        return listed
