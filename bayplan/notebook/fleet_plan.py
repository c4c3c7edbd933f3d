"""Fleet plan: `bayplan plan` as a function of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..api.text.durations import EXPECTED, parse_duration
from ..errors import InputError
from ..planning.fleet_check import ANY_NODE, ANY_ZONE, Demands
from ..planning.node_plan import NodePlan
from ..planning.planner import DEFAULT_TIME_LIMIT_S, PlanRequest, plan_nodes
from ..planning.rightsizing import rightsize
from .cluster import Cluster, PluginLike
from .pool_arguments import PoolSource, pools_of
from .questions import ConfigSource, Gates, settings_for


def plan(
    cluster: Cluster,
    pools: PoolSource | Iterable[PoolSource],
    *,
    instance_types: str | Path | None = None,
    keep_existing: bool = False,
    existing: bool = False,
    survive: str = "",
    survive_priority: int | None = None,
    headroom: float = 0.0,
    seeds: int = 1,
    time_limit: str | float = DEFAULT_TIME_LIMIT_S,
    config: ConfigSource = None,
    plugins: Iterable[PluginLike] = (),
    feature_gates: Gates = "",
    seed: int | None = None,
) -> NodePlan:
    """The cheapest nodes from `pools`, files or NodePools, on which the scheduler places every pod of the cluster.

    `keep_existing` keeps the nodes of the cluster, `existing` says how to exchange them. `survive` is "node" or
    "zone"; `headroom` is the share of every node that stays free, such as 0.2. With each of `seeds` seeds every pod is
    placed: the scheduler draws among nodes with equal scores.
    """
    settings = settings_for("plan", cluster, config, plugins, feature_gates, seed)
    if survive not in ("", ANY_NODE, ANY_ZONE):
        raise InputError(f'plan: survive: expected {ANY_NODE} or {ANY_ZONE}; got "{survive}"')
    if not 0 <= headroom < 1:
        raise InputError(f"plan: headroom: expected a share from 0 to below 1; got {headroom}")
    if seeds < 1:
        raise InputError(f"plan: seeds: expected a number from 1; got {seeds}")
    if keep_existing and existing:
        raise InputError("plan: expected keep_existing or existing; got both")
    limit_s = parse_duration(time_limit) if isinstance(time_limit, str) else float(time_limit)
    if not limit_s or limit_s < 0:
        raise InputError(f"plan: time_limit: {EXPECTED}; got {time_limit!r}")
    demands = Demands(survive, survive_priority, headroom, seeds)
    request = PlanRequest(demands, keep_existing, limit_s)
    found = pools_of("plan", cluster, pools, instance_types)
    ask = rightsize if existing else plan_nodes
    return ask(cluster.objects, found, settings, request)
