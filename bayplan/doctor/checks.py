"""Checks: findings about a cluster, from its facts and the scheduler that answers are given for."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..api.pod import Pod
from ..api.wire.sourced import SourcedNode
from ..api.workload_kinds import find_values
from ..config.gates import parse_feature_gates
from ..config.load import parse_reading
from ..config.releases import release_warning
from ..config.types import SchedulerConfiguration
from ..errors import ConfigError
from ..releases.feature_gates import FeatureGates
from ..releases.release import parse_release
from ..scheduler import plugin_faults
from ..sim.settings import Settings

CONTROLLERS = {
    "descheduler": "evicts pods by its own policy: pods move although no question says so",
    "karpenter": "adds nodes for waiting pods and consolidates others: pods may get nodes that are not there yet",
    "cluster-autoscaler": "adds nodes for waiting pods and removes empty ones",
    "kueue": "holds pods or jobs back until there is quota: waiting pods may be held by it, not by the scheduler",
    "volcano": "brings a scheduler of its own, whose rules are not these",
    "yunikorn": "brings a scheduler of its own, and changes the schedulerName of pods at admission",
    "keda": "changes the number of pods",
}
"""Controllers by a word of their image."""
SIMULATED = {
    "karpenter": "bayplan plan, bayplan simulate --pools",
    "cluster-autoscaler": "bayplan simulate --pools",
}


KUBELET_SKEW = 3
"""Minor releases by which a kubelet may be older than its API server."""
REACH_S = 1.0
PORTS = {"http": 80, "https": 443}
KUBELET_VERSION = "status.nodeInfo.kubeletVersion"
_RELEASE = re.compile(r"v?(\d+\.\d+)")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fact about a cluster, and its effect on answers."""

    subject: str
    """`version`, `schedulers`, `configuration`, `admission`, `controllers`, `gates` or `permissions`."""
    text: str
    means: str = ""
    """The affected answers, and the effect on them."""
    command: str = ""
    """The command that helps."""
    differs: bool = False
    """Whether answers may differ from those of the cluster's scheduler because of it."""


configuration, permissions, admission = (
    partial(Finding, subject=subject) for subject in ("configuration", "permissions", "admission")
)


class SchedulerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A kube-scheduler that runs as a pod: the flags that decisions depend on."""

    pods: tuple[str, ...]
    config_file: str = ""
    config_source: str = ""
    """`hostPath /etc/kubernetes/scheduler.yaml` or `configmap kube-system/NAME`: the place of the file."""
    feature_gates: str = ""


class FoundConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """A KubeSchedulerConfiguration in a ConfigMap."""

    source: str
    """`configmap kube-system/NAME, key config.yaml`."""
    text: str
    command: str
    """The command that writes it to a file."""


class PodWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook or policy that sees pods when they are created or bound."""

    name: str
    mutates: bool
    at_binding: bool = False


class ClusterFacts(msgspec.Struct, kw_only=True):
    """All that checks read."""

    objects: list[Any]
    version: str = ""
    is_live: bool = False
    kubelets: Counter[str] = msgspec.field(default_factory=Counter)
    """Number of nodes by the release of their kubelet: `1.36`."""
    commands: list[SchedulerCommand] = msgspec.field(default_factory=list)
    configurations: list[FoundConfiguration] = msgspec.field(default_factory=list)
    webhooks: list[PodWebhook] = msgspec.field(default_factory=list)
    unreadable_kinds: list[str] = msgspec.field(default_factory=list)
    """`pods`, `replicasets.apps`: kinds that may not be listed and that answers are made of."""
    unreadable_places: list[str] = msgspec.field(default_factory=list)
    """Places that only the doctor reads: config maps, webhooks."""


def count_kubelets(objects: Iterable[object]) -> Counter[str]:
    """Nodes by the release of their kubelet; those that were read without their source, or name none, do not count."""
    nodes = [msgspec.json.decode(obj.source) for obj in objects if isinstance(obj, SourcedNode)]
    texts = [value for tree in nodes for _, value in find_values(tree, KUBELET_VERSION)]
    return Counter(match[1] for match in map(_RELEASE.match, map(str, texts)) if match)


def find_all(facts: ClusterFacts, settings: Settings, has_config: bool) -> list[Finding]:
    """All findings; first those that may make answers differ."""
    found = [
        *_version(facts, settings),
        *_kubelets(facts, settings),
        *_permissions(facts),
        *configuration_findings(facts, settings, has_config),
        *object_findings(facts.objects, settings),
        *_admission(facts),
    ]
    return sorted(found, key=lambda one: not one.differs)


