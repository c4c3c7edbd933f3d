"""Plan notices: what the reader of a plan should know besides the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from ..config.plugin_args import LEAST_ALLOCATED, NodeResourcesFitArgs
from ..sim.settings import Settings
from .fleet import Fleet, NodeGroupKey, all_pools, overdrawn_pools
from .fleet_search import WIDE_GAP
from .node_plan import NodePlan
from .node_probe import Probe

ALIGNMENT = "NodeResourcesAlignment"
NOTED_GAP, NOTED_NODES = 0.04, 10
"""Above the bound by this share, and with so many nodes, a score by the mix of resources may save some."""


def notices(plan: NodePlan, probe: Probe, settings: Settings) -> Iterator[str]:
    """What the bound and the choice of types leave out, and why nodes are left half empty."""
    yield from _bound_notices(probe)
    yield from _extender_notices(settings)
    if plan.pending or plan.gap > WIDE_GAP:
        yield from _spreading_notices(settings)
    if not plan.pending and plan.gap > NOTED_GAP and plan.node_count >= NOTED_NODES:
        yield from _mix_notices(settings)


def _mix_notices(settings: Settings) -> Iterator[str]:
    """That the scheduler does not go by the mix of resources; one with plugins of the user's may have reasons."""
    profiles = settings.effective_config.profiles
    if not settings.plugins and not any(ALIGNMENT in one.plugins.names() for one in profiles):
        yield (
            f"the scores of kube-scheduler leave cpu behind on some nodes and memory on others; with {ALIGNMENT} and "
            "MostAllocated fewer nodes may do (docs/plan.md)"
        )


def _spreading_notices(settings: Settings) -> Iterator[str]:
    """That the scheduler spreads pods, which leaves no node empty for large ones that come late."""
    config = settings.effective_config
    for profile in config.profiles:
        args = profile.plugin_config.get("NodeResourcesFit")
        if not isinstance(args, NodeResourcesFitArgs):
            continue
        if args.scoring_strategy.type == LEAST_ALLOCATED:
            yield (
                f"{profile.scheduler_name} spreads pods over all nodes (NodeResourcesFit scores {LEAST_ALLOCATED}), "
                "so that large pods which come late find no node with room; with MostAllocated fewer nodes may do"
            )


def _bound_notices(probe: Probe) -> Iterator[str]:
    """Which needs of pods the bound leaves out, though a plan has room for them."""
    left_out = [
        *([f"volumes and claims that {_kinds(probe.sharing)} share"] if probe.sharing else ()),
        *([f"which devices {_kinds(probe.claiming)} ask for"] if probe.claiming else ()),
    ]
    if left_out:
        yield f"the bound leaves out {' and '.join(left_out)}; plans are verified with them"


def _kinds(count: int) -> str:
    return "1 kind of pods" if count == 1 else f"{count:,} kinds of pods"


def _extender_notices(settings: Settings) -> Iterator[str]:
    """That extenders take part in simulations, and in nothing else."""
    if settings.config is not None and settings.config.extenders:
        urls = ", ".join(one.url_prefix for one in settings.config.extenders)
        yield (
            f"extenders ({urls}) are asked in every simulation that verifies a plan; "
            "the bound and the choice of types leave them out"
        )


def used_up(plan: NodePlan, probe: Probe) -> list[str]:
    """The pools that have no further node, each with what limits it."""
    notices = []
    counts = plan.fleet.by_option()
    for pool in all_pools(probe.options):
        members = [i for i, one in enumerate(probe.options) if one.pool is pool]
        count = sum(counts[i] for i in members)
        if pool.maximum is not None and count >= pool.maximum:
            notices.append(f"{pool.name}: the maximum of {count_nodes(pool.maximum)} is too small")
            continue
        more = [
            i for i in members if overdrawn_pools(_one_more(plan.fleet, i, probe), probe.options)
        ]
        if pool.limits and len(more) == len(members):
            notices.append(f"{pool.name}: its limits leave no room for one more node")
    return notices


def _one_more(fleet: Fleet, option: int, probe: Probe) -> Fleet:
    return fleet.changed({NodeGroupKey(option, probe.options[option].zones[0]): 1})


def count_nodes(count: int) -> str:
    """`1 node`, `2 nodes`."""
    return "1 node" if count == 1 else f"{count:,} nodes"
