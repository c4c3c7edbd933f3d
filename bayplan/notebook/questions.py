"""Questions: the commands' questions as functions of a cluster."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

from ..answers import explain as explain_pod
from ..answers import find_pods
from ..answers.account import PodExplanation
from ..answers.capacity import Capacity, find_capacity
from ..answers.compare import Comparison
from ..answers.compare import compare as compare_schedulers
from ..answers.judged_replay import JudgedReplay, judge_recording
from ..answers.pod_kinds import PodKind, pod_of, read_pod_kinds
from ..answers.rebalance import RebalancePlan, plan_rebalance
from ..answers.stage import Stage
from ..answers.what_if import ClusterChange, WhatIfAnswer, ask_what_if, fit_with_nodes
from ..api.custom_workloads import CustomWorkload
from ..api.text.durations import EXPECTED, parse_duration
from ..choices import (
    DEFAULT_MOVES,
    OBJECTIVES,
    PLAN_SEEDS,
    PLAN_TIME_LIMIT_S,
    SURVIVE,
    Follow,
    Objective,
    expect,
    expect_choice,
    expect_number,
    several,
)
from ..config.gates import parse_feature_gates
from ..config.load import load_config, parse_config
from ..config.releases import choose_release, recorded_version, release_warning
from ..config.types import SchedulerConfiguration
from ..errors import InputError, one_of
from ..planning.fleet_check import Demands
from ..planning.node_plan import NodePlan
from ..planning.planner import PlanRequest, plan_nodes
from ..planning.rightsizing import rightsize
from ..releases.feature_gates import FeatureGates
from ..sim import SimulationReport
from ..sim.recording_file import read_recording
from ..sim.replay import Replay
from ..sim.replay_report import ReplayReport
from ..sim.settings import OnProgress, Settings
from ..sweeps import Sweep, SweepResults, read_sweep
from ..sweeps.document import parse_sweep
from .cluster import Cluster, PluginLike, PoolSource, pools_of

ConfigSource: TypeAlias = SchedulerConfiguration | Mapping[str, Any] | str | Path | None
"""A configuration, plain data of one, or a file; None for kube-scheduler's defaults."""
Gates: TypeAlias = Mapping[str, bool] | str


class CommonArguments(TypedDict, total=False):
    """The arguments that all schedulers of a question share."""

    plugins: Iterable[PluginLike]
    """Classes, or Python files that define some."""
    feature_gates: Gates
    kubernetes_version: str
    """Without it that of the cluster, if it is known."""


class SchedulerArguments(CommonArguments, total=False):
    """The arguments that name the scheduler of a question."""

    config: ConfigSource
    seed: int | None
    """Breaks ties between nodes with equal scores."""


Ask = TypeVar("Ask", bound=Callable[..., Any])


def shows_scheduler(question: Ask) -> Ask:
    """Have `help` and notebooks show the arguments of the scheduler by name."""
    known = inspect.signature(scheduler_settings).parameters
    *own, last = inspect.signature(question).parameters.values()
    names = [name for name in known if name in SchedulerArguments.__annotations__]
    if "CommonArguments" in str(last.annotation):
        names = [name for name in names if name in CommonArguments.__annotations__]
    more = [known[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in names]
    question.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]  # help reads it
    return question


def settings_for(where: str, cluster: Cluster, **scheduler: Unpack[SchedulerArguments]) -> Settings:
    """The settings of a question; raises TypeError for arguments of the wrong type."""
    for name in scheduler.keys() - SchedulerArguments.__annotations__.keys():
        raise TypeError(f"{where}() got an unexpected keyword argument {name!r}")
    expect(where, "cluster", cluster, Cluster, 'a Cluster, such as Cluster.read("cluster.yaml")')
    if not scheduler.get("kubernetes_version"):
        scheduler["kubernetes_version"] = cluster.version
    settings = scheduler_settings(where, **scheduler)
    if cluster.left_out:
        cluster.check_custom(settings.needs.custom_resources)
    return settings


def scheduler_settings(
    where: str,
    config: ConfigSource = None,
    plugins: Iterable[PluginLike] = (),
    feature_gates: Gates = "",
    kubernetes_version: str = "",
    seed: int | None = None,
) -> Settings:
    """The scheduler of a question; raises TypeError for arguments of the wrong type."""
    configs = (SchedulerConfiguration, Mapping, str, Path, type(None))
    expect(where, "config", config, configs, "a file, plain data of a configuration, or None")
    expect(
        where, "feature_gates", feature_gates, (Mapping, str), "gates by name, or A=true,B=false"
    )
    expect_number(where, "seed", seed, optional=True)
    given = several(where, "plugins", plugins, (type, str, Path), "plugin classes, or Python files")
    expect(where, "kubernetes_version", kubernetes_version, str, 'a release such as "1.36"')
    release = choose_release(kubernetes_version, "kubernetes_version")
    warning = release_warning(kubernetes_version)
    if warning:
        warnings.warn(warning, stacklevel=4)
    gates = (
        parse_feature_gates(feature_gates, release=release)
        if isinstance(feature_gates, str)
        else FeatureGates.of(feature_gates, release)
    )
    sources = tuple(str(one) if isinstance(one, Path) else one for one in given)
    return Settings(_configuration(config, gates), gates, sources, seed)


