"""Freshness: lists the objects that a difference is about, to find watches that have stalled without an error."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import msgspec

from ..answers.judged_decision import JudgedDecision
from ..errors import ApiError
from ..kube.cluster_reader import ClusterFollower
from ..kube.connection import Connection
from ..kube.reflector import Batch, Reflector
from ..kube.watched_kinds import RESOURCES, Resource

log = logging.getLogger(__name__)

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
    """Number of checks of the watches; they are read between two of them."""


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
