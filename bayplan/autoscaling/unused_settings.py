"""Unused settings: settings of pools and of Cluster Autoscaler without effect in a run, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..choices import PRIORITY
from ..planning.pools import NodePool
from .autoscaler_settings import AutoscalerOptions
from .cluster_autoscaler_flags import PRIORITIES

DISRUPTION = ("budgets", "consolidation_policy", "consolidate_after_s")


def unused_settings(options: AutoscalerOptions, pools: Sequence[NodePool]) -> Iterator[str]:
    """One sentence for each."""
    if options.is_karpenter:
        names = [pool.name for pool in pools if pool.group_options]
        yield from _without_effect("autoscalingOptions", names, "Karpenter has none")
        return
    reason = "Cluster Autoscaler has none"
    names = [pool.name for pool in pools if _has_set(pool, *DISRUPTION)]
    yield from _without_effect("disruption", names, reason)
    names = [pool.name for pool in pools if _has_set(pool, "expire_after_s")]
    yield from _without_effect("expireAfter", names, reason)
    is_by_priority = PRIORITY in options.flags.expanders
    if not is_by_priority or options.priorities is not None:
        names = [pool.name for pool in pools if pool.weight]
        reason = f"only the expander {PRIORITY} without a ConfigMap goes by it"
        yield from _without_effect("weight", names, reason)
    if options.priorities is None:
        return
    if not is_by_priority:
        expander = options.flags.expander
        yield f"ConfigMap {PRIORITIES}: without effect; the expander is {expander}, not {PRIORITY}"
        return
    groups = [f"{pool.name}/{one.name}" for pool in pools for one in pool.types]
    for _, patterns in options.priorities.rules:
        for pattern in patterns:
            if not any(map(pattern.search, groups)):
                found = ", ".join(groups)
                yield f'ConfigMap {PRIORITIES}: no group matches "{pattern.pattern}"; there are {found}'


def _has_set(pool: NodePool, *names: str) -> bool:
    """Whether one of these fields has another value than by default."""
    return any(getattr(pool, name) != getattr(NodePool, name) for name in names)


def _without_effect(setting: str, pools: Sequence[str], reason: str) -> Iterator[str]:
    if pools:
        yield f"{setting} of {', '.join(pools)}: without effect; {reason}"
