"""Run settings: the meaning of the flags of `bayplan run` together with the configuration file.

As in kube-scheduler, a file given with --config counts, and of the flags with the same meaning only those about the
leader election count beside it; the others are named at the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.text.durations import EXPECTED
from ...errors import ConfigError, InputError
from ..commands.run_server import ServingOptions
from ..options.config_options import read_bytes, read_configuration
from .command import FlagValues

if TYPE_CHECKING:
    from ...clock import Clock
    from ...config.types import LeaderElection, SchedulerConfiguration
    from ...kube.connection import Connection
    from ...kube.leader import ElectionTimes, LeaderElector, LeaseCandidate
    from ...releases.feature_gates import FeatureGates
    from ...releases.release import Release

MOST_EMULATED = 4
"""A release can emulate itself and the three before it."""
FILE_COUNTS = ("kube-api-qps", "kube-api-burst", "profiling", "contention-profiling")
"""Flags that have no effect beside --config."""
ELECTION_NAMES = {
    "leader-elect-resource-name": "lock-object-name",
    "leader-elect-resource-namespace": "lock-object-namespace",
}
"""Flags and their older names."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of `bayplan run`."""

    config: SchedulerConfiguration
    gates: FeatureGates
    flags: FlagValues
    policy: tuple[str, str] | None
    """Namespace and name of the ConfigMap with a Policy, which takes the place of `config`."""
    serving: ServingOptions
    remarks: tuple[str, ...]
    """Remarks for the start on flags and fields without effect."""


def read_settings(flags: FlagValues, version: str = "") -> RunSettings:
    """The settings, for `version` of Kubernetes unless a flag names one; InputError or ConfigError for wrong flags."""
    from ...config.gates import parse_feature_gates
    from ...config.releases import choose_release, release_warning

    version = flags.text("kubernetes-version") or version
    release, warning = choose_release(version), release_warning(version)
    text = flags.text("feature-gates").replace("kube:", "")  # gates may name their component
    emulated = _emulated_version(flags, release)
    gates = parse_feature_gates(text, version=emulated, release=release)
    policy = _policy_config_map(flags)
    config = _with_client(_configuration(flags, gates), flags)
    config = _with_election(config, flags)
    if policy is not None and "config" in flags.given:
        raise ConfigError("expected --config or a Policy; got both")
    return RunSettings(
        config=config,
        gates=gates,
        flags=flags,
        policy=policy,
        serving=_serving(flags),
        remarks=(
            *((warning,) if warning else ()),
            *flags.remarks(),
            *_ignored(flags),
            *_unused_fields(config),
        ),
    )


def unread_configuration(flags: FlagValues) -> dict[str, Any]:
    """The content of --config, unchecked; empty if it cannot be read, which `read_settings` reports."""
    from ...yaml_tree import iter_trees

    path = flags.text("config")
    try:
        trees = list(iter_trees(read_bytes(Path(path)), lambda key: None)) if path else []
    except (OSError, InputError):
        return {}
    return trees[0] if trees and isinstance(trees[0], dict) else {}


# The configuration


def _configuration(flags: FlagValues, gates: FeatureGates) -> SchedulerConfiguration:
    from msgspec.structs import replace

    policy = "" if _policy_config_map(flags) is not None else flags.text("policy-config-file")
    path = flags.text("config") or policy  # a ConfigMap comes before a Policy file
    provider = flags.text("algorithm-provider") or None
    config = read_configuration(Path(path) if path else None, provider, gates).config
    waits_s = flags.seconds("pod-max-in-unschedulable-pods-duration")
    config = replace(config, pod_max_in_unschedulable_pods_s=waits_s)
    if "scheduler-name" in flags.given:
        if "config" in flags.given:
            raise ConfigError("--scheduler-name: expected no --config, whose profiles have names")
        first, *others = config.profiles
        named = replace(first, scheduler_name=flags.text("scheduler-name"))
        config = replace(config, profiles=(named, *others))
    if "hard-pod-affinity-symmetric-weight" in flags.given:
        weight = flags.number("hard-pod-affinity-symmetric-weight", 0, 100)
        config = _with_affinity_weight(config, weight)
    return config


