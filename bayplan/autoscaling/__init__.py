"""Autoscaling: Karpenter and Cluster Autoscaler in the virtual time of a simulation.

Contents: `autoscaler.py` (the controller, beside those of `sim/`), `launch_options.py` and `pool_nodes.py` (nodes that
can be launched, and nodes that were), `node_claims.py` and `group_estimates.py` (how Karpenter and Cluster Autoscaler
plan nodes), `group_packing.py` and `amount_packer.py` (the nodes of one group; how hundreds of groups are tried
quickly), `scale_down.py` with `consolidation.py` and `unneeded.py` (how nodes are removed).
Contains no placement rule: a trial cluster decides where a pod can run. `cli/` and `notebook/` call `autoscaled`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..manifests.timeline import InputObject, Timeline
from ..planning.pools import NodePool
from ..sim.settings import Settings
from ..sim.simulation import Simulation
from .autoscaler import Autoscaler, first_nodes
from .autoscaler_settings import AutoscalerOptions

__all__ = ["Autoscaler", "AutoscalerOptions", "autoscaled", "maker_of"]


def autoscaled(
    settings: Settings,
    objects: Sequence[InputObject],
    pools: Sequence[NodePool],
    options: AutoscalerOptions | None = None,
    place_of: Callable[[InputObject], str] | None = None,
    **more: Any,
) -> Simulation:
    """A simulation of `objects` with an autoscaler; pools have their minimum at the start.

    `more` are further arguments of `Simulation`. Raises InputError when the scheduler has extenders.
    """
    if settings.config is not None and settings.config.extenders:
        raise InputError(
            "extenders: expected none with an autoscaler, since they are not asked about nodes that do not exist yet; "
            f'got "{settings.config.extenders[0].url_prefix}"'
        )
    present = [obj for obj in objects if not isinstance(obj, Timeline)]
    simulation = settings.simulation(
        [*objects, *first_nodes(pools, present)], place_of, nodes_come=True, **more
    )
    controller = Autoscaler(simulation, pools, settings, options or AutoscalerOptions())
    simulation.let_control(controller)
    return simulation


def maker_of(
    pools: Sequence[NodePool], options: AutoscalerOptions
) -> Callable[[Settings, Sequence[InputObject], Callable[[InputObject], str] | None], Simulation]:
    """A maker of simulations with this autoscaler; its draws depend on the seed of the settings."""

    def make(
        settings: Settings,
        objects: Sequence[InputObject],
        place_of: Callable[[InputObject], str] | None,
    ) -> Simulation:
        seeded = replace(options, seed=settings.seed or 0)
        return autoscaled(settings, objects, pools, seeded, place_of)

    return make
