"""Up manifests: the objects that `bayplan up` begins with, from files, and its nodes, of a type or of amounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...api.pod_stages import StageRule
from ...api.resources import CPU, MEMORY
from ...api.text.quantity import format_quantity
from ...apiserver.control.kubelet_statuses import condition, missing_status
from ...config.problems import Problems
from ...errors import InputError
from ...manifests.stage_documents import check_annotations, is_stages, read_stages
from ...planning import read_instance_table
from ...planning.amounts_text import read_amounts
from ..options.scheduler_options import warn
from ..render.consoles import print_notes
from .example import find_example

if TYPE_CHECKING:
    from ...apiserver.server import ApiServer
    from ...manifests.sources import Source

Tree = dict[str, Any]
TABLE = "plan/instance-types.csv"
ZONES = ("zone-a", "zone-b", "zone-c")
RESOURCES = {
    "cpu": "8",
    "memory": "32Gi",
    "ephemeral-storage": "100Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "pods": "110",
}


@dataclass(frozen=True)
class NodeModel:
    """Properties of equal nodes: amounts as quantities, zones in turn, and labels."""

    capacity: Mapping[str, str] = field(default_factory=lambda: RESOURCES)
    allocatable: Mapping[str, str] = field(default_factory=lambda: RESOURCES)
    zones: tuple[str, ...] = ZONES
    labels: Mapping[str, str] = field(default_factory=dict)


DEFAULT_SHAPE = NodeModel()


def make_nodes(count: int, now: str, shape: NodeModel = DEFAULT_SHAPE) -> list[Tree]:
    """A number of equal, ready nodes, in the zones in turn."""
    return [
        _make_node(f"node-{number}", shape.zones[number % len(shape.zones)], now, shape)
        for number in range(count)
    ]


def _make_node(name: str, zone: str, now: str, shape: NodeModel) -> Tree:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "local",
        **shape.labels,
    }
    conditions = [
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
    ]
    amounts = {"capacity": dict(shape.capacity), "allocatable": dict(shape.allocatable)}
    status = {**amounts, "conditions": conditions}
    tree: Tree = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status,
    }
    return {**tree, "status": {**status, **missing_status(tree, now)}}


class UpManifests(NamedTuple):
    """Objects, each with its place in a file, and the stages of pods."""

    objects: Sequence[tuple[str, Tree]] = ()
    stages: tuple[StageRule, ...] = ()


def read_manifests(paths: list[Path], strict: bool = False) -> UpManifests:
    """Read files and folders; raises InputError.

    Fields that do not exist are warnings on standard error; with `strict` they are an InputError.
    """
    objects: list[tuple[str, Tree]] = []
    rules: list[StageRule] = []
    for place, tree in _objects_in(paths):
        if is_stages(tree):
            rules.append(read_stages(place, tree))
        else:
            check_annotations(place, tree)
            objects.append((place, tree))
    if paths and not objects and not rules:
        raise InputError(f"{paths[0]}: expected objects; got none")
    warn([f"{place}: {text}" for place, tree in objects for text in unknown_texts(tree)], strict)
    return UpManifests(objects, tuple(rules))


def load(server: ApiServer, manifests: UpManifests) -> None:
    """Put the manifests into the cluster, unless they are there."""
    for place, tree in manifests.objects:
        try:
            server.load(tree)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    print_notes(server.restoration.complete())


def add_nodes(server: ApiServer, count: int, shape: NodeModel) -> None:
    """Put so many nodes into the cluster, unless they are there."""

    for node in make_nodes(count, server.registry.now(), shape):
        server.load(node)


def _objects_in(paths: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of the files, each with its place."""
    from ...manifests.sources import find_files, open_source
    from ...yaml_tree import YamlError

    for file in find_files(paths):
        source = open_source(file, takes_bay=True)
        try:
            trees = _trees_in(source)
        except YamlError as error:
            raise InputError(f"{source.name}: {error}") from None
        for number, tree in enumerate(trees, start=1):
            yield from _items_of(tree, f"{source.name}: document {number}")


def _items_of(tree: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """An object, or those of a list, which have its kind and version if they have none."""
    if tree is None:
        return
    if not isinstance(tree, dict):
        raise InputError(f"{place}: expected an object")
    items = tree.get("items")
    if not isinstance(items, list):
        yield place, tree
        return
    kind = str(tree.get("kind") or "").removesuffix("List")
    head = {"apiVersion": tree.get("apiVersion"), "kind": kind} if kind else {}
    for i, item in enumerate(items):
        whole = {**head, **item} if isinstance(item, dict) else item
        yield from _items_of(whole, f"{place}: items[{i}]")


def _trees_in(source: Source) -> list[Any]:
    """The documents of a file; a snapshot of columns is one list."""
    from ...api.wire.encode import to_dict
    from ...manifests.bay_format import is_bay
    from ...manifests.bay_objects import iter_bay_objects
    from ...yaml_tree import iter_documents

    if not is_bay(source.data):
        return list(iter_documents(bytes(source.data[:])))
    blocks = iter_bay_objects(source.data, source.name)
    return [{"items": [to_dict(obj) for objects, _ in blocks for obj in objects]}]


def unknown_texts(tree: dict[str, Any]) -> list[str]:
    """The fields of an object that do not exist, whatever its kind, each as a remark."""
    from ...api.schema.unknown import schema_type, unknown_fields
    from ...api.wire.decode import label_of
    from ...manifests.field_check import unknown_text

    api_version, kind = str(tree.get("apiVersion") or ""), str(tree.get("kind") or "")
    name = schema_type(api_version, kind)
    if not name:
        return []
    label = label_of(tree, kind)
    return [f"{label}: {path}: {unknown_text(e)}" for path, e in unknown_fields(tree, name)]


def read_shape(text: str, table: Path | None) -> NodeModel:
    """The shape that `--like` names: a type of the table, the shipped one by default, or `cpu=4,memory=16Gi`.

    Raises InputError.
    """
    if "=" in text:
        return _of_amounts(text)
    types = read_instance_table(table or find_example(TABLE)).types
    found = types.get(text)
    if found is None:
        known = ", ".join(types)
        raise InputError(
            f'--like: expected a type of the table ({known}) or amounts such as cpu=4,memory=16Gi; got "{text}"'
        )
    labels = {"node.kubernetes.io/instance-type": found.name, **found.labels}
    zones = found.zones or ZONES
    return NodeModel(_texts(found.capacity), _texts(found.allocatable), zones, labels)


def _of_amounts(text: str) -> NodeModel:
    given: dict[str, str] = {}
    problems = Problems()
    for part in text.split(","):
        name, _, amount = part.partition("=")
        if name.strip() in given:
            problems.add(name.strip(), "each resource once", amount)
        given[name.strip()] = amount.strip()
    amounts = read_amounts(given, "", problems)
    problems_text = [f"--like: {problem}" for problem in problems]
    missing = [name for name in (CPU, MEMORY) if not amounts.get(name)]
    if missing and not problems:
        problems_text = [f'--like: expected an amount of {" and ".join(missing)}; got "{text}"']
    if problems_text:
        raise InputError("\n".join(problems_text))
    capacity = {**RESOURCES, **_texts(amounts)}
    return NodeModel(capacity, capacity)


def _texts(amounts: Mapping[str, int]) -> dict[str, str]:
    found = {name: format_quantity(amount, name) for name, amount in amounts.items()}
    return {**{name: RESOURCES[name] for name in RESOURCES if name not in (CPU, MEMORY)}, **found}
