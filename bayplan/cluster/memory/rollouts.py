"""Rollouts: the step-by-step replacement of pods of an earlier template.

Mirrors pkg/controller/deployment/{rolling,recreate}.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.workloads import DaemonSet, Deployment, ReplicaSet, RollingUpdate, StatefulSet
from .deployments import DESIRED_REPLICAS, MAX_REPLICAS, OWN_NOTES, has_new_template
from .pod_index import OwnedPods, OwnerKey

Rolled = Deployment | StatefulSet | DaemonSet
RECREATE = "Recreate"
DEFAULT_SHARE = "25%"


class ReplicaCount(msgspec.Struct):
    """The replicas of a replica set: wanted, available, and all that still exist."""

    replicas: int
    available: int
    present: int = 0

    @classmethod
    def of(
        cls, replicas: int, pods: OwnedPods, is_available: Callable[[Pod], bool]
    ) -> ReplicaCount:
        """The counts of a replica set with these pods."""
        available = sum(map(is_available, pods.active.values()))
        return cls(replicas, min(available, replicas), len(pods.active) + len(pods.leaving))

    def shrink(self, number: int) -> None:
        """Reduce the replicas by `number`; unavailable ones first."""
        self.replicas -= number
        self.available = min(self.available, self.replicas)


def plan_rollout(
    deployment: Deployment,
    counts: Mapping[str, ReplicaCount],
    newest: str,
) -> dict[str, int]:
    """The next number of replicas of each replica set, by name; oldest first in `counts`."""
    strategy = deployment.spec.strategy
    if strategy is not None and strategy.type == RECREATE:
        _recreate(deployment.replicas, counts, newest)
    else:
        limits = strategy.rolling_update if strategy is not None else None
        surge, unavailable = rollout_limits(limits, deployment.replicas)
        while _roll(deployment.replicas, surge, unavailable, counts, newest):
            pass
    return {name: count.replicas for name, count in counts.items()}


def scale_replica_sets(
    former: Deployment, deployment: Deployment, sizes: Mapping[str, int], newest: str
) -> dict[str, int]:
    """The sizes of replica sets after a change of the number of replicas, before a rollout continues: a single one
    gets all replicas; several keep their shares. Newest first in `sizes`.

    `newest` is empty when no replica set has the template.
    """
    active = {name: size for name, size in sizes.items() if size > 0}
    wanted = deployment.replicas
    if len(active) <= 1:
        only = next(iter(active), newest or next(iter(sizes), ""))
        return {**sizes, only: wanted} if only else dict(sizes)
    if deployment.spec.strategy is not None and deployment.spec.strategy.type == RECREATE:
        return dict(sizes)
    most, most_before = _most(deployment), _most(former)
    missing = (most if wanted else 0) - sum(active.values())
    order = list(active)
    if missing < 0:
        order.reverse()
    order.sort(key=lambda name: -active[name])
    found, added = dict(sizes), 0
    for name in order if missing else ():
        share = math.floor(active[name] * most / most_before + 0.5) - active[name]
        if not wanted:
            share = -active[name]
        rest = missing - added
        share = min(share, rest) if missing > 0 else max(share, rest)
        found[name] += share
        added += share
    if missing:
        found[order[0]] = max(found[order[0]] + missing - added, 0)
    return found


def _most(deployment: Deployment) -> int:
    """The most pods that a rollout may have at a time."""
    strategy = deployment.spec.strategy
    limits = strategy.rolling_update if strategy is not None else None
    return deployment.replicas + rollout_limits(limits, deployment.replicas)[0]


def annotated(replica_set: ReplicaSet, deployment: Deployment) -> ReplicaSet:
    """The replica set with the annotations of its deployment and the wanted number of replicas."""
    notes = {k: v for k, v in deployment.annotations.items() if k not in OWN_NOTES}
    strategy = deployment.spec.strategy
    is_rolling = strategy is None or strategy.type != RECREATE
    most = _most(deployment) if is_rolling and deployment.replicas else deployment.replicas
    notes |= {DESIRED_REPLICAS: str(deployment.replicas), MAX_REPLICAS: str(most)}
    found = {**replica_set.annotations, **notes}
    if found == replica_set.annotations:
        return replica_set
    return replace(replica_set, metadata=replace(replica_set.metadata, annotations=found))


def rollout_limits(limits: RollingUpdate | None, replicas: int) -> tuple[int, int]:
    """Number of pods that may exist beyond the wanted ones, and of wanted ones that may be unavailable; never both
    0.
    """
    more: int | str | None = limits.max_surge if limits is not None else None
    less: int | str | None = limits.max_unavailable if limits is not None else None
    surge = math.ceil(_share(more, replicas))
    unavailable = math.floor(_share(less, replicas))
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, replicas)


def _share(amount: int | str | None, whole: int) -> float:
    """A number, or a percentage of the whole; 25% unless given."""
    if isinstance(amount, int):
        return amount
    number = (DEFAULT_SHARE if amount is None else amount).removesuffix("%")
    return int(number) * whole / 100 if number.isdecimal() else 0


def _recreate(replicas: int, counts: Mapping[str, ReplicaCount], newest: str) -> None:
    """Remove all old pods, and when they are gone, make the new ones."""
    old = [count for name, count in counts.items() if name != newest]
    if any(count.replicas or count.present for count in old):
        for count in old:
            count.shrink(count.replicas)
    else:
        counts[newest].replicas = replicas


def _roll(
    replicas: int, surge: int, unavailable: int, counts: Mapping[str, ReplicaCount], newest: str
) -> bool:
    """Make one step: more new pods as far as the surge allows, fewer old ones as far as availability does."""
    new = counts[newest]
    old = [count for name, count in counts.items() if name != newest]
    if new.replicas > replicas:
        new.shrink(new.replicas - replicas)
        return True
    total = sum(count.replicas for count in counts.values())
    growth = min(replicas + surge - total, replicas - new.replicas)
    if growth > 0:
        new.replicas += growth
        return True
    must_stay = replicas - unavailable
    may_go = total - must_stay - (new.replicas - new.available)
    if may_go <= 0:
        return False
    gone = _shrink(old, may_go, spares_available=True)
    spare = sum(count.available for count in counts.values()) - must_stay
    return gone + _shrink(old, spare) > 0


def _shrink(old: Iterable[ReplicaCount], most: int, *, spares_available: bool = False) -> int:
    """Remove old pods, at most so many; returns how many."""
    gone = 0
    for count in old:
        number = min(count.replicas - spares_available * count.available, most - gone)
        if number > 0:
            count.shrink(number)
            gone += number
    return gone


def _replicas_of(workload: Rolled) -> int:
    return 0 if isinstance(workload, DaemonSet) else workload.replicas


class WorkloadChanges:
    """The workloads whose last change is not complete. With `takes_all`, every new or changed workload is one."""

    def __init__(self, takes_all: bool) -> None:
        self._takes_all = takes_all
        self._has_new_template: dict[OwnerKey, bool] = {}
        self._former: dict[OwnerKey, StatefulSet] = {}
        self._unscaled: dict[OwnerKey, Deployment] = {}

    def __contains__(self, key: OwnerKey) -> bool:
        return key in self._has_new_template

    def __bool__(self) -> bool:
        return bool(self._has_new_template)

    def add(self, key: OwnerKey) -> None:
        """Record a new workload."""
        if self._takes_all:
            self._has_new_template[key] = True

    def update(self, key: OwnerKey, old: KubeObject, new: KubeObject) -> None:
        """Record a change: of the template, or of the number of pods of a stateful set, which shrinks one by one."""
        if not isinstance(old, Rolled) or not isinstance(new, Rolled):
            return
        is_new = has_new_template(old, new)
        if is_new and isinstance(old, StatefulSet):
            self._former.setdefault(key, old)
        if isinstance(old, Deployment) and old.replicas != _replicas_of(new):
            self._unscaled.setdefault(key, old)
        if is_new or self._takes_all or isinstance(new, StatefulSet):
            before = self._has_new_template.get(key, False)
            self._has_new_template[key] = is_new or self._takes_all or before

    def has_new_template(self, key: OwnerKey) -> bool:
        """Whether pods of an earlier template have to be replaced."""
        return self._has_new_template.get(key, False)

    def take_unscaled(self, key: OwnerKey) -> Deployment | None:
        """The deployment before its number of replicas changed, once; None if that did not change."""
        return self._unscaled.pop(key, None)

    def former(self, key: OwnerKey) -> StatefulSet | None:
        """The stateful set before its template changed: pods below its partition keep that."""
        return self._former.get(key)

    def complete(self, key: OwnerKey) -> None:
        """Record that nothing is left to do."""
        self._has_new_template.pop(key, None)

    def forget(self, key: OwnerKey) -> None:
        """Record that the workload was deleted."""
        self.complete(key)
        self._former.pop(key, None)
        self._unscaled.pop(key, None)
