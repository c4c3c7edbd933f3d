"""Alike groups: node groups that no pod can tell apart, so that one is packed for all of them.

The types of a catalogue differ in name, price and labels; what they can run is mostly equal. A label counts only if a
pod reads it: in its node selector or affinity, or as a topology. Where something else may read labels (plugins,
volumes, devices, defaults of the configuration), no groups are alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..config.plugin_args import NodeAffinityArgs, PodTopologySpreadArgs
from ..planning.node_types import INSTANCE_TYPE
from ..sim.settings import Settings
from ..table import NodeTable
from .launch_options import LaunchOption


class AlikeGroups:
    """What tells the groups apart for some pods."""

    def __init__(self, settings: Settings, table: NodeTable, pods: Sequence[Pod]) -> None:
        specs = {pod.spec for pod in pods}
        self._is_clear = not any(
            spec.resource_claims or any(volume.is_relevant for volume in spec.volumes or ())
            for spec in specs
        )
        self._is_clear &= not reads_labels(settings)
        if table.carried:
            specs |= {pod.spec for on_node in table.pods for pod in on_node.values()}
        self._labels = sorted(labels_read(specs))

    def key(self, members: Sequence[LaunchOption]) -> Hashable:
        """Equal for groups that are alike."""
        if not self._is_clear or any(one.type.slices for one in members):
            return members[0].label
        return members[0].pool.name, tuple(map(self._option_key, members))

    def _option_key(self, option: LaunchOption) -> Hashable:
        kind = option.type
        labels = {INSTANCE_TYPE: kind.name, **kind.labels}
        return (
            option.zone,
            frozenset(kind.allocatable.items()),
            frozenset(option.daemons.items()),
            tuple(kind.capacity.get(name, 0) for name in option.pool.limits),
            kind.taints,
            tuple(labels.get(name) for name in self._labels),
        )


def labels_read(specs: Iterable[PodSpec]) -> set[str]:
    """The labels of nodes on which it depends where pods of these specs can run, and whom they keep away."""
    found: set[str] = set()
    for spec in specs:
        found.update(spec.node_selector or ())
        found.update(one.topology_key for one in spec.topology_spread_constraints or ())
        if spec.affinity is None:
            continue
        wishes = spec.affinity.node_affinity
        if wishes is not None and wishes.required is not None:
            for term in wishes.required.terms:
                found.update(one.key for one in term.expressions)
        for part in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if part is not None:
                found.update(one.topology_key for one in part.required)
    return found


def reads_labels(settings: Settings) -> bool:
    """Whether a scheduler may read labels of nodes that no pod names."""
    config = settings.effective_config
    for profile in config.profiles:
        for args in profile.plugin_config.values():
            if isinstance(args, NodeAffinityArgs) and args.added_affinity is not None:
                return True
            if isinstance(args, PodTopologySpreadArgs) and args.default_constraints:
                return True
    return bool(settings.plugins)
