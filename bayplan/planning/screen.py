"""Screen: how many pods would stay pending on a fleet, guessed in a fraction of the time of a simulation.

The scheduler's rules on amounts place the pods one after another, in the order of the queue, within the kernel.
Demands on other pods (spread, affinity, ports) are left out, and so are volumes and devices. A guess chooses which
fleets are simulated; the simulation decides whether a fleet is good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from ..api.pod import Pod
from ..api.pod_spec import intern_spec
from ..sim.settings import Settings
from ..table import Ints
from ..trials import TrialCluster
from .fleet import Fleet
from .node_probe import Probe

SPARE_ROWS = 8
"""Number of nodes that are made in addition, so that the next fleets need none."""


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

    def missing(self, fleets: Sequence[Fleet]) -> Ints | None:
        """int64 [fleets, classes]: the pods that stay pending, further ones included; None if there is no guess."""
        if not self._is_possible:
            return None
        counts = [fleet.by_option() for fleet in fleets]
        for option in set().union(*counts):
            self._make_rows(option, max(one[option] for one in counts))
        places = [
            np.array([row for i, n in sorted(one.items()) for row in self._rows[i][:n]])
            for one in counts
        ]
        ranks = np.random.default_rng(0).permutation(len(self._shadow.table))
        last = len(self._probe.order) - 1
        further = np.linspace(0, last, self._further).astype(np.int64)
        order = np.concatenate([self._probe.order, self._probe.order[further]])
        placed = self._shadow.fill(self._pods, order, places, ranks)
        if placed is None:
            self._is_possible = False
            return None
        size = len(self._probe.classes)
        return np.array([np.bincount(order[~row], minlength=size) for row in placed])

    def learn(self, guessed: int, found: int) -> None:
        """Take in how many pods stay pending on a fleet in a simulation, of which a guess was made."""
        if found and not guessed:
            self._further += 1 + found // 4
        elif guessed and not found:
            self._further -= self._further // 4

    def _make_rows(self, option: int, count: int) -> None:
        """Have so many nodes of an option, minus the daemons' use."""
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
