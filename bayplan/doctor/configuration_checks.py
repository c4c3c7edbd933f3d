"""Configuration checks: findings about the scheduler's configuration and its flags."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from ..config import SchedulerConfiguration, parse_feature_gates, parse_reading
from ..errors import ConfigError
from ..framework.feature_gates import FeatureGates
from ..scheduler import plugin_faults
from ..sim.settings import Settings
from .cluster_facts import ClusterFacts, Finding, FoundConfiguration

REACH_S = 1.0
PORTS = {"http": 80, "https": 443}


def configuration_findings(
    facts: ClusterFacts, settings: Settings, has_config: bool
) -> Iterator[Finding]:
    """Findings about the configuration that is used, and those of the cluster."""
    if has_config:
        yield Finding(subject="configuration", text="the configuration of --config is used")
        yield from _extenders(settings.effective_config, "--config")
    else:
        yield from _default_is_used(facts)
        for found in facts.configurations:
            yield from _found(found, settings)
    for command in facts.commands:
        yield from _gates(command.pods[0], command.feature_gates, settings)


def _default_is_used(facts: ClusterFacts) -> Iterator[Finding]:
    """Whether the default configuration is that of the cluster."""
    for command in facts.commands:
        if command.config_file and not command.config_source.startswith("configmap"):
            yield Finding(
                subject="configuration",
                text=f"{', '.join(command.pods)} reads its configuration from {command.config_source}",
                means="the default configuration is used instead: profiles, plugins and weights may differ",
                command="copy the file from the node, and pass it with --config",
                differs=True,
            )
    if not facts.is_live:
        yield Finding(
            subject="configuration",
            text="the default configuration is used; files do not tell that of the cluster",
            command="--config FILE",
        )
    elif not facts.commands and not facts.configurations:
        yield Finding(
            subject="configuration",
            text="no kube-scheduler is visible as a pod: the default configuration is used",
            means="a managed control plane mostly runs the default; bayplan shadow shows whether it does",
            command="bayplan shadow --for 10m",
        )
    elif not facts.configurations and not any(one.config_file for one in facts.commands):
        names = ", ".join(name for one in facts.commands for name in one.pods)
        yield Finding(subject="configuration", text=f"{names} runs with the default configuration")


def _found(found: FoundConfiguration, settings: Settings) -> Iterator[Finding]:
    """A configuration in the cluster that is not the one in use."""
    gates = FeatureGates.of(settings.feature_gates)
    try:
        reading = parse_reading(found.text, found.source, gates, plugin_faults((), gates.release))
    except ConfigError as error:
        lines = str(error).splitlines()
        yield Finding(
            subject="configuration",
            text=f"{found.source}: {lines[0].removeprefix(f'{found.source}: ')}"
            + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""),
            means="it has something that is not here, such as a plugin written in Go: its decisions differ",
            command=f"{found.command}; bayplan config check scheduler.yaml; --plugins FILE has Python plugins",
            differs=True,
        )
        return
    if reading.config == settings.effective_config:
        yield Finding(subject="configuration", text=f"{found.source} is the configuration in use")
        return
    profiles = ", ".join(profile.scheduler_name for profile in reading.config.profiles)
    yield Finding(
        subject="configuration",
        text=f"{found.source} has a configuration (profiles: {profiles}), which is not used",
        means="the default configuration is used instead: plugins, weights and arguments may differ",
        command=f"{found.command}; then --config scheduler.yaml",
        differs=True,
    )
    yield from _extenders(reading.config, found.source)


def _extenders(config: SchedulerConfiguration, source: str) -> Iterator[Finding]:
    for extender in config.extenders:
        problem = _reach_problem(extender.url_prefix)
        yield Finding(
            subject="configuration",
            text=f"{source}: extender {extender.url_prefix}" + (f": {problem}" if problem else ""),
            means="it is not called by shadow, replay and questions about scores"
            + ("; where it is called, answers fail" if problem else ""),
            command="run the command where the extender can be reached" if problem else "",
            differs=True,
        )


def _reach_problem(url: str) -> str:
    """Reason why no connection to an extender can be made; "" if one can."""
    parts = urlsplit(url)
    try:
        address = (parts.hostname or "", parts.port or PORTS.get(parts.scheme, 80))
        with socket.create_connection(address, timeout=REACH_S):
            return ""
    except (OSError, ValueError) as error:
        return f"cannot be reached ({error})"


def _gates(pod: str, text: str, settings: Settings) -> Iterator[Finding]:
    """Feature gates of the scheduler that differ from those in use."""
    if not text:
        return
    ours = FeatureGates.of(settings.feature_gates)
    try:
        theirs = parse_feature_gates(text, f"{pod}: --feature-gates", release=ours.release)
    except ConfigError as error:
        yield Finding(
            subject="configuration",
            text=str(error).splitlines()[0],
            means="a gate that is not known here has no effect on answers",
            differs=True,
        )
        return
    names = [word.partition("=")[0].strip() for word in text.split(",")]
    other = [name for name in names if name and theirs.enabled(name) != ours.enabled(name)]
    if other:
        yield Finding(
            subject="configuration",
            text=f"{pod} has other feature gates: {', '.join(other)}",
            means="rules behind these gates differ",
            command=f"--feature-gates={text}",
            differs=True,
        )
