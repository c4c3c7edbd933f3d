"""Server fields: set the server's fields of incoming objects, and reset those clients must not set.

Mirrors the strategies of pkg/registry and rest.BeforeCreate/BeforeUpdate of k8s.io/apiserver.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from ...api.rules.field_defaults import TEMPLATE_GENERATION, child, fill
from ...api.workloads import JOB_PREFIX, job_pod_labels
from ...cluster.memory.created_names import ALPHABET, MAX_PREFIX, SUFFIX_LENGTH
from . import pods
from .resource_table import ApiResource
from .status_errors import bad_request

Tree = dict[str, Any]

_SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_NOT_ON_CREATION = frozenset({*_SERVER_SET, "resourceVersion", "generation", "selfLink"})
_NOT_COUNTED = frozenset({"kind", "apiVersion", "metadata", "status"})
_KEEPS_STATUS = frozenset({"nodes", "persistentvolumes", "csistoragecapacities.storage.k8s.io"})
_METADATA_WITH_STATUS = frozenset({"pods", "nodes"})
PROTECTED = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "podgroups.scheduling.k8s.io": "scheduling.k8s.io/podgroup-protection",
}
"""The finalizers of objects that are not deleted while in use."""
_NO_VERSION, _VERSION_4 = ~(0xF << 76 | 0x3 << 62), 0x4 << 76 | 0x2 << 62
_RANDOM = random.Random()  # not the module's, which a program may seed


def metadata_of(tree: Tree) -> Tree:
    """The object's metadata; raises StatusError when it is invalid."""
    metadata = tree.get("metadata")
    if metadata is None:
        metadata = tree["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata: expected an object")
    return metadata


def bare(tree: Tree) -> Tree:
    """The object as stored: metadata first, without kind and version."""
    stored = {"metadata": tree["metadata"], **tree}
    stored.pop("kind", None)
    stored.pop("apiVersion", None)
    return stored


def random_uid() -> str:
    """A random UUID (version 4)."""
    digits = f"{_RANDOM.getrandbits(128) & _NO_VERSION | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def begin(resource: ApiResource, tree: Tree, namespace: str, now: str) -> None:
    """Set the server's fields of a new object, and remove those it must not have."""
    metadata = metadata_of(tree)
    for name in _NOT_ON_CREATION.intersection(metadata):
        del metadata[name]
    if not metadata.get("name") and metadata.get("generateName"):
        suffix = "".join(random.choices(ALPHABET, k=SUFFIX_LENGTH))
        metadata["name"] = str(metadata["generateName"])[:MAX_PREFIX] + suffix
    if resource.is_namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = random_uid()
    metadata["creationTimestamp"] = now
    if resource.has_generation:
        metadata["generation"] = 1
    if resource.has_status and resource.storage not in _KEEPS_STATUS:
        tree.pop("status", None)
    finalizer = PROTECTED.get(resource.storage)
    if finalizer and finalizer not in (metadata.get("finalizers") or ()):
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]


def complete(resource: ApiResource, tree: Tree, now: str, has_labels: bool) -> None:
    """Set the derived fields of a new object; `has_labels` if it came with labels."""
    match resource.storage:
        case "pods":
            pods.note_gates(tree, now)
        case "namespaces":
            tree["spec"] = {"finalizers": ["kubernetes"]}
            tree["status"] = {"phase": "Active"}
        case "services":
            tree.setdefault("status", {"loadBalancer": {}})
        case "jobs.batch":
            _select_own_pods(tree, has_labels)
        case "daemonsets.apps":
            _count_templates(tree)
        case "persistentvolumes":
            fill(child(tree, "status"), lastPhaseTransitionTime=now)
        case _ if resource.has_status and resource.custom is None:
            tree.setdefault("status", {})


def _select_own_pods(tree: Tree, has_labels: bool) -> None:
    """Set the selector of a job by its uid, unless it has one; a job without labels gets the labels of its template."""
    spec, metadata = child(tree, "spec"), tree["metadata"]
    if spec.get("manualSelector"):
        return
    labels = job_pod_labels(metadata["uid"], metadata["name"])
    template = child(child(spec, "template"), "metadata")
    template["labels"] = {**(template.get("labels") or {}), **labels}
    if not has_labels:
        metadata["labels"] = dict(template["labels"])
    key = f"{JOB_PREFIX}controller-uid"
    spec["selector"] = {"matchLabels": {key: labels[key]}}