def _configuration(
    config: ConfigSource, gates: Mapping[str, bool]
) -> SchedulerConfiguration | None:
    match config:
        case None | SchedulerConfiguration():
            return config
        case str() | Path():
            return load_config(config, gates)
    return parse_config(dict(config), "config", gates)


@shows_scheduler
def simulate(
    cluster: Cluster,
    *,
    until: str | float | None = None,
    explain: bool = False,
    pools: PoolSource | Iterable[PoolSource] | None = None,
    instance_types: str | Path | None = None,
    autoscaler: str | None = None,
    expander: str | None = None,
    autoscaler_config: str | Path | Iterable[str | Path] = (),
    autoscaler_flags: Iterable[str] = (),
    **scheduler: Unpack[SchedulerArguments],
) -> SimulationReport:
    """Schedule the pending pods of the cluster in virtual time and return the result.

    `plugins` are classes or Python files; `until` stops the clock, such as "2h" or 7200; `explain`
    records every plugin's result for each pod. With `pools`, files or NodePools, an `autoscaler` adds and removes
    nodes: "karpenter", the default, or "cluster-autoscaler", which has an `expander`; the report's `scaling` has nodes
    and costs.
    `autoscaler_config` are manifests of Cluster Autoscaler, `autoscaler_flags` such as "scale-down-unneeded-time=5m".
    """
    from ..autoscaling import autoscaled
    from ..autoscaling.autoscaler_settings import read_autoscaler

    settings = settings_for("simulate", cluster, **scheduler)
    files = [autoscaler_config] if isinstance(autoscaler_config, str | Path) else autoscaler_config
    given = {
        "autoscaler": autoscaler,
        "expander": expander,
        "autoscaler_config": list(files),
        "autoscaler_flags": list(autoscaler_flags),
    }
    options, notes = read_autoscaler(given, pools is not None, settings.seed, str)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    if options is None or pools is None:
        if instance_types is not None:
            raise InputError("instance_types: expected pools with it; got none")
        simulation = settings.simulation(cluster.objects, cluster.place_of, explain=explain)
        return simulation.run(until_s=_seconds(until))
    found = pools_of("simulate", cluster, pools, instance_types)
    simulation = autoscaled(
        settings, cluster.objects, found, options, cluster.place_of, explain=explain
    )
    return simulation.run(until_s=_seconds(until))


@shows_scheduler
def explain(
    cluster: Cluster,
    pod: str,
    *,
    namespace: str | None = None,
    as_is: bool = False,
    **scheduler: Unpack[SchedulerArguments],
) -> PodExplanation:
    """Reason why `pod` is pending, or why it is on its node; `pod` is written as for `bayplan explain`.

    The waiting pods are placed first, as `simulate` does; with `as_is` the cluster is as it was read. Raises InputError
    when the name matches no pod, or several.
    """
    expect("explain", "pod", pod, str, "a name such as shop/web-7")
    settings = settings_for("explain", cluster, **scheduler)
    stage = Stage(cluster.objects, settings, cluster.place_of, as_is=as_is)
    stage.begin()
    view = stage.view()
    customs = [obj for obj in cluster.objects if isinstance(obj, CustomWorkload)]
    found = find_pods(view, pod, namespace, customs)
    if len(found) != 1:
        names = ", ".join(one.key for one in found)
        raise InputError(f'"{pod}": expected the name of one pod; got {len(found)}: {names}')
    return explain_pod(view, found[0])


@shows_scheduler
def compare(
    cluster: Cluster,
    schedulers: Mapping[str, ConfigSource] | None = None,
    *,
    releases: Iterable[str] = (),
    seeds: int = 1,
    seed: int = 0,
    **scheduler: Unpack[CommonArguments],
) -> Comparison:
    """Place the pods of the cluster with several schedulers, given as configurations by name.

    With `releases`, such as ["1.34", "1.37"], each is one of the schedulers: with the default configuration, the only
    one of `schedulers`, or the one at its place; `changes` of the answer are those by the upgrade, with their causes.

    With several `seeds`, each scheduler runs once per seed; the seed breaks ties between nodes with
    equal scores.
    """
    expect_number("compare", "seeds", seeds)
    every = [
        (name, settings_for("compare", cluster, seed=seed, **(scheduler | own)))
        for name, own in _compared(schedulers, releases, scheduler)
    ]
    return compare_schedulers(cluster.objects, every, seeds=seeds, place_of=cluster.place_of)


