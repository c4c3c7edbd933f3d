"""Pool files: pools from files: our NodePools, Karpenter's, and the groups of Cluster Autoscaler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..api.cron_jobs import CronJob
from ..api.custom_workloads import CustomWorkload
from ..api.node import Node
from ..api.own_documents import API_VERSION
from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..api.wire.decode import decode_object
from ..api.workloads import pod_template
from ..config.problems import Problems
from ..errors import DecodeError, InputError, counted
from ..manifests.sources import Source, find_files, open_source
from ..yaml_tree import YamlError, iter_documents
from .instance_types import NO_TABLE, InstanceTable
from .karpenter import (
    KARPENTER_GROUP,
    KARPENTER_V1,
    NamedValues,
    is_beside_pools,
    notes_beside_pools,
    read_karpenter_pool,
)
from .karpenter_beta import ALPHA_KINDS, KARPENTER_V1BETA1, read_beta_pool, refuse_alpha
from .node_groups import STATUS_NAME, GroupSize, find_groups, read_status, unmatched_sizes
from .node_types import NodeType
from .pool_documents import KIND, read_pool_document
from .pools import NodePool

EXPECTED = f"a NodePool of {API_VERSION} or {KARPENTER_V1}, a Node, or the ConfigMap {STATUS_NAME}"


@dataclass(slots=True)
class PoolReading:
    """The pools of some files."""

    pools: list[NodePool] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Parts that are not modelled, each with its place."""

    @property
    def types(self) -> Iterator[tuple[NodePool, NodeType]]:
        """Every type of every pool."""
        return ((pool, one) for pool in self.pools for one in pool.types)


@dataclass(slots=True)
class _Found:
    pools: list[NodePool] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    sizes: list[GroupSize] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    node_claims: dict[str, int] = field(default_factory=dict)
    """Their number by file."""


def read_pools(
    paths: Iterable[str | Path],
    table: InstanceTable = NO_TABLE,
    objects: Iterable[object] = (),
) -> PoolReading:
    """Read all pools in files, folders and standard input (`-`).

    Nodes in the files, or else among the `objects` of the cluster, give the groups of Cluster Autoscaler if there is
    its status, or no other pool. Pods among the objects name values of labels that Karpenter's pools leave open.
    Raises InputError with a line for each problem: file, path, expected, found.
    """
    files = find_files(paths)
    nodes, named = _needed_of(objects)
    found = _Found()
    for file in files:
        _read_source(open_source(file), table, named, found)
    source = ", ".join(files)
    if found.nodes or found.sizes:
        groups = find_groups(found.nodes or nodes, table, found.sizes, source)
        found.pools += groups
        if not groups:
            found.problems.append(
                f"{source}: expected nodes with a label of their group, such as "
                "eks.amazonaws.com/nodegroup; got none"
            )
    _check_names(found)
    if not found.pools and not found.problems:
        found.problems.append(f"{source}: expected {EXPECTED}; got none")
    if found.problems:
        raise InputError("\n".join(found.problems))
    notes = [f"{pool.place}: {pool.name}: {note}" for pool in found.pools for note in pool.notes]
    notes += found.notes
    for name, number in found.node_claims.items():
        claims = counted(number, "NodeClaim")
        notes.append(f"{name}: {claims}: not read; nodes that run are those of the cluster")
    for name in unmatched_sizes(found.sizes, found.pools):
        notes.append(f"{source}: no node belongs to the group {name}, so its shape is unknown")
    return PoolReading(found.pools, notes)


def _needed_of(objects: Iterable[object]) -> tuple[list[Node], dict[str, dict[str, None]]]:
    """The nodes, and by label key the values that pods name, in order."""
    nodes: list[Node] = []
    specs: dict[int, PodSpec] = {}
    for obj in objects:
        if isinstance(obj, Node):
            nodes.append(obj)
        for spec in _specs_of(obj):
            specs[id(spec)] = spec
    named: dict[str, dict[str, None]] = {}
    for spec in specs.values():
        for key, value in _named_by(spec):
            named.setdefault(key, {})[value] = None
    return nodes, named


