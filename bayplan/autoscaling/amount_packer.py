"""Amount packer: pods on new nodes of a group where only amounts decide, without a scheduling attempt per pod.

Cluster Autoscaler tries every group, of which a catalogue has hundreds. Equal pods that follow each other are placed at
once, on the nodes in turn, with the same result as trying one pod after the other. The scheduler is called once for
each class of pods to count how many of it every empty node can run; where more than amounts takes part (spread,
affinity, ports, volumes, devices, plugins), there is no such packing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..api.pod import Pod
from ..api.resources import CPU, MEMORY
from ..config.plugin_args import NodeResourcesFitArgs
from ..planning.fleet import fill_level
from ..sim.settings import Settings
from ..table import Bools, Ints
from ..trials import TrialCluster
from .launch_options import PROBE, ChoiceKey, LaunchOption, LaunchOptions, choice_key
from .pool_nodes import PoolUse


class AmountPacking:
    """The pods of one scale-up by class, and how many of each class every option can run."""

    def __init__(self, options: LaunchOptions, pods: Sequence[Pod], copies: Sequence[Ints]) -> None:
        """`copies` has int64 per option for each class, in the order of `classes_of`."""
        classes = classes_of(pods)
        numbers = {choice_key(pod): i for i, pod in enumerate(classes)}
        self.pods, self.classes = pods, classes
        self.numbers = np.array([numbers[choice_key(pod)] for pod in pods], dtype=np.int64)
        """int64 per pod: its class."""
        self.free = np.maximum(options.free, 0)
        """int64 per option and resource."""
        shape = len(classes), len(options.all)
        self.copies = np.array(copies, dtype=np.int64).reshape(shape)
        """int64 per class and option: how many fit on an empty node."""
        choices = [options.choice(pod) for pod in classes]
        self.accepts = np.array([one.accepts for one in choices]).reshape(shape)
        self.requests = np.array([one.requests for one in choices], dtype=np.int64)
        self.sizes = [(one.requests.get(CPU, 0), one.requests.get(MEMORY, 0)) for one in classes]

    def is_explained(self) -> bool:
        """Whether the amounts that are known here are those by which the scheduler counts copies."""
        for needs, copies in zip(self.requests, self.copies, strict=True):
            used = needs > 0
            fits = (self.free[:, used] // needs[used]).min(axis=1)
            if (np.where(copies > 0, fits, 0) != copies).any():
                return False
        return True

    def taken_by(self, members: Sequence[LaunchOption]) -> set[ChoiceKey]:
        """The classes of pods that an empty node of a group can run."""
        runs = self.accepts & (self.copies > 0)
        able: Bools = np.any(runs[:, [one.number for one in members]], axis=1)
        return {choice_key(self.classes[i]) for i in np.flatnonzero(able).tolist()}

    def pack(
        self, members: Sequence[LaunchOption], use: PoolUse, most: int
    ) -> list[tuple[LaunchOption, list[Pod]]]:
        """Up to `most` nodes of a group, whose options differ in the zone, with their pods; `use` counts them."""
        nodes = _NewNodes(self, members, use, most)
        order = self._in_order(members)
        numbers = self.numbers[order]
        bounds = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)).tolist()
        for start, end in pairwise(bounds):
            nodes.add(int(numbers[start]), [self.pods[i] for i in order[start:end].tolist()])
        return nodes.launches

    def _in_order(self, members: Sequence[LaunchOption]) -> Ints:
        """int64: pods that the group can run, equal ones together, those with the largest shares of a node first."""
        offered = members[0].type.allocatable
        most = [max(offered.get(name, 0), 1) for name in (CPU, MEMORY)]
        shares = np.array([cpu / most[0] + memory / most[1] for cpu, memory in self.sizes])
        is_able = np.any(self.accepts[:, [one.number for one in members]], axis=1)
        able = np.flatnonzero(is_able[self.numbers])
        numbers = self.numbers[able]
        order: Ints = able[np.lexsort((numbers, -shares[numbers]))]
        return order


class _NewNodes:
    """The new nodes of one group."""

    def __init__(
        self, packing: AmountPacking, members: Sequence[LaunchOption], use: PoolUse, most: int
    ) -> None:
        self._packing, self._members, self._use, self._most = packing, members, use, most
        self._free = np.empty((most, packing.free.shape[1]), dtype=np.int64)
        self._options = np.empty(most, dtype=np.int64)
        self._full: set[int] = set()
        self._last = 0
        """The existing node on which a pod fitted last."""
        self.launches: list[tuple[LaunchOption, list[Pod]]] = []

    def add(self, number: int, pods: list[Pod]) -> None:
        """Put pods of one class on the first nodes that have room, then on further ones, if there may be some."""
        if number in self._full:
            return
        count = self._fill(number, pods)
        while count < len(pods):
            if not self._grow(number):
                self._full.add(number)
                return
            last = len(self.launches) - 1
            fits = int(self._packing.copies[number, self._options[last]])
            count = self._put(number, last, fits, pods, count)

    def _fill(self, number: int, pods: list[Pod]) -> int:
        """Use the room of the existing nodes; returns the number of placed pods."""
        size, count, needs = len(self.launches), 0, self._packing.requests[number]
        if not size:
            return 0
        used = needs > 0
        room = (self._free[:size, used] // needs[used]).min(axis=1)
        room[self._packing.copies[number, self._options[:size]] <= 0] = 0
        given = self._in_turn(room, len(pods))
        for node in np.flatnonzero(given).tolist():
            count = self._put(number, node, int(given[node]), pods, count)
        return count

    def _in_turn(self, room: Ints, count: int) -> Ints:
        """Number of `count` equal pods that each node gets, if each search begins after the node that was found
        last.
        """
        count = min(count, int(room.sum()))
        low = fill_level(np.zeros_like(room), room, count)  # the number of whole turns
        given: Ints = np.minimum(room, low)
        order = np.roll(np.arange(len(room)), -(self._last + 1))
        further = order[room[order] > low][: count - int(given.sum())]
        given[further] += 1
        if count:
            full_turn = order[given[order] == given.max()]
            self._last = int((further if len(further) else full_turn)[-1])
        return given

    def _put(self, number: int, node: int, fits: int, pods: list[Pod], first: int) -> int:
        """Put up to `fits` pods on a node, beginning with `first`; returns the first one that is left."""
        end = min(first + fits, len(pods))
        self.launches[node][1].extend(pods[first:end])
        self._free[node] -= self._packing.requests[number] * (end - first)
        return end

    def _grow(self, number: int) -> bool:
        """Add a node that can run the class, in the zone with the fewest such nodes; False if there is none, or the
        limit is reached.
        """
        packing, pool, size = self._packing, self._members[0].pool, len(self.launches)
        able = [one for one in self._members if packing.accepts[number, one.number]]
        able.sort(key=lambda one: (self._use.zones[pool.name, one.zone], one.zone))
        for option in able:
            if size >= self._most or not self._use.allows(pool, option.type):
                return False
            if packing.copies[number, option.number] > 0:
                self._free[size] = packing.free[option.number]
                self._options[size] = option.number
                self._use.add(pool, option.zone, option.type.capacity)
                self.launches.append((option, []))
                return True
        return False


def classes_of(pods: Sequence[Pod]) -> list[Pod]:
    """The first pod of each class."""
    found: dict[object, Pod] = {}
    for pod in pods:
        found.setdefault(choice_key(pod), pod)
    return list(found.values())


def amount_packing(
    options: LaunchOptions, shadow: TrialCluster, settings: Settings, pods: Sequence[Pod]
) -> AmountPacking | None:
    """The packing of `pods`; None if more than amounts decides where they can run."""
    if ignores_amounts(settings) or any(pod.usage is not pod.requests for pod in pods):
        return None
    classes = classes_of(pods)
    if any(shadow.copies(pod) is None for pod in classes):
        return None
    probes = [one.make_objects(f"{PROBE}{one.number}", is_shadow=True) for one in options.all]
    for objects in probes:
        shadow.put(objects)
    rows = np.array([shadow.table.row_of[objects[0].name] for objects in probes], dtype=np.int64)
    copies = [found[rows] for pod in classes if (found := shadow.copies(pod)) is not None]
    for objects in reversed(probes):  # so that the next nodes get the same rows
        shadow.drop(objects)
    if len(copies) < len(classes):
        return None
    packing = AmountPacking(options, pods, copies)
    return packing if packing.is_explained() else None


def ignores_amounts(settings: Settings) -> bool:
    """Whether a scheduler leaves out some resources when it compares amounts."""
    config = settings.effective_config
    found = (profile.plugin_config.get("NodeResourcesFit") for profile in config.profiles)
    return any(
        bool(args.ignored_resources or args.ignored_resource_groups)
        for args in found
        if isinstance(args, NodeResourcesFitArgs)
    )