def _compared(
    schedulers: Mapping[str, ConfigSource] | None,
    releases: Iterable[str],
    scheduler: CommonArguments,
) -> list[tuple[str, SchedulerArguments]]:
    """The arguments that each of the schedulers has for itself, by its name."""
    given = several("compare", "releases", releases, (str,), 'releases such as "1.36"')
    if schedulers is None:
        schedulers = {"default": None} if given else {}
    expect("compare", "schedulers", schedulers, Mapping, "configurations by name, {'a': ...}")
    if not given:
        return [(name, {"config": config}) for name, config in schedulers.items()]
    if scheduler.get("kubernetes_version"):
        raise InputError("compare: expected kubernetes_version or releases; got both")
    if len(schedulers) == len(given) > 1:
        pairs = zip(given, schedulers.items(), strict=True)
        return [
            (name, {"config": config, "kubernetes_version": version})
            for version, (name, config) in pairs
        ]
    if len(schedulers) != 1 or len(set(given)) < len(given):
        wanted = f"different releases, and one scheduler for all or {len(given)}"
        raise InputError(f"compare: expected {wanted}; got {len(schedulers)}")
    (config,) = schedulers.values()
    return [(version, {"config": config, "kubernetes_version": version}) for version in given]


@shows_scheduler
def what_if(
    cluster: Cluster,
    *changes: ClusterChange,
    as_is: bool = False,
    until_fits: str | Sequence[str] = (),
    fewest: bool = False,
    **scheduler: Unpack[SchedulerArguments],
) -> WhatIfAnswer:
    """The consequences of changes such as `Drain("node-3")`; the changes are names of `bayplan`, too.

    The waiting pods are placed before the changes; with `as_is` after them. `until_fits` names nodes: as many copies of
    them are added, in turn, as are needed for every pod; with `fewest`, as many of each as make few nodes in all.
    `answer.search` has the numbers.
    """
    for change in changes:
        if not isinstance(change, ClusterChange):
            raise TypeError(f'what_if: expected changes such as Drain("node-3"); got {change!r}')
    settings = settings_for("what_if", cluster, **scheduler)
    if not until_fits:
        if fewest:
            raise InputError("what_if: expected fewest with until_fits; got it alone")
        return ask_what_if(
            cluster.objects, changes, settings, as_is=as_is, place_of=cluster.place_of
        )
    return fit_with_nodes(
        cluster.objects,
        until_fits,
        settings,
        changes=changes,
        fewest=fewest,
        as_is=as_is,
        place_of=cluster.place_of,
    )


@shows_scheduler
def capacity(
    cluster: Cluster,
    *pods: Mapping[str, Any] | str | Path,
    nodes: Iterable[str] = (),
    limit: int | None = None,
    as_is: bool = False,
    **scheduler: Unpack[SchedulerArguments],
) -> Capacity:
    """Count the further pods that fit: of one kind, or of a mix.

    A pod is a file (`web.yaml`, or `web.yaml:3` for three in the mix) or plain data in Kubernetes'
    form. The waiting pods are placed first; with `as_is` they take no room.
    """
    expect_number("capacity", "limit", limit, optional=True)
    names = several("capacity", "nodes", nodes, (str,), "names or labels of nodes")
    for pod in pods:
        expect("capacity", "pods", pod, (Mapping, str, Path), "files, or pods as plain data")
    settings = settings_for("capacity", cluster, **scheduler)
    kinds = [kind for pod in pods for kind in _kinds(pod)]
    return find_capacity(
        cluster.objects,
        kinds,
        settings,
        nodes=tuple(names),
        limit=limit,
        as_is=as_is,
        place_of=cluster.place_of,
    )


