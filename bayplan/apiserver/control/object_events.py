"""Object events: events of pods and workloads, for `kubectl describe` and `kubectl get events`.

Mirrors k8s.io/client-go/tools/events: a repeated event is counted, not written again. Events expire
after an hour.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import datetime
from typing import Any

from ...clock import Clock, Timers
from ...framework.handle import PodEvent
from ..registry.object_registry import ObjectRegistry
from ..registry.status_errors import StatusError
from ..store.records import RecordChange
from ..store.store import Store
from .recorder import EVENTS, EventNames, reference_to

Tree = dict[str, Any]
MAX_KEPT = 4096
TTL_S = 3600.0
SWEEP_EVERY_S = 60.0


class EventSweeper:
    """Deletes events an hour after their creation. Follows the store."""

    def __init__(self, store: Store, clock: Clock, timers: Timers) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        now = clock.monotonic()
        self._ages = deque((now, record.key, record.uid) for record in store.list("events"))
        store.follow(self._look, ("events",))
        timers.after(SWEEP_EVERY_S, self._sweep)

    def _look(self, change: RecordChange) -> None:
        if change.old is None:
            self._ages.append((self._clock.monotonic(), change.record.key, change.record.uid))

    def _sweep(self) -> None:
        oldest = self._clock.monotonic() - TTL_S
        while self._ages and self._ages[0][0] <= oldest:
            _, key, uid = self._ages.popleft()
            record = self._store.get("events", key)
            if record is not None and record.uid == uid:
                self._store.remove("events", key)
        self._timers.after(SWEEP_EVERY_S, self._sweep)


class EventWriter:
    """Writes events."""

    def __init__(self, registry: ObjectRegistry, names: EventNames) -> None:
        self._registry = registry
        self._names = names
        self._known: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def record(self, event: PodEvent) -> None:
        """Write a scheduler's event about a pod, or count it."""
        pod = event.regarding
        reporter = event.reporting_controller or pod.scheduler_name
        namespace = pod.namespace or "default"
        key = (pod.uid, event.type, event.reason, event.note, reporter)
        known = self._known.get(key)
        if known is not None and self._count(namespace, known):
            return
        name = self._names.make(pod.name)
        tree: Tree = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": reference_to(pod),
            "reason": event.reason,
            "message": event.note[:1024],
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "type": event.type,
            "eventTime": _micro_time(self._registry.clock.now()),
            "action": event.action,
            "reportingComponent": reporter,
            "reportingInstance": f"{reporter}-bayplan",
        }
        if event.related is not None:
            tree["related"] = reference_to(event.related)
        try:
            self._registry.create_own(EVENTS, namespace, tree)
        except StatusError:
            return  # the namespace is terminating: the event is dropped
        self._known[key] = name
        if len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)

    def _count(self, namespace: str, name: str) -> bool:
        """Count an existing event; False if there is none."""
        record = self._registry.store.get("events", (namespace, name))
        if record is None:
            return False
        tree = record.decode()
        count = int((tree.get("series") or {}).get("count") or 1) + 1
        seen = _micro_time(self._registry.clock.now())
        tree["series"] = {"count": count, "lastObservedTime": seen}
        self._registry.write(EVENTS, record, tree)
        return True


def _micro_time(moment: datetime) -> str:
    """A time in UTC, in Kubernetes' format with microseconds."""
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"
