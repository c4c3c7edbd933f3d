"""Screen: how many pods would stay pending on a fleet, guessed in a fraction of the time of a simulation.

The scheduler's rules on amounts place the pods one after another, in the order of the queue, within the kernel.
Demands on other pods (spread, affinity, ports) are left out, and so are volumes and devices. A guess chooses which
fleets are simulated; the simulation decides whether a fleet is good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..api.pod import Pod
from ..api.pod_spec import intern_spec
from ..sim.settings import Settings
from ..table import Ints
from ..trials import TrialCluster
from .first_fit import with_more
from .fleet import Fleet, NodeGroupKey, pools_allow
from .fleet_check import FleetVerdict
from .node_probe import Probe

Floats = NDArray[np.float64]

SPARE_ROWS = 8
"""Number of additional nodes that are made in advance for the next fleets."""
ONCE = range(1)
"""One seed of ties."""
FEW_TIES = (range(4), range(4, 16), range(16, 64))
MANY_TIES = (*FEW_TIES, *(range(n, n + 64) for n in range(64, 512, 64)))
"""Seeds of ties with which a fleet is tried as long as it is guessed to be good: a search among many fleets with few
finds those that do well with just these.
"""
FEW_FURTHER = 2
"""Number of further pods up to which guesses are trusted."""
REPAIRS = 10
"""Number of times that nodes are added for pods that stay pending."""
POD_STEP, TIE_STEP = 61, 7
"""Distances in a row of random numbers, from one pod to the next, and from one seed of ties to the next."""


class ScreenedFleets(NamedTuple):
    """The fleets to simulate, each with the number of pods that may stay pending, and the one with the best guess."""

    fleets: list[tuple[Fleet, int]]
    best: Fleet


class FleetScreen:
    """Guesses for one workload."""

    def __init__(self, probe: Probe, settings: Settings) -> None:
        self._probe = probe
        self._shadow = TrialCluster(settings=settings, in_full=False)
        self._rows: defaultdict[int, list[int]] = defaultdict(list)
        """By option: the rows of its nodes."""
        self._pods = [bare_pod(one.pod) for one in probe.classes]
        self._further = 0
        """Number of pods beyond those that exist for which a fleet must have room: the scheduler's loss by the rules
        that are left out here.
        """
        self._is_possible = len(probe.order) > 0
        specs = [one.pod.spec for one in probe.classes]
        self._is_complete = not any(
            one.has_pod_terms or one.topology_spread_constraints or one.host_ports for one in specs
        )
        self._unfit: set[object] = set()
        """Keys of fleets on which pods stay pending."""
        self.missing([Fleet({NodeGroupKey(0, probe.options[0].zones[0]): 1})])  # is it possible?

    def missing(self, fleets: Sequence[Fleet], ties: range = ONCE) -> Ints | None:
        """int64 [fleets, classes]: the pods that stay pending, further ones included; None if there is no guess.

        `ties` are seeds of ties; the pods of the seed with which most stay pending are counted.
        """
        if not self._is_possible:
            return None
        counts = [fleet.by_option() for fleet in fleets]
        for option in set().union(*counts):
            self._make_rows(option, max(one[option] for one in counts))
        places = [
            np.array([row for i, n in sorted(one.items()) for row in self._rows[i][:n]])
            for one in counts
            for _ in ties
        ]
        last = len(self._probe.order) - 1
        further = np.linspace(0, last, self._further).astype(np.int64)
        order = np.concatenate([self._probe.order, self._probe.order[further]])
        placed = self._shadow.fill(self._pods, order, places, self._ranks(ties, len(order)))
        if placed is None:
            self._is_possible = False
            return None
        size = len(self._probe.classes)
        left = np.array([np.bincount(order[~row], minlength=size) for row in placed])
        left = left.reshape(len(fleets), len(ties), size)
        worst = left.sum(axis=2).argmax(axis=1)
        self._unfit.update(
            fleet.key() for fleet, one in zip(fleets, left, strict=True) if one.any()
        )
        most: Ints = left[np.arange(len(fleets)), worst]
        return most

    def is_unfit(self, fleet: Fleet) -> bool:
        """Whether pods were guessed to stay pending on a fleet."""
        return fleet.key() in self._unfit

    def is_steady(self, fleet: Fleet, ties: Sequence[range]) -> bool:
        """Whether no pod is guessed to stay pending with any of these seeds of ties."""
        missing = self._missing_with_ties(fleet, ties)
        return missing is not None and not missing.any()

    def with_room_for_ties(self, fleet: Fleet, ties: Sequence[range]) -> Fleet | None:
        """The fleet with nodes for pods that are guessed to stay pending with some of these seeds of ties, until none
        are; None if there are always some, or there is no guess.
        """
        for _ in range(REPAIRS):
            missing = self._missing_with_ties(fleet, ties)
            if missing is None:
                return None
            if not missing.any():
                return fleet
            more = with_more(FleetVerdict(fleet, missing=missing), 1, self._probe)
            if more is None or not pools_allow(more, self._probe.options):
                return None
            fleet = more
        return None

    @property
    def is_trusted(self) -> bool:
        """Whether no pod depends on others, and simulations mostly found what was guessed."""
        return self._is_possible and self._is_complete and self._further <= FEW_FURTHER

    def choose(
        self,
        fleets: Sequence[Fleet],
        worth: Floats,
        most: int,
        unfit: int,
        ties: Sequence[range],
    ) -> ScreenedFleets | None:
        """Fleets that are guessed to be good, the cheapest first: one that is steady with `ties`, or `most` if guesses
        are not trusted; if there are none, `unfit` with the best guesses. None if there are no guesses.

        `worth` is that of a pod of each class.
        """
        missing = self.missing(fleets)
        if missing is None:
            return None
        prices = np.array([fleet.price(self._probe.options) for fleet in fleets])
        order = np.argsort(prices + missing @ worth, kind="stable").tolist()
        fitting = [i for i in order if not missing[i].any()]
        if self.is_trusted:
            fitting = list(islice((i for i in fitting if self.is_steady(fleets[i], ties)), 1))
        chosen = [(fleets[i], 0) for i in fitting[:most]]
        if not chosen and self._further:  # without further pods a guess is not too strict
            chosen = [(fleets[i], max(int(missing[i].sum()), 1)) for i in order[:unfit]]
        return ScreenedFleets(chosen, fleets[order[0]])

    def _missing_with_ties(self, fleet: Fleet, ties: Sequence[range]) -> Ints | None:
        """int64 per class: the pods that stay pending with at least one of these seeds of ties; None if there is no
        guess.
        """
        for some in ties:
            missing = self.missing([fleet], some)
            if missing is None or missing.any():
                break
        return None if missing is None else missing[0]

    def _ranks(self, ties: range, pods: int) -> Ints:
        """int64 [ties, pods, rows]: random numbers, each of which is used for many pods."""
        size = len(self._shadow.table)
        steps = np.array([TIE_STEP, POD_STEP, 1])
        shape = (ties.stop, pods, size)
        numbers = np.random.default_rng(0).integers(1 << 62, size=int(steps @ shape))
        strides = tuple((steps * numbers.itemsize).tolist())
        return as_strided(numbers, shape, strides, writeable=False)[ties.start :]

    def learn(self, guessed: int, found: int) -> None:
        """Record the pending pods of a simulated fleet, to compare the guess with it."""
        if found and not guessed:
            self._further += 1 + found // 4
        elif guessed and not found:
            self._further -= self._further // 4
            self._unfit.clear()

    def _make_rows(self, option: int, count: int) -> None:
        """Make `count` nodes of an option, minus the daemons' use."""
        one, rows = self._probe.options[option], self._rows[option]
        amounts = zip(self._probe.resources, one.free.tolist(), strict=True)
        free = {name: n for name, n in amounts if name not in self._probe.attachments}
        if len(rows) >= count:
            return
        for number in range(len(rows), count + SPARE_ROWS):
            name = f"screen-{option}-{number}"
            node = one.type.make_node(name, one.zones[0])
            self._shadow.put([node.replace(allocatable={**node.allocatable, **free})])
            rows.append(self._shadow.table.row_of[name])


def bare_pod(pod: Pod) -> Pod:
    """The pod without its terms on other pods, and without volumes and claims."""
    affinity = pod.spec.affinity
    if affinity is not None:
        affinity = replace(affinity, pod_affinity=None, pod_anti_affinity=None)
    containers = tuple(replace(one, ports=None) for one in pod.spec.containers or ())
    spec = replace(
        pod.spec,
        affinity=affinity if affinity is not None and affinity.node_affinity else None,
        topology_spread_constraints=None,
        containers=containers,
        volumes=None,
        resource_claims=None,
        scheduling_group=None,
    )
    return pod.replace(spec=intern_spec(spec), labels={}, owner_references=())
