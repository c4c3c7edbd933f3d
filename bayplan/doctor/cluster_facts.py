"""Cluster facts: facts about a cluster that are read before a question, and one finding about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from ..api.wire.sourced import SourcedNode
from ..api.workload_kinds import find_values

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