def _count_templates(tree: Tree, old: Mapping[str, Any] | None = None) -> None:
    """Count the changes of the template of a DaemonSet in an annotation."""
    count = 1
    if old is not None:
        before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)
        count = int(str(before)) if str(before).isdecimal() else 0
        count += tree["spec"]["template"] != old["spec"]["template"]
    annotations = tree["metadata"].get("annotations") or {}
    tree["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: str(count)}


def keep_server_set(tree: Tree, old: Mapping[str, Any]) -> None:
    """Restore the fields that only the server sets."""
    metadata, before = metadata_of(tree), old["metadata"]
    metadata.pop("selfLink", None)
    for name in (*_SERVER_SET, "generation", "resourceVersion", "name", "namespace"):
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)


def only_status(resource: ApiResource, tree: Tree, old: Tree) -> Tree:
    """Restrict an update of the status to its fields."""
    metadata = dict(old["metadata"])
    if resource.storage in _METADATA_WITH_STATUS:
        for name in ("labels", "annotations"):
            if name in tree["metadata"]:
                metadata[name] = tree["metadata"][name]
    kept = {**old, "metadata": metadata}
    kept.pop("status", None)
    if "status" in tree:
        kept["status"] = tree["status"]
    if resource.storage == "pods":
        status, quality = kept.setdefault("status", {}), (old.get("status") or {}).get("qosClass")
        if quality and not status.get("qosClass"):
            status["qosClass"] = quality
    return kept


def all_but_status(resource: ApiResource, tree: Tree, old: Tree) -> Tree:
    """Restrict an update of the object to its fields."""
    if resource.storage == "namespaces":
        tree = {**tree, "spec": old.get("spec") or {}}
    elif resource.storage == "services":
        keep_allocated(tree, old)
    elif resource.storage == "pods":
        pods.be_patient(tree)
    if not resource.has_status:
        return tree
    kept = dict(tree)
    kept.pop("status", None)
    if "status" in old:
        kept["status"] = old["status"]
    return kept


def count_generation(resource: ApiResource, tree: Tree, old: Mapping[str, Any]) -> None:
    """Increment the generation when anything besides metadata and status changes."""
    if not resource.has_generation:
        return
    if resource.storage == "daemonsets.apps":
        _count_templates(tree, old)
    ignored = _NOT_COUNTED
    if resource.custom is not None and not resource.has_status:
        ignored = ignored - {"status"}
    before = {key: old[key] for key in old if key not in ignored}
    after = {key: tree[key] for key in tree if key not in ignored}
    generation = int(old["metadata"].get("generation") or 0)
    tree["metadata"]["generation"] = generation + (before != after)


NETWORK = "10.96"
FIRST_NODE_PORT, LAST_NODE_PORT = 30000, 32767


def allocate(tree: Tree, others: Iterable[Mapping[str, Any]]) -> None:
    """Allocate missing addresses and node ports.

    Mirrors pkg/registry/core/service: cluster addresses from 10.96.0.0/16, node ports from 30000 to 32767.
    """
    spec = tree["spec"]
    if spec.get("type") == "ExternalName":
        return
    specs = [other.get("spec") or {} for other in others]
    seed = int.from_bytes(blake2b(tree["metadata"]["uid"].encode(), digest_size=8).digest())
    if not spec.get("clusterIP"):
        taken = {other.get("clusterIP") for other in specs}
        numbers = ((seed + i) % (2**16 - 2) + 1 for i in range(2**16))
        addresses = (f"{NETWORK}.{number >> 8}.{number & 255}" for number in numbers)
        spec["clusterIP"] = next(ip for ip in addresses if ip not in taken)
    spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        used = {port.get("nodePort") for other in specs for port in other.get("ports") or ()}
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = next(number for number in _ports(seed) if number not in used)
            used.add(port["nodePort"])
    is_local = spec.get("externalTrafficPolicy") == "Local"
    if spec.get("type") == "LoadBalancer" and is_local and not spec.get("healthCheckNodePort"):
        used |= {other.get("healthCheckNodePort") for other in specs}
        spec["healthCheckNodePort"] = next(n for n in _ports(seed) if n not in used)


def keep_allocated(tree: Tree, old: Mapping[str, Any]) -> None:
    """Keep the allocated values unless the client sets others."""
    spec, before = tree.get("spec") or {}, old.get("spec") or {}
    if spec.get("type", "ClusterIP") == "ExternalName" or before.get("type") == "ExternalName":
        return
    for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        if not spec.get(name) and before.get(name):
            spec[name] = before[name]
    given = {_port_key(port): port.get("nodePort") for port in before.get("ports") or ()}
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and given.get(_port_key(port)):
                port["nodePort"] = given[_port_key(port)]


def _port_key(port: Mapping[str, Any]) -> tuple[Any, str]:
    return port.get("port"), str(port.get("protocol") or "TCP")


def _ports(seed: int) -> Iterator[int]:
    count = LAST_NODE_PORT - FIRST_NODE_PORT + 1
    for i in range(count):
        yield FIRST_NODE_PORT + (seed + i) % count
