"""Cluster Autoscaler flags: its command line and the ConfigMap of its expander `priority`, as clusters have them.

Names and defaults are those of cluster-autoscaler 1.36 (config/flags/flags.go). Flags that exist and are not modelled
are accepted with a note; other names are errors.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from ..api.text.durations import parse_duration
from ..choices import CLUSTER_AUTOSCALER, EXPANDERS, LEAST_WASTE
from ..errors import InputError
from ..manifests.sources import find_files, open_source
from ..yaml_tree import YamlError, iter_trees

PRIORITIES = "cluster-autoscaler-priority-expander"
"""The name of the ConfigMap."""

Seconds: TypeAlias = float
Share: TypeAlias = float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAutoscalerFlags:
    """The flags that are modelled, with `_` for `-`."""

    expander: str = LEAST_WASTE
    """One or several, separated by commas: each chooses among the best of those before it."""
    balance_similar_node_groups: bool = False
    max_nodes_per_scaleup: int = 1000
    max_nodes_total: int = 0
    """0 for any number."""
    expendable_pods_priority_cutoff: int = -10
    new_pod_scale_up_delay: Seconds = 0.0
    scan_interval: Seconds = 10.0
    scale_down_enabled: bool = True
    scale_down_delay_after_add: Seconds = 600.0
    scale_down_delay_after_delete: Seconds = 0.0
    scale_down_delay_after_failure: Seconds = 180.0
    scale_down_unneeded_time: Seconds = 600.0
    scale_down_unready_time: Seconds = 1200.0
    scale_down_unready_enabled: bool = True
    scale_down_utilization_threshold: Share = 0.5
    scale_down_gpu_utilization_threshold: Share = 0.5
    scale_down_non_empty_candidates_count: int = 30
    unremovable_node_recheck_timeout: Seconds = 300.0
    ignore_daemonsets_utilization: bool = False
    max_scale_down_parallelism: int = 10
    max_drain_parallelism: int = 1
    max_graceful_termination_sec: int = 600
    max_pod_eviction_time: Seconds = 120.0
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_custom_controller_pods: bool = True
    memory_difference_ratio: Share = 0.015
    max_allocatable_difference_ratio: Share = 0.05
    max_free_difference_ratio: Share = 0.05

    @property
    def expanders(self) -> tuple[str, ...]:
        """The chain of expanders."""
        return tuple(self.expander.split(","))


DEFAULT_FLAGS = ClusterAutoscalerFlags()
_KINDS = {field.name: str(field.type) for field in fields(ClusterAutoscalerFlags)}

_NOT_MODELLED = """
allowed-scheduler-names async-node-groups aws-use-static-instance-list balancing-ignore-label balancing-label
blocking-system-pod-distruption-timeout bulk-mig-instances-listing-enabled bypassed-scheduler-names
capacity-buffer-controller-enabled capacity-buffer-pod-dry-run-enabled capacity-buffer-pod-injection-enabled
capacity-quotas-enabled check-capacity-batch-processing check-capacity-processor-instance
check-capacity-provisioning-request-batch-timebox check-capacity-provisioning-request-max-batch-size
cluster-snapshot-parallelism clusterapi-cloud-config-authoritative cordon-node-before-terminating cores-total
daemonset-eviction-for-empty-nodes daemonset-eviction-for-occupied-nodes debugging-snapshot-enabled
drain-priority-config dynamic-node-delete-delay-after-taint-enabled enable-csi-node-aware-scheduling
enable-dynamic-resource-allocation enable-proactive-scaleup enable-provisioning-requests enforce-node-group-min-size
estimator fastpath-binpacking-enabled feature-gates force-delete-failed-nodes force-delete-unregistered-nodes force-ds
frequent-loops-enabled gce-concurrent-refreshes gce-mig-instances-min-refresh-wait-time gpu-total grpc-expander-cert
grpc-expander-url ignore-mirror-pods-utilization ignore-taint initial-node-group-backoff-duration max-binpacking-time
max-bulk-soft-taint-count max-bulk-soft-taint-time max-failing-time max-inactivity max-node-group-backoff-duration
max-node-provision-time max-node-skip-eval-time-tracker-enabled max-node-startup-time
max-nodegroup-binpacking-duration max-startup-time max-total-unready-percentage memory-total min-replica-count
node-delete-delay-after-taint node-deletion-batcher-interval node-deletion-candidate-ttl node-deletion-delay-timeout
node-group-backoff-reset-timeout node-info-cache-expire-time node-removal-latency-tracking-enabled nodes
ok-total-unready-count parallel-scale-up pod-injection-limit predicate-parallelism
provisioning-request-initial-backoff-time provisioning-request-max-backoff-cache-size
provisioning-request-max-backoff-time salvo-scale-up salvo-scale-up-budget scale-down-candidates-pool-min-count
scale-down-candidates-pool-ratio scale-down-delay-type-local scale-down-simulation-timeout scale-from-unschedulable
scale-up-from-zero scaleup-simulation-for-skipped-node-groups-enabled scheduler-config-file startup-taint
startup-taint-prefix status-taint
"""
_WITHOUT_EFFECT = """
add-dir-header address alsologtostderr cloud-config cloud-provider cloud-provider-gce-l7lb-src-cidrs
cloud-provider-gce-lb-src-cidrs cluster-name emit-per-nodegroup-metrics kube-api-content-type kube-client-burst
kube-client-qps kubeconfig kubernetes leader-elect leader-elect-lease-duration leader-elect-renew-deadline
leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period
log-backtrace-at log-dir log-file log-file-max-size log-flush-frequency log-json-info-buffer-size
log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format logtostderr namespace
node-group-auto-discovery one-output profiling record-duplicated-events regional skip-headers skip-log-headers
status-config-map-name stderrthreshold user-agent v vmodule write-status-configmap
"""
_REMOVED = """
gce-expander-ephemeral-storage-support lease-resource-name max-autoprovisioned-node-group-count max-empty-bulk-delete
node-autoprovisioning-enabled parallel-drain
"""
NOT_MODELLED = frozenset(_NOT_MODELLED.split())
WITHOUT_EFFECT = frozenset(_WITHOUT_EFFECT.split())
"""Flags that change no decision, and need no note."""
REMOVED = frozenset(_REMOVED.split())
"""Flags of releases before 1.33."""


@dataclass(frozen=True, slots=True)
class PriorityRules:
    """The priorities of groups by patterns of their names."""

    rules: tuple[tuple[int, tuple[re.Pattern[str], ...]], ...]

    def priority_of(self, group: str) -> int | None:
        """The highest priority with a pattern that is found in the name; None if there is none."""
        found = [
            priority
            for priority, patterns in self.rules
            if any(pattern.search(group) for pattern in patterns)
        ]
        return max(found, default=None)


@dataclass(slots=True)
class FlagReading:
    """The flags of files and of the command line."""

    flags: ClusterAutoscalerFlags = DEFAULT_FLAGS
    priorities: PriorityRules | None = None
    notes: tuple[str, ...] = ()


def parse_flags(
    words: Iterable[str], place: str, flags: ClusterAutoscalerFlags = DEFAULT_FLAGS
) -> FlagReading:
    """Read flags as `--name=value`, `--name value` or `name=value`; raises InputError for each that is wrong."""
    changes: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in _pairs(list(words)):
        field_name = name.replace("-", "_")
        given = f"{place}: --{name}" + ("" if value is None else f"={value}")
        if field_name in _KINDS:
            changes[field_name] = _parse(name, value, _KINDS[field_name], place)
        elif name in NOT_MODELLED:
            notes.append(f"{given}: not modelled")
        elif name in REMOVED:
            notes.append(f"{given}: no flag of {CLUSTER_AUTOSCALER} since 1.33; without effect")
        elif name not in WITHOUT_EFFECT:
            raise InputError(
                f'{place}: expected a flag of {CLUSTER_AUTOSCALER}; got "--{name}"{_hint(name)}'
            )
    return FlagReading(replace(flags, **changes), notes=tuple(notes))


def _hint(name: str) -> str:
    known = [*NOT_MODELLED, *WITHOUT_EFFECT, *(one.replace("_", "-") for one in _KINDS)]
    close = get_close_matches(name, known, 1)
    return f" (is it --{close[0]}?)" if close else ""


def _pairs(words: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    """Names without leading dashes, and values; a value may be the next word, except of a flag that is true or false.

    As in the program, `_` in a name is the same as `-`.
    """
    i = 0
    while i < len(words):
        name, sign, value = words[i].lstrip("-").partition("=")
        name = name.replace("_", "-")
        is_switch = _KINDS.get(name.replace("-", "_")) == "bool"
        follows = i + 1 < len(words) and not words[i + 1].startswith("-")
        if not sign and not is_switch and words[i].startswith("-") and follows:
            value, sign, i = words[i + 1], "=", i + 1
        yield name, value if sign else None
        i += 1


def _parse(name: str, text: str | None, kind: str, place: str) -> Any:
    found: Any = None
    if kind == "bool":
        expected, found = "true or false", _BOOLS.get("true" if text is None else text.lower())
    elif kind == "Seconds":
        expected = "a duration such as 10m"
        found = None if text is None else parse_duration(text)
        if found is not None and name == "scan-interval" and not found:
            found = None
    elif kind == "int":
        expected = "a whole number"
        found = int(text) if text and re.fullmatch(r"-?[0-9]{1,9}", text) else None
    elif kind == "Share":
        expected, found = "a share such as 0.5", _share(text)
    else:
        expected = f"one or several of {', '.join(EXPANDERS)}, separated by commas"
        found = text if text and all(one in EXPANDERS for one in text.split(",")) else None
    if found is None:
        got = "no value" if text is None else f'"{text}"'
        raise InputError(f"{place}: --{name}: expected {expected}; got {got}")
    return found


_BOOLS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _share(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def read_flags(paths: Iterable[str | Path], words: Sequence[str] = ()) -> FlagReading:
    """Flags from manifests of Cluster Autoscaler and of its ConfigMap, then from `words`, which win.

    A file has Deployments, Pods or other objects with a container that runs cluster-autoscaler, and the ConfigMap
    cluster-autoscaler-priority-expander. Raises InputError for a file with neither.
    """
    found = FlagReading()
    for file in find_files(paths):
        is_empty = True
        try:
            for number, tree in enumerate(iter_trees(bytes(open_source(file).data[:])), 1):
                place = f"{file}: document {number}"
                for one in tree.get("items") or [tree] if isinstance(tree, Mapping) else ():
                    is_empty &= not _read_object(one, place, found)
        except YamlError as error:
            raise InputError(f"{file}: {error}") from None
        if is_empty:
            raise InputError(
                f"{file}: expected a workload that runs {CLUSTER_AUTOSCALER}, "
                f"or the ConfigMap {PRIORITIES}; got neither"
            )
    last = parse_flags(words, "--autoscaler-flag", found.flags)
    return FlagReading(last.flags, found.priorities, (*found.notes, *last.notes))


def _read_object(tree: Any, place: str, found: FlagReading) -> bool:
    """Read one object into the findings; True if it is about Cluster Autoscaler."""
    if not isinstance(tree, Mapping):
        return False
    if tree.get("kind") == "ConfigMap":
        if (tree.get("metadata") or {}).get("name") != PRIORITIES:
            return False
        found.priorities = read_priorities((tree.get("data") or {}).get("priorities"), place)
        return True
    is_found = False
    for container in _containers(tree):
        words = _command_line(container, place)
        if not any(
            CLUSTER_AUTOSCALER in word.rpartition("/")[2].split("=")[0] for word in words[:1]
        ) and (
            CLUSTER_AUTOSCALER not in str(container.get("name") or container.get("image") or "")
        ):
            continue
        reading = parse_flags(
            words if words[:1] and words[0][:1] == "-" else words[1:], place, found.flags
        )
        found.flags, found.notes = reading.flags, (*found.notes, *reading.notes)
        is_found = True
    return is_found


def _command_line(container: Mapping[str, Any], place: str) -> list[str]:
    """The words of command and args; of `sh -c TEXT` those of the command that runs Cluster Autoscaler."""
    words = [str(word) for part in ("command", "args") for word in container.get(part) or ()]
    if (
        len(words) < 3
        or not words[1].startswith("-")
        or "c" not in words[1]
        or CLUSTER_AUTOSCALER not in words[2]
    ):
        return words
    lexer = shlex.shlex(words[2], posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        inner = list(lexer)
    except ValueError as error:
        raise InputError(f"{place}: expected a shell command; {error}: {words[2]}") from None
    start = next(i for i, word in enumerate(inner) if CLUSTER_AUTOSCALER in word)
    end = next((i for i in range(start, len(inner)) if set(inner[i]) <= set("();<>|&")), len(inner))
    if end < len(inner) and inner[end - 1].isdigit() and inner[end][0] in "<>":
        end -= 1  # the number of a stream that is redirected
    return inner[start:end]


def _containers(tree: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers of a pod, or of the template of a workload."""
    spec = tree.get("spec")
    while isinstance(spec, Mapping) and isinstance(spec.get("template"), Mapping):
        spec = spec["template"].get("spec")
    found = spec.get("containers") if isinstance(spec, Mapping) else None
    return [one for one in found or () if isinstance(one, Mapping)]


def read_priorities(text: Any, place: str) -> PriorityRules:
    """The rules of the ConfigMap; raises InputError when they are wrong."""
    path = f"{place}: data.priorities"
    try:
        tree = next(iter(iter_trees(text)), None) if isinstance(text, str) else None
    except YamlError as error:
        raise InputError(f"{path}: expected YAML; {error}") from None
    if not isinstance(tree, Mapping) or not tree:
        raise InputError(f"{path}: expected priorities, each with a list of patterns; got {text!r}")
    rules = []
    for priority, patterns in tree.items():
        if not re.fullmatch(r"-?[0-9]+", str(priority)) or not isinstance(patterns, list):
            raise InputError(
                f"{path}: expected a whole number with a list of patterns; got {priority!r}"
            )
        try:
            rules.append((int(priority), tuple(re.compile(str(one)) for one in patterns)))
        except re.error as error:
            raise InputError(f"{path}: {priority}: expected regular expressions; {error}") from None
    return PriorityRules(tuple(rules))
