"""Up manifests: the objects that `bayplan up` begins with, from files, and its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...api.pod_stages import StageRule
from ...errors import InputError
from ...manifests.stage_documents import check_annotations, is_stages, read_stages
from ..options.scheduler_options import warn
from ..render.consoles import print_notes

if TYPE_CHECKING:
    from ...apiserver import ApiServer, NodeModel
    from ...manifests.sources import Source

Tree = dict[str, Any]


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
    from ...apiserver import make_nodes

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
            place = f"{source.name}: document {number}"
            items = tree.get("items") if isinstance(tree, dict) else None
            for i, item in enumerate(items if isinstance(items, list) else [tree]):
                if item is None:
                    continue
                if not isinstance(item, dict):
                    raise InputError(f"{place}: expected an object")
                yield f"{place}: items[{i}]" if isinstance(items, list) else place, item


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
