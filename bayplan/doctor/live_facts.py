"""Live facts: reads a cluster as far as it may be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import ApiError
from ..kube.cluster_reader import FORBIDDEN, KINDS_READ, WORKLOADS, read_kind
from ..kube.connection import Connection
from ..kube.discovery import find_served
from ..kube.live_cluster import read_version
from .checks import ClusterFacts, FoundConfiguration, PodWebhook, SchedulerCommand

Tree = Mapping[str, Any]
NOT_FOUND = 404
SYSTEM = "kube-system"
SCHEDULER = "kube-scheduler"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
WEBHOOK_KINDS = {
    "mutatingwebhookconfigurations": True,
    "validatingwebhookconfigurations": False,
    "mutatingadmissionpolicies": True,
}
"""By plural: whether it changes objects."""
BINDING = "pods/binding"


async def read_facts(connection: Connection) -> ClusterFacts:
    """Read all that may be read. Raises ApiError when the server cannot be reached."""
    facts = ClusterFacts(objects=[], version=await read_version(connection), is_live=True)
    for resource in await find_served(connection, (*WORKLOADS, *KINDS_READ)):
        try:
            facts.objects += await read_kind(connection, resource)
        except ApiError as error:
            if error.code != FORBIDDEN:
                raise
            facts.unreadable_kinds.append(resource.name)
    facts.commands = list(_commands(await _items(connection, facts, *_system("pods"))))
    facts.configurations = list(
        _configurations(await _items(connection, facts, *_system("configmaps")))
    )
    for plural, mutates in WEBHOOK_KINDS.items():
        items = await _items(connection, facts, f"{WEBHOOKS}/{plural}", plural)
        facts.webhooks += _webhooks(items, mutates)
    return facts


def _system(plural: str) -> tuple[str, str]:
    return f"/api/v1/namespaces/{SYSTEM}/{plural}", f"{plural} in {SYSTEM}"


async def _items(connection: Connection, facts: ClusterFacts, path: str, name: str) -> list[Tree]:
    """The objects at a path; none if they are not served or may not be read, which is noted."""
    try:
        return list((await connection.get(path)).get("items") or ())
    except ApiError as error:
        if error.code == FORBIDDEN:
            facts.unreadable_places.append(name)
        elif error.code != NOT_FOUND:
            raise
        return []


def _commands(pods: Iterable[Tree]) -> Iterator[SchedulerCommand]:
    """The kube-schedulers among the pods, those with equal flags together."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for pod in pods:
        name, spec = str(pod["metadata"]["name"]), pod.get("spec") or {}
        for container in spec.get("containers") or ():
            words = [*(container.get("command") or ()), *(container.get("args") or ())]
            if not any(str(word).rpartition("/")[2] == SCHEDULER for word in words):
                continue
            given = (word[2:] for word in map(str, words) if word.startswith("--"))
            flags = dict(flag.split("=", 1) for flag in given if "=" in flag)
            file = flags.get("config", "")
            place = _place_of(file, container, spec) if file else ""
            found.setdefault((file, place, flags.get("feature-gates", "")), []).append(name)
    for (file, place, gates), names in found.items():
        yield SchedulerCommand(
            pods=tuple(names), config_file=file, config_source=place, feature_gates=gates
        )


def _place_of(file: str, container: Tree, spec: Tree) -> str:
    """Source of the file of a container."""
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    mounts = sorted(
        container.get("volumeMounts") or (), key=lambda mount: -len(str(mount.get("mountPath")))
    )
    for mount in mounts:
        root = str(mount.get("mountPath")).rstrip("/")
        if file != root and not file.startswith(f"{root}/"):
            continue
        volume = volumes.get(mount.get("name")) or {}
        if config_map := volume.get("configMap"):
            return f"configmap {SYSTEM}/{config_map.get('name')}"
        if host_path := volume.get("hostPath"):
            return f"file {str(host_path.get('path')).rstrip('/')}{file[len(root) :]} of the node"
    return f"file {file} of its container"


def _configurations(maps: Iterable[Tree]) -> Iterator[FoundConfiguration]:
    """The scheduler configurations in config maps."""
    for each in maps:
        name = str(each["metadata"]["name"])
        for key, text in (each.get("data") or {}).items():
            if "KubeSchedulerConfiguration" in str(text) and "apiVersion" in str(text):
                escaped = str(key).replace(".", "\\.")
                yield FoundConfiguration(
                    source=f"configmap {SYSTEM}/{name}, key {key}",
                    text=str(text),
                    command=f"kubectl -n {SYSTEM} get configmap {name} -o jsonpath='{{.data.{escaped}}}'"
                    " > scheduler.yaml",
                )


def _webhooks(items: Iterable[Tree], mutates: bool) -> Iterator[PodWebhook]:
    for item in items:
        name = str(item["metadata"]["name"])
        for hook in item.get("webhooks") or [item.get("spec") or {}]:
            rules = hook.get("rules") or (hook.get("matchConstraints") or {}).get("resourceRules")
            seen = {match for rule in rules or () for match in _pod_resources(rule)}
            if seen:
                at_binding = seen == {BINDING}
                yield PodWebhook(
                    name=str(hook.get("name") or name), mutates=mutates, at_binding=at_binding
                )


def _pod_resources(rule: Tree) -> Iterator[str]:
    """`pods` and `pods/binding`, if the rule allows to create them."""
    operations = {str(word).upper() for word in rule.get("operations") or ()}
    groups = rule.get("apiGroups") or ()
    if not operations & {"CREATE", "*"} or not {"", "*"} & set(groups):
        return
    resources = set(rule.get("resources") or ())
    if resources & {"pods", "*", "*/*"}:
        yield "pods"
    if resources & {BINDING, "pods/*", "*/*"}:
        yield BINDING