@shows_scheduler
def rebalance(
    cluster: Cluster,
    objective: str = Objective.SPREAD,
    *,
    max_moves: int = DEFAULT_MOVES,
    by_eviction: bool = False,
    as_is: bool = False,
    **scheduler: Unpack[SchedulerArguments],
) -> RebalancePlan:
    """Plan moves that improve the cluster for `spread`, `pack`, `cost` or `constraints`; nothing is moved.

    With `by_eviction`, only moves that the scheduler makes by itself after an eviction. The waiting pods are placed
    first; with `as_is` they are left aside.
    """
    expect("rebalance", "objective", objective, str, one_of(OBJECTIVES))
    expect_number("rebalance", "max_moves", max_moves)
    expect_choice("rebalance: objective", objective, OBJECTIVES)
    settings = settings_for("rebalance", cluster, **scheduler)
    return plan_rebalance(
        cluster.objects,
        Objective(objective),
        settings,
        max_moves=max_moves,
        by_eviction=by_eviction,
        as_is=as_is,
        place_of=cluster.place_of,
    )


def _kinds(pod: Mapping[str, Any] | str | Path) -> list[PodKind]:
    if not isinstance(pod, Mapping):
        return read_pod_kinds([str(pod)])
    found = [made for obj in Cluster.of(pod).objects if (made := pod_of(obj)) is not None]
    if len(found) != 1:
        raise InputError(f"expected one pod or workload; got {len(found) or 'none'}")
    return [PodKind(found[0].name, found[0])]


def _seconds(until: str | float | None) -> float | None:
    expected = 'a duration such as "2h", or seconds'
    expect("simulate", "until", until, (str, int, float, type(None)), expected)
    if not isinstance(until, str):
        return until
    seconds = parse_duration(until)
    if seconds is None:
        raise InputError(f'until: {EXPECTED}; got "{until}"')
    return seconds


@shows_scheduler
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
    seeds: int = PLAN_SEEDS,
    time_limit: str | float = PLAN_TIME_LIMIT_S,
    **scheduler: Unpack[SchedulerArguments],
) -> NodePlan:
    """The cheapest nodes from `pools`, files or NodePools, on which the scheduler places every pod of the cluster.

    `keep_existing` keeps the nodes of the cluster, `existing` plans their exchange. `survive` is "node" or
    "zone"; `headroom` is the share of every node that stays free, such as 0.2. With each of `seeds` seeds every pod is
    placed: the scheduler draws among nodes with equal scores.
    """
    settings = settings_for("plan", cluster, **scheduler)
    if survive:
        expect_choice("plan: survive", survive, SURVIVE)
    elif survive_priority is not None:
        raise InputError("plan: survive_priority: expected survive with it; got none")
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


def sweep(
    document: str | Path | Mapping[str, Any],
    *,
    results: str | Path | None = None,
    jobs: int | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
    on_progress: OnProgress | None = None,
) -> SweepResults:
    """Simulate every input of a sweep with every configuration and seed, in processes or on Ray.

    `document` is a file of kind Sweep, or the same as plain data, whose paths are relative to the current folder. With
    `results`, a file that ends in .csv or .parquet, finished runs are not repeated the next time. `jobs` is the
    number of runs at a time, one per core without it; `ray` is the address of a Ray cluster, or "local".
    """
    expect("sweep", "document", document, (str, Path, Mapping), "a file, or a sweep as plain data")
    expect("sweep", "results", results, (str, Path, type(None)), "a file, or None")
    expect("sweep", "ray", ray, (str, type(None)), 'an address, "local" or None')
    expect_number("sweep", "jobs", jobs, optional=True)
    if isinstance(document, Mapping):
        read = parse_sweep(document, "sweep", Path())
    else:
        read = read_sweep(document)
    path = None if results is None else Path(results)
    found = Sweep(read, path, retry_failed=retry_failed)
    done = found.run(jobs=jobs, ray=ray, on_progress=on_progress)
    for warning in done.warnings:
        warnings.warn(warning, stacklevel=2)
    return done


@shows_scheduler
def replay(
    recording: str | Path,
    *,
    follow: str = Follow.RECORDED.value,
    partial: bool = False,
    **scheduler: Unpack[SchedulerArguments],
) -> JudgedReplay | ReplayReport:
    """Judge every decision in a recording of `bayplan record`, or schedule its pods again.

    With `follow="recorded"`, each decision is judged in the cluster as it was then; with "own", pods are scheduled
    again in the cluster as our own decisions leave it. `partial` accepts a recording without an end.
    """
    expect("replay", "recording", recording, (str, Path), "a file that bayplan record wrote")
    expect("replay", "follow", follow, str, '"recorded" or "own"')
    if follow not in set(Follow):
        raise InputError(f'replay: follow: expected "recorded" or "own"; got "{follow}"')
    recorded = read_recording(Path(recording), partial)
    if not scheduler.get("kubernetes_version"):
        scheduler["kubernetes_version"] = recorded_version(recorded.objects)
    settings = scheduler_settings("replay", **scheduler)
    if follow == Follow.RECORDED:
        return judge_recording(recorded, settings)
    return Replay(recorded, settings).run()
