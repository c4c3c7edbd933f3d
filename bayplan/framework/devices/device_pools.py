"""Device pools: the devices of drivers, and those that a node can reach.

Mirrors staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go. A pool is
put together once for all nodes that see the same of its slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...api.devices import Device, DeviceCapacity, ResourceSlice
from ...api.node import Node
from ...api.selectors import NodeSelector
from ...api.taints import HARD_EFFECTS
from ...api.text.quantity import parse_quantity
from .features import ALL_FEATURES, DeviceFeatures

PoolId: TypeAlias = tuple[str, str]
"""Driver and name."""
DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""
Amounts: TypeAlias = dict[str, dict[str, int]]
"""Nano-units by counter set and counter."""


class Offer:
    """An available device; `memo` is for results of others about it."""

    __slots__ = (
        "capacity",
        "consumes",
        "device",
        "id",
        "is_allocatable",
        "is_blocked",
        "is_plain",
        "is_selectable",
        "is_shared",
        "memo",
        "slice",
    )

    def __init__(
        self, made: ResourceSlice, device: Device, features: DeviceFeatures = ALL_FEATURES
    ) -> None:
        device = features.offered(device)
        self.slice = made
        self.device = device
        self.id: DeviceId = (made.spec.driver, made.spec.pool.name, device.name)
        self.is_shared = bool(device.allow_multiple_allocations)
        self.capacity: Mapping[str, DeviceCapacity] = device.capacity or {}
        self.is_selectable = features.is_selectable(device)
        self.is_allocatable = features.is_allocatable(device)
        self.is_blocked = not self.is_allocatable or any(
            t.effect in HARD_EFFECTS for t in device.taints or ()
        )
        self.consumes: Amounts = {}
        for consumption in (device.consumes_counters or ()) if self.is_allocatable else ():
            amounts = self.consumes.setdefault(consumption.counter_set, {})
            for name, counter in (consumption.counters or {}).items():
                amounts[name] = amounts.get(name, 0) + parse_quantity(counter.value)
        self.is_plain = (
            not self.is_shared
            and not self.consumes
            and all(c.request_policy is None for c in self.capacity.values())
        )
        """Whether the device is simply free or in use, without shares or counters."""
        self.memo: dict[Any, Any] = {}

    @property
    def driver(self) -> str:
        return self.id[0]

    def is_on(self, node: Node) -> bool:
        """Whether `node` can reach the device, given that it can reach the slice."""
        if not self.slice.spec.per_device_node_selection:
            return True
        device = self.device
        return _is_picked(node, device.node_name, device.all_nodes, device.node_selector)


class PoolView:
    """The part of a pool that a node sees. An incomplete or invalid pool offers nothing."""

    __slots__ = (
        "counters",
        "fault",
        "gives_incomplete",
        "has_conditions",
        "id",
        "is_incomplete",
        "is_invalid",
        "offers",
        "others",
    )

    def __init__(
        self, pool: PoolId, *, is_incomplete: bool = False, is_invalid: bool = False
    ) -> None:
        self.id = pool
        self.is_incomplete = is_incomplete
        self.is_invalid = is_invalid
        self.offers: tuple[Offer, ...] = ()
        self.others: tuple[Offer, ...] = ()
        """Devices that other nodes can reach: they may use up the same counters."""
        self.counters: Amounts = {}
        self.has_conditions = False
        self.gives_incomplete = False
        """Whether devices are taken from it although it is incomplete."""
        self.fault = ""
        """Reason why a search that gets here fails."""

    @property
    def is_usable(self) -> bool:
        return not (self.is_invalid or (self.is_incomplete and not self.gives_incomplete))


class Pool:
    """The slices of one pool, all generations of it."""

    def __init__(self, pool: PoolId, features: DeviceFeatures = ALL_FEATURES) -> None:
        self.id = pool
        self._features = features
        self._slices: dict[str, tuple[ResourceSlice, tuple[Offer, ...]]] = {}
        self._views: dict[frozenset[str], PoolView | None] = {}
        self.node_names: frozenset[str] | None = frozenset()
        """The nodes that see it; None when that depends on more than their names."""

    def __len__(self) -> int:
        return len(self._slices)

    def __iter__(self) -> Iterator[ResourceSlice]:
        return (made for made, _ in self._slices.values())

    def put(self, name: str, made: ResourceSlice | None) -> None:
        """Handle a slice that was added, changed or (None) deleted."""
        self._views.clear()
        self._slices.pop(name, None)
        if made is not None:
            offers = tuple(
                Offer(made, device, self._features) for device in made.spec.devices or ()
            )
            self._slices[name] = (made, offers)
        specs = [made.spec for made in self]
        everywhere = self._features.release.counters_everywhere
        is_local = all(s.node_name and not (everywhere and s.shared_counters) for s in specs)
        self.node_names = frozenset(spec.node_name or "" for spec in specs) if is_local else None

    def device(self, name: str) -> Device | None:
        """The device of that name, of the newest generation."""
        newest = sorted(self._slices.values(), key=lambda known: -known[0].spec.pool.generation)
        offers = (offer for _, offered in newest for offer in offered)
        return next((offer.device for offer in offers if offer.device.name == name), None)

    def reached(self, node: Node) -> Iterator[Offer]:
        """All devices of all slices that `node` can reach."""
        for made, offers in self._slices.values():
            if not made.spec.shared_counters and _sees(node, made):
                yield from (offer for offer in offers if offer.is_on(node))

    def view(self, node: Node) -> PoolView | None:
        """The part of the pool that `node` sees; None if it sees nothing of it."""
        everywhere = self._features.release.counters_everywhere
        seen = frozenset(
            name
            for name, (made, _) in self._slices.items()
            if self._features.reads(made) and _sees(node, made, everywhere)
        )
        if not seen:
            return None
        if seen not in self._views:
            self._views[seen] = self._build(seen)
        return self._views[seen]

    def _build(self, seen: frozenset[str]) -> PoolView | None:
        """The view of a node that sees these slices.

        A newer generation without a slice that the node sees only counts if the visible one is not complete.
        """
        newest = max(self._slices[name][0].spec.pool.generation for name in seen)
        order = sorted(seen) if self._features.release.sorts_slices else self._slices
        current = [
            n for n in order if n in seen and self._slices[n][0].spec.pool.generation == newest
        ]
        wanted = self._slices[current[0]][0].spec.pool.resource_slice_count
        if self._features.release.pools_by_node:
            return self._build_for_node(current, len(current) < wanted)
        everything = current
        if len(current) != wanted:
            generations = {n: made.spec.pool.generation for n, (made, _) in self._slices.items()}
            if max(generations.values()) > newest:
                return None
            everything = sorted(n for n, generation in generations.items() if generation == newest)
            if len(everything) != wanted:
                return PoolView(self.id, is_incomplete=True)
        return self._put_together(current, [name for name in everything if name not in current])

    def _build_for_node(self, current: list[str], is_incomplete: bool) -> PoolView:
        """The view where only the slices that the node sees count."""
        view = self._put_together(current, ())
        if view.is_invalid:
            names = [offer.id[2] for name in current for offer in self._slices[name][1]]
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            view.offers = tuple(o for name in current for o in self._slices[name][1])
            view.fault = f"pool {self.id[1]} is invalid: duplicate device name {twice}"
        view.is_incomplete, view.gives_incomplete = is_incomplete, True
        return view

    def _put_together(self, current: Sequence[str], others: Sequence[str]) -> PoolView:
        view, invalid = PoolView(self.id), PoolView(self.id, is_invalid=True)
        offers: list[Offer] = []
        here = set(current)
        for name in (*current, *others):
            made, offered = self._slices[name]
            offers += offered if name in here and not made.spec.shared_counters else ()
            for counters in made.spec.shared_counters or ():
                if counters.name in view.counters:
                    return invalid
                view.counters[counters.name] = {
                    key: parse_quantity(counter.value)
                    for key, counter in (counters.counters or {}).items()
                }
        view.offers = tuple(offers)
        view.others = tuple(offer for name in others for offer in self._slices[name][1])
        names = {offer.id for offer in offers}
        if len(names) != len(offers) or not _are_counted(view):
            return invalid
        view.has_conditions = any(o.device.binding_conditions is not None for o in offers)
        return view


def _are_counted(view: PoolView) -> bool:
    """Whether every counter that a device consumes is published."""
    return all(
        counters in view.counters and amounts.keys() <= view.counters[counters].keys()
        for offer in (*view.offers, *view.others)
        for counters, amounts in offer.consumes.items()
    )


def _sees(node: Node, made: ResourceSlice, counters_everywhere: bool = True) -> bool:
    """Whether a slice matters on `node`. Up to v1.36 counters always do."""
    spec = made.spec
    if spec.shared_counters and counters_everywhere:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return _is_picked(node, spec.node_name, spec.all_nodes, spec.node_selector)
    if not spec.per_device_node_selection:
        return False
    return any(
        _is_picked(node, device.node_name, device.all_nodes, device.node_selector)
        for device in spec.devices or ()
    )


def _is_picked(
    node: Node, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    if node_name:
        return node.name == node_name
    if all_nodes:
        return True
    return selector is not None and selector.matches(node.labels, node.name)