def _with_affinity_weight(config: SchedulerConfiguration, weight: int) -> SchedulerConfiguration:
    from msgspec.structs import replace

    from ...config.plugin_args import InterPodAffinityArgs

    profiles = tuple(
        replace(
            profile,
            plugin_config={
                **profile.plugin_config,
                "InterPodAffinity": InterPodAffinityArgs(hard_pod_affinity_weight=weight),
            },
        )
        for profile in config.profiles
    )
    return replace(config, profiles=profiles)


def _policy_config_map(flags: FlagValues) -> tuple[str, str] | None:
    name = flags.text("policy-configmap")
    prefers_file = flags.is_on("use-legacy-policy-config") and flags.text("policy-config-file")
    if not name or prefers_file:
        return None
    return flags.text("policy-configmap-namespace"), name


def _with_client(config: SchedulerConfiguration, flags: FlagValues) -> SchedulerConfiguration:
    from msgspec.structs import replace

    if "config" in flags.given:
        return config
    client = config.client_connection
    if "kube-api-qps" in flags.given:
        client = replace(client, qps=flags.decimal("kube-api-qps"))
    if "kube-api-burst" in flags.given:
        client = replace(client, burst=flags.number("kube-api-burst"))
    config = replace(config, client_connection=client)
    if "profiling" in flags.given:
        config = replace(config, enable_profiling=flags.is_on("profiling"))
    return config


def _with_election(config: SchedulerConfiguration, flags: FlagValues) -> SchedulerConfiguration:
    """The configuration with the flags of the election that are given; InputError if that cannot be."""
    from msgspec.structs import replace

    flags.one_of("leader-elect-resource-lock", "leases")
    changes: dict[str, object] = {}
    if "leader-elect" in flags.given:
        changes["leader_elect"] = flags.is_on("leader-elect")
    for what in ("resource-name", "resource-namespace"):
        name = f"leader-elect-{what}"
        text = flags.given.get(name, flags.given.get(ELECTION_NAMES[name]))
        if text == "":
            raise InputError(f"--{name}: expected a name; got none")
        if text is not None:
            changes[what.replace("-", "_")] = text
    for what in ("lease-duration", "renew-deadline", "retry-period"):
        name = f"leader-elect-{what}"
        if name in flags.given:
            seconds = flags.seconds(name)
            if not seconds:
                raise InputError(f'--{name}: {EXPECTED}; got "{flags.text(name)}"')
            changes[f"{what.replace('-', '_')}_s"] = seconds
    election = replace(config.leader_election, **changes)
    problem = _times(election).problem() if election.leader_elect else None
    if problem is not None:
        raise InputError(f"leaderElection.{problem}")
    return replace(config, leader_election=election)


def _emulated_version(flags: FlagValues, release: Release) -> str:
    """The version whose feature gates apply; without a flag, the version of the release."""
    from ...releases.release import RELEASES

    versions = list(RELEASES)
    known = versions[: versions.index(release.version) + 1][::-1][:MOST_EMULATED]
    given = flags.parts("emulated-version")
    version = given[-1].removeprefix("kube=") if given else release.version
    if version not in known:
        raise InputError(f'--emulated-version: expected {" or ".join(known)}; got "{version}"')
    return version


def _ignored(flags: FlagValues) -> Iterator[str]:
    if "config" not in flags.given:
        return
    for name in FILE_COUNTS:
        if name in flags.given:
            yield f"--{name} has no effect: --config counts"


def _unused_fields(config: SchedulerConfiguration) -> Iterator[str]:
    """Remarks on fields of the configuration that were changed and have no effect."""
    from ...config.types import ClientConnection, SchedulerConfiguration

    client, usual = config.client_connection, ClientConnection()
    if config.parallelism != SchedulerConfiguration().parallelism:
        yield "parallelism has no effect: all nodes are judged in one loop"
    for name, value, default in (
        ("contentType", client.content_type, usual.content_type),
        ("acceptContentTypes", client.accept_content_types, usual.accept_content_types),
    ):
        if value not in (default, "application/json"):
            yield f"clientConnection.{name} has no effect: requests and responses are in JSON"