def object_findings(objects: Sequence[object], settings: Settings) -> Iterator[Finding]:
    """The findings for which the objects of a question are enough."""
    pods = [obj for obj in objects if isinstance(obj, Pod) and not obj.is_finished]
    yield from _schedulers(pods, settings)
    yield from _controllers(pods)
    yield from _gates(pods)


def short_note(objects: Sequence[object], settings: Settings) -> str:
    """One line for an answer, with the findings about its own objects; empty if there are none."""
    found = [one.text for one in object_findings(objects, settings) if one.differs]
    return f"answers may differ: {'; '.join(found)}. See: bayplan doctor" if found else ""


def _version(facts: ClusterFacts, settings: Settings) -> Iterator[Finding]:
    rules = f"the rules of {settings.release.patch} are used"
    if not facts.version:
        yield Finding(
            subject="version",
            text="the version of Kubernetes is not known",
            means=rules,
            command=f"--kubernetes-version {_newest(facts.kubelets) or '1.35'}",
            differs=True,
        )
        return
    warning = release_warning(facts.version)
    yield Finding(
        subject="version",
        text=f"Kubernetes {facts.version}: {rules}",
        means=warning,
        differs=bool(warning),
    )


def _kubelets(facts: ClusterFacts, settings: Settings) -> Iterator[Finding]:
    """Kubelets that an API server of the release does not support: newer ones, and much older ones."""
    _, minor = parse_release(settings.release.version)
    known = (f"1.{minor - i}" for i in range(KUBELET_SKEW + 1))
    others = facts.kubelets - Counter({each: facts.kubelets[each] for each in known})
    if others:
        yield Finding(
            subject="version",
            text=f"kubelets that Kubernetes {settings.release.version} does not support: {_counted(others, 'node')}",
            means="the cluster is of another release, or these nodes are stand-ins",
            command=f"--kubernetes-version {_newest(facts.kubelets)}",
            differs=True,
        )


def _newest(kubelets: Counter[str]) -> str:
    return max(kubelets, key=parse_release, default="")


