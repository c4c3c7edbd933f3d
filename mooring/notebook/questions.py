"""Questions: what the commands ask, as functions of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..answers import ClusterView, PodExplanation, find_pods
from ..answers import explain as explain_pod
from ..answers.settings import Settings
from ..api.durations import EXPECTED, parse_duration
from ..config import SchedulerConfiguration, load_config, parse_config, parse_feature_gates
from ..errors import InputError
from ..scheduler import PluginSource
from ..sim import Simulation, SimulationReport
from .cluster import Cluster

ConfigSource: TypeAlias = SchedulerConfiguration | Mapping[str, Any] | str | Path | None
"""A configuration, plain data of one, or a file; None: kube-scheduler's defaults."""
PluginLike: TypeAlias = PluginSource | Path
Gates: TypeAlias = Mapping[str, bool] | str


def simulate(
    cluster: Cluster,
    *,
    config: ConfigSource = None,
    plugins: Iterable[PluginLike] = (),
    feature_gates: Gates = "",
    seed: int | None = None,
    until: str | float | None = None,
    explain: bool = False,
) -> SimulationReport:
    """Schedule the pods of the cluster that wait, in virtual time; what came of it.

    `plugins` are classes or Python files; `until` stops the clock, such as "2h" or 7200; `explain` keeps for each pod
    what every plugin said.
    """
    settings = _settings(config, plugins, feature_gates, seed)
    simulation = Simulation(
        cluster.objects,
        settings.config,
        seed=settings.seed,
        feature_gates=settings.feature_gates,
        plugins=settings.plugins,
        explain=explain,
        place_of=cluster.place_of,
    )
    return simulation.run(until_s=_seconds(until))


def explain(
    cluster: Cluster,
    pod: str,
    *,
    namespace: str | None = None,
    config: ConfigSource = None,
    plugins: Iterable[PluginLike] = (),
    feature_gates: Gates = "",
) -> PodExplanation:
    """Why `pod` is pending, or why it is where it is; `pod` is written as for `mooring explain`.

    InputError when the name stands for no pod, or for several.
    """
    settings = _settings(config, plugins, feature_gates, None)
    view = ClusterView.from_manifests(
        cluster.objects,
        settings.config,
        place_of=cluster.place_of,
        plugins=[plugin for plugin in settings.plugins if not isinstance(plugin, str)],
        plugin_files=[plugin for plugin in settings.plugins if isinstance(plugin, str)],
        feature_gates=settings.feature_gates,
    )
    found = find_pods(view, pod, namespace)
    if len(found) != 1:
        names = ", ".join(one.key for one in found)
        raise InputError(f'"{pod}": expected the name of one pod; got {len(found)}: {names}')
    return explain_pod(view, found[0])


def _settings(
    config: ConfigSource, plugins: Iterable[PluginLike], feature_gates: Gates, seed: int | None
) -> Settings:
    gates = (
        parse_feature_gates(feature_gates)
        if isinstance(feature_gates, str)
        else dict(feature_gates)
    )
    sources = tuple(str(one) if isinstance(one, Path) else one for one in plugins)
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


def _seconds(until: str | float | None) -> float | None:
    if not isinstance(until, str):
        return until
    seconds = parse_duration(until)
    if seconds is None:
        raise InputError(f'until: {EXPECTED}; got "{until}"')
    return seconds