# Serving and the log


def _serving(flags: FlagValues) -> ServingOptions:
    from ...web.tls import ServingTls

    def file(name: str) -> Path | None:
        return Path(flags.text(name)) if flags.text(name) else None

    for path in flags.parts("authorization-always-allow-paths"):
        if "*" in path[:-1]:
            problem = f'expected paths that have * at their end only; got "{path}"'
            raise InputError(f"--authorization-always-allow-paths: {problem}")
    return ServingOptions(
        address=flags.text("bind-address"),
        port=flags.number("secure-port", 0, 65535),
        tls=ServingTls(
            cert_file=file("tls-cert-file"),
            key_file=file("tls-private-key-file"),
            folder=file("cert-dir"),
            min_version=flags.one_of(
                "tls-min-version", "", *(f"VersionTLS1{minor}" for minor in range(4))
            ),
            ciphers=tuple(flags.parts("tls-cipher-suites")),
            by_name=_named_certificates(flags),
        ),
        flags=flags,
    )


def _named_certificates(flags: FlagValues) -> tuple[tuple[Path, Path, tuple[str, ...]], ...]:
    """Certificate, key and names of each --tls-sni-cert-key: `cert,key[:name,name]`, several behind each other."""
    found: list[tuple[Path, Path, tuple[str, ...]]] = []
    words = flags.parts("tls-sni-cert-key")
    while words:
        cert, *rest = words
        if not rest:
            raise InputError(f'--tls-sni-cert-key: expected CERT,KEY[:NAME,...]; got "{cert}"')
        key, colon, name = rest[0].partition(":")
        names = [name] if colon else []
        words = rest[1:]
        while colon and words and not words[0].endswith((".crt", ".pem", ".cert")):
            names.append(words.pop(0))
        found.append((Path(cert), Path(key), tuple(names)))
    return tuple(found)


def log_options(flags: FlagValues) -> dict[str, Any]:
    """The arguments of `set_up_logging`."""
    modules: dict[str, int] = {}
    for part in flags.parts("vmodule"):
        name, _, level = part.partition("=")
        if not name or not level.isdigit():
            raise InputError(f'--vmodule: expected NAME=NUMBER,...; got "{part}"')
        modules[name] = int(level)
    form = flags.one_of("logging-format", "text", "json")
    return {
        "verbosity": flags.number("v"),
        "as_json": form == "json",
        "is_split": flags.is_on(f"log-{form}-split-stream"),
        "modules": modules,
    }


def _times(election: LeaderElection) -> ElectionTimes:
    from ...kube.leader import ElectionTimes

    return ElectionTimes(
        election.lease_duration_s, election.renew_deadline_s, election.retry_period_s
    )


def make_elector(
    connection: Connection, config: SchedulerConfiguration, gates: FeatureGates, clock: Clock
) -> tuple[LeaderElector, LeaseCandidate | None]:
    """The elector for the lease that the configuration names, and a candidate if the API server chooses the holder."""
    from ...kube.leader import (
        CandidateSpec,
        CoordinatedElector,
        LeaderElector,
        LeaseCandidate,
        LeaseLock,
        make_identity,
    )

    election = config.leader_election
    times = _times(election)
    component = config.profiles[0].scheduler_name  # as kube-scheduler's events about the lease
    lock = LeaseLock(
        connection, election.resource_namespace, election.resource_name, clock, component
    )
    identity = make_identity()
    if not gates.enabled("CoordinatedLeaderElection"):
        return LeaderElector(lock, identity, clock, times), None
    spec = CandidateSpec(
        election.resource_namespace,
        election.resource_name,
        identity,
        binary_version=f"{gates.release.version}.0",
        emulation_version=f"{gates.version}.0",
    )
    elector = CoordinatedElector(lock, identity, clock, times)
    return elector, LeaseCandidate(connection, spec, clock)