def _permissions(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.unreadable_kinds:
        yield permissions(
            text=f"may not be listed: {', '.join(facts.unreadable_kinds)}",
            means="questions about the live cluster end with an error; what these objects require is not known",
            command="kubectl apply -f deploy/10-rbac.yaml has a role with these permissions",
            differs=True,
        )
    if facts.unreadable_places:
        yield permissions(
            text=f"not checked, as they may not be listed: {', '.join(facts.unreadable_places)}",
            means="configurations and webhooks there are not found by this command; answers do not read them",
        )
    if not facts.is_live:
        yield permissions(
            text="files have no webhooks, no config maps and no flags of the scheduler",
            means="these were not checked",
            command="bayplan doctor, without -f, checks a live cluster",
        )


def _schedulers(pods: Sequence[Pod], settings: Settings) -> Iterator[Finding]:
    profiles = {profile.scheduler_name for profile in settings.effective_config.profiles}
    counts = Counter(pod.scheduler_name for pod in pods)
    known = {name: number for name, number in counts.items() if name in profiles}
    unknown = {name: number for name, number in counts.items() if name not in profiles}
    if known:
        yield Finding(subject="schedulers", text=f"schedulers with a profile: {_counted(known)}")
    if unknown:
        yield Finding(
            subject="schedulers",
            text=f"schedulers without a profile: {_counted(unknown)}",
            means="questions about pods of these are refused; in other answers their pods stay where they are",
            command="--config FILE with a profile of that name; bayplan shadow judges them with the default profile",
            differs=True,
        )


def _controllers(pods: Sequence[Pod]) -> Iterator[Finding]:
    images = {c.image for pod in pods for c in pod.spec.containers or ()}
    for word, effect in CONTROLLERS.items():
        if any(word in image for image in images):
            yield Finding(
                subject="controllers",
                text=f"{word} runs in the cluster",
                means=effect,
                command=SIMULATED.get(word, ""),
                differs=True,
            )


def _gates(pods: Sequence[Pod]) -> Iterator[Finding]:
    waiting = [pod for pod in pods if not pod.node_name]
    gates = Counter(g.name for pod in waiting for g in pod.spec.scheduling_gates or ())
    if gates:
        yield Finding(
            subject="gates",
            text=f"pods with scheduling gates: {_counted(gates)}",
            means="they are not scheduled until the owner of the gate removes it; answers leave them waiting",
        )


def _admission(facts: ClusterFacts) -> Iterator[Finding]:
    mutating = [hook.name for hook in facts.webhooks if hook.mutates and not hook.at_binding]
    if mutating:
        yield admission(
            text=f"webhooks or policies that change new pods: {', '.join(sorted(set(mutating)))}",
            means="pods in manifests become other pods in the cluster; pods that exist are read as they were changed."
            " Concerns simulate, what-if, capacity and plan with -f",
            command="kubectl apply --dry-run=server -o yaml -f FILE prints the objects as they would be stored",
            differs=True,
        )
    binding = [hook.name for hook in facts.webhooks if hook.at_binding]
    if binding:
        yield admission(
            text=f"webhooks that see bindings: {', '.join(sorted(set(binding)))}",
            means="a binding may be refused after the decision; the pod is then tried again",
            differs=True,
        )


def _counted(counts: dict[str, int] | Counter[str], noun: str = "pod") -> str:
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{name} ({n:,} {noun if n == 1 else f'{noun}s'})" for name, n in ordered)


# The scheduler's configuration and its flags


def configuration_findings(
    facts: ClusterFacts, settings: Settings, has_config: bool
) -> Iterator[Finding]:
    """Findings about the configuration in use, and about the cluster's schedulers."""
    if has_config:
        yield configuration(text="the configuration of --config is used")
        yield from _extenders(settings.effective_config, "--config")
    else:
        yield from _default_is_used(facts)
        for found in facts.configurations:
            yield from _found(found, settings)
    for command in facts.commands:
        yield from _gate_differences(command.pods[0], command.feature_gates, settings)


def _default_is_used(facts: ClusterFacts) -> Iterator[Finding]:
    """Whether the default configuration is that of the cluster."""
    for command in facts.commands:
        if command.config_file and not command.config_source.startswith("configmap"):
            yield configuration(
                text=f"{', '.join(command.pods)} reads its configuration from {command.config_source}",
                means="the default configuration is used instead: profiles, plugins and weights may differ",
                command="copy the file from the node, and pass it with --config",
                differs=True,
            )
    if not facts.is_live:
        yield configuration(
            text="the default configuration is used; files do not tell that of the cluster",
            command="--config FILE",
        )
    elif not facts.commands and not facts.configurations:
        yield configuration(
            text="no kube-scheduler is visible as a pod: the default configuration is used",
            means="a managed control plane mostly runs the default; bayplan shadow shows whether it does",
            command="bayplan shadow --for 10m",
        )
    elif not facts.configurations and not any(one.config_file for one in facts.commands):
        names = ", ".join(name for one in facts.commands for name in one.pods)
        yield configuration(text=f"{names} runs with the default configuration")


def _found(found: FoundConfiguration, settings: Settings) -> Iterator[Finding]:
    """A configuration in the cluster that is not the one in use."""
    gates = FeatureGates.of(settings.feature_gates)
    try:
        reading = parse_reading(found.text, found.source, gates, plugin_faults((), gates.release))
    except ConfigError as error:
        lines = str(error).splitlines()
        yield configuration(
            text=f"{found.source}: {lines[0].removeprefix(f'{found.source}: ')}"
            + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""),
            means="it has something that is not here, such as a plugin written in Go: its decisions differ",
            command=f"{found.command}; bayplan config check scheduler.yaml; --plugins FILE has Python plugins",
            differs=True,
        )
        return
    if reading.config == settings.effective_config:
        yield configuration(text=f"{found.source} is the configuration in use")
        return
    profiles = ", ".join(profile.scheduler_name for profile in reading.config.profiles)
    yield configuration(
        text=f"{found.source} has a configuration (profiles: {profiles}), which is not used",
        means="the default configuration is used instead: plugins, weights and arguments may differ",
        command=f"{found.command}; then --config scheduler.yaml",
        differs=True,
    )
    yield from _extenders(reading.config, found.source)


def _extenders(config: SchedulerConfiguration, source: str) -> Iterator[Finding]:
    for extender in config.extenders:
        problem = _reach_problem(extender.url_prefix)
        yield configuration(
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


def _gate_differences(pod: str, text: str, settings: Settings) -> Iterator[Finding]:
    """Feature gates of the scheduler that differ from those in use."""
    if not text:
        return
    ours = FeatureGates.of(settings.feature_gates)
    try:
        theirs = parse_feature_gates(text, f"{pod}: --feature-gates", release=ours.release)
    except ConfigError as error:
        yield configuration(
            text=str(error).splitlines()[0],
            means="a gate that is not known here has no effect on answers",
            differs=True,
        )
        return
    names = [word.partition("=")[0].strip() for word in text.split(",")]
    other = [name for name in names if name and theirs.enabled(name) != ours.enabled(name)]
    if other:
        yield configuration(
            text=f"{pod} has other feature gates: {', '.join(other)}",
            means="rules behind these gates differ",
            command=f"--feature-gates={text}",
            differs=True,
        )