def _specs_of(obj: object) -> Iterator[PodSpec]:
    if isinstance(obj, Pod):
        yield obj.spec
        return
    job = obj.spec.job_template if isinstance(obj, CronJob) else obj
    template = pod_template(job)
    if template is not None:
        yield template.spec
    if isinstance(obj, CustomWorkload):
        yield from (each.template.spec for each in obj.pods)


def _named_by(spec: PodSpec) -> Iterator[tuple[str, str]]:
    """The labels that the pods need on their node."""
    yield from (spec.node_selector or {}).items()
    required = spec.required_node_selector
    for term in required.terms if required is not None else ():
        for one in term.expressions:
            if one.operator == "In":
                yield from ((one.key, value) for value in one.values or ())


def _read_source(source: Source, table: InstanceTable, named: NamedValues, found: _Found) -> None:
    try:
        for number, tree in enumerate(iter_documents(bytes(source.data[:])), 1):
            place = f"{source.name}: document {number}"
            if isinstance(tree, Mapping) and isinstance(tree.get("items"), list):
                for i, item in enumerate(tree["items"]):
                    _read_tree(item, table, named, f"{place}: items[{i}]", found)
            elif tree is not None:
                _read_tree(tree, table, named, place, found)
    except YamlError as error:
        found.problems.append(f"{source.name}: {error}")
    except RecursionError:
        found.problems.append(f"{source.name}: expected less deep nesting")


def _read_tree(
    tree: Any, table: InstanceTable, named: NamedValues, place: str, found: _Found
) -> None:
    """Read one object and add it to those found so far."""
    problems = Problems()
    head = (tree.get("apiVersion"), tree.get("kind")) if isinstance(tree, Mapping) else (None, None)
    match head:
        case (str(version), "NodePool") if version == API_VERSION:
            found.pools.append(read_pool_document(tree, table, place, problems))
        case (str(version), "NodePool") if version == KARPENTER_V1:
            found.pools.append(read_karpenter_pool(tree, table, named, place, problems))
        case (_, "Node"):
            _read_node(tree, place, found)
        case (_, "ConfigMap") if _name(tree) == STATUS_NAME:
            found.sizes += read_status(tree, problems)
        case (str(version), "NodePool") if version == KARPENTER_V1BETA1:
            found.pools.append(read_beta_pool(tree, table, named, place, problems))
        case (str(version), "NodeClaim") if version.startswith(KARPENTER_GROUP):
            name = place.partition(": ")[0]
            found.node_claims[name] = found.node_claims.get(name, 0) + 1
        case (str(version), str(kind)) if kind in ALPHA_KINDS and "karpenter" in version:
            refuse_alpha(version, kind, problems)
        case (str(version), str(kind)) if is_beside_pools(version, kind):
            found.notes += (f"{place}: {note}" for note in notes_beside_pools(tree))
        case (version, "NodePool"):
            problems.add("apiVersion", f"{API_VERSION} or {KARPENTER_V1}", version)
        case (_, str(kind)) if kind not in (KIND, "ConfigMap") and _is_cluster_object(tree):
            pass  # a snapshot of a cluster has its nodes among other objects
        case (_, kind):
            problems.add("kind", EXPECTED, kind)
    found.problems += (f"{place}: {problem}" for problem in problems)


def _read_node(tree: Any, place: str, found: _Found) -> None:
    try:
        node = decode_object(tree)
    except DecodeError as error:
        found.problems.append(f"{place}: {error}")
        return
    assert isinstance(node, Node), "the tree names the kind"
    found.nodes.append(node)


def _name(tree: Mapping[str, Any]) -> str:
    metadata = tree.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, Mapping) else ""


def _is_cluster_object(tree: Mapping[str, Any]) -> bool:
    metadata = tree.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("uid"))


def _check_names(found: _Found) -> None:
    first: dict[str, NodePool] = {}
    for pool in found.pools:
        other = first.setdefault(pool.name, pool)
        if other is not pool and pool.name:
            found.problems.append(
                f"{pool.place}: metadata.name: expected each pool once; got {pool.name} before in "
                f"{other.place}"
            )
