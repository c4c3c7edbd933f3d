"""Bay objects: the objects of a `.bay` file, pods and nodes as columns.

Texts that many pods have in common, such as specs, labels and names of nodes, are written once and referred to by
number. A pod whose fields have no column is written as a whole, as objects of other kinds are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec

from ..api.meta import DEFAULT_NAMESPACE
from ..api.node import Node
from ..api.pod import Pod
from ..api.wire.decode import iter_objects
from ..api.wire.encode import to_dict
from ..api.wire.field_error import FieldError
from ..api.wire.interning import shared_text
from ..api.wire.kinds import KINDS
from ..api.wire.pod_text import read_labels, read_owners, read_spec, read_status
from ..api.wire.sourced import is_keeping_sources, with_source
from ..errors import DecodeError
from .bay_format import BlockKind, block, damaged, iter_blocks, start_of_file
from .input_bytes import Buffer

BLOCK_OBJECTS = 20_000
"""The most objects of a block."""
SHORT_TEXT = 128

Tree: TypeAlias = dict[str, Any]
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
"""The number of a text; 0 is the empty one."""
Numbers: TypeAlias = list[Number]


class PodLike(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The fields that many pods have in common: numbers of texts, those of maps and lists in JSON."""

    namespace: Number
    labels: Number
    annotations: Number
    owners: Number
    generate_name: Number
    spec: Number
    generation: int
    deleted: Number


class PodColumns(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Pods: the texts and the common fields that no block before has, and a value per pod in each column."""

    texts: list[str] = []
    likes: list[PodLike] = []
    name: list[str] = []
    uid: list[str] = []
    resource_version: list[str] = []
    node: Numbers = []
    created: Numbers = []
    status: Numbers = []
    like: Numbers = []
    """Numbers of common fields, from 0 on."""


class NodeColumns(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Nodes: the texts that no block before has, and a value per node in each column."""

    texts: list[str] = []
    name: list[str] = []
    uid: list[str] = []
    resource_version: list[str] = []
    created: Numbers = []
    labels: list[dict[str, str]] = []
    rest: Numbers = []
    """Numbers of texts: the node without the fields of the other columns, in JSON."""


class EndOfFile(msgspec.Struct, forbid_unknown_fields=True):
    """The end: how many objects the file has."""

    objects: int


_POD_METADATA = frozenset(
    {
        *("name", "namespace", "uid", "labels", "annotations", "ownerReferences", "generateName"),
        *("creationTimestamp", "deletionTimestamp", "resourceVersion", "generation"),
    }
)
_POD_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_KINDS = {"Pod": BlockKind.PODS, "Node": BlockKind.NODES}
_ENCODER = msgspec.json.Encoder()
_PODS = msgspec.json.Decoder(PodColumns)
_NODES = msgspec.json.Decoder(NodeColumns)
_END = msgspec.json.Decoder(EndOfFile)


# Writing


def bay_pieces(trees: Iterable[Tree]) -> Iterator[bytes]:
    """The bytes of a file with these objects, manifests, in their order."""
    yield start_of_file()
    writer = _BlockWriter()
    count, waiting, kind = 0, list[Tree](), BlockKind.OBJECTS
    for tree in trees:
        count += 1
        own = _KINDS.get(tree["kind"], BlockKind.OBJECTS)
        if own is BlockKind.PODS and not _has_columns(tree):
            own = BlockKind.OBJECTS
        if waiting and (own is not kind or len(waiting) >= BLOCK_OBJECTS):
            yield block(kind, writer.content(kind, waiting))
            waiting = []
        waiting.append(tree)
        kind = own
    if waiting:
        yield block(kind, writer.content(kind, waiting))
    yield block(BlockKind.END, _ENCODER.encode(EndOfFile(count)))


def _has_columns(pod: Tree) -> bool:
    """Whether there is a column for every field of a pod."""
    return pod.keys() <= _POD_FIELDS and pod["metadata"].keys() <= _POD_METADATA


class _BlockWriter:
    """Makes the content of blocks; has the texts of earlier ones."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._likes: dict[tuple[int, ...], int] = {}

    def content(self, kind: BlockKind, trees: Sequence[Tree]) -> bytes:
        """The content of a block."""
        if kind is BlockKind.OBJECTS:
            return _ENCODER.encode(trees)
        known = len(self._texts)
        columns = self._pods(trees) if kind is BlockKind.PODS else self._nodes(trees)
        columns.texts = list(self._texts)[known:]
        return _ENCODER.encode(columns)

    def _pods(self, trees: Sequence[Tree]) -> PodColumns:
        columns, known = PodColumns(), len(self._likes)
        for tree in trees:
            meta, spec = tree["metadata"], dict(tree.get("spec", {}))
            columns.name.append(meta.get("name", ""))
            columns.uid.append(meta.get("uid", ""))
            columns.resource_version.append(meta.get("resourceVersion", ""))
            columns.node.append(self._number(spec.pop("nodeName", "")))
            columns.created.append(self._number(meta.get("creationTimestamp")))
            columns.status.append(self._number(tree.get("status")))
            like = (
                *map(self._number, map(meta.get, ("namespace", "labels", "annotations"))),
                self._number(meta.get("ownerReferences")),
                self._number(meta.get("generateName")),
                self._number(spec),
                meta.get("generation", 0),
                self._number(meta.get("deletionTimestamp")),
            )
            columns.like.append(self._likes.setdefault(like, len(self._likes)))
        columns.likes = [PodLike(*like) for like in list(self._likes)[known:]]
        return columns

    def _nodes(self, trees: Sequence[Tree]) -> NodeColumns:
        columns = NodeColumns()
        for tree in trees:
            meta = dict(tree["metadata"])
            columns.name.append(meta.pop("name"))
            columns.uid.append(meta.pop("uid", ""))
            columns.resource_version.append(meta.pop("resourceVersion", ""))
            columns.created.append(self._number(meta.pop("creationTimestamp", "")))
            columns.labels.append(meta.pop("labels", {}))
            columns.rest.append(self._number({**tree, "metadata": meta}))
        return columns

    def _number(self, value: Any) -> int:
        """The number of a text, or of the JSON of a map or list; 0 for an absent or empty one."""
        if not value:
            return 0
        text = value if isinstance(value, str) else _ENCODER.encode(value).decode()
        return self._texts.setdefault(text, len(self._texts))


# Reading


def iter_bay_objects(data: Buffer, name: str) -> Iterator[tuple[list[Any], int]]:
    """Yield objects of a file, block by block, and the end of the block; raises BayFileError if it cannot be read."""
    reader, count = _BlockReader(), 0
    for kind, content, end in iter_blocks(data, name):
        try:
            if kind is BlockKind.END:
                expected = _END.decode(content).objects
                if expected != count:
                    raise damaged(name, f"{count:,} objects instead of {expected:,}")
                continue
            objects = reader.objects(kind, content)
        except (msgspec.MsgspecError, DecodeError, FieldError) as error:
            raise damaged(name, f"an object that cannot be read: {error}") from None
        except (IndexError, ValueError, RecursionError):
            raise damaged(name, "a block that cannot be read") from None
        count += len(objects)
        yield objects, end


class _BlockReader:
    """Makes the objects of blocks; has the texts of earlier ones."""

    def __init__(self) -> None:
        self._texts = [""]
        self._times: list[str | None] = [None]
        """The texts, with None in place of the empty one."""
        self._likes: list[tuple[Any, ...]] = []
        self._rests: dict[int, Node] = {}

    def objects(self, kind: BlockKind, content: bytes) -> list[Any]:
        """The objects of a block."""
        if kind is BlockKind.OBJECTS:
            items = b"".join((b'{"apiVersion":"v1","kind":"List","items":', content, b"}"))
            return list(iter_objects(items))
        made = self._pods(content) if kind is BlockKind.PODS else self._nodes(content)
        if is_keeping_sources():
            return [with_source(obj, _ENCODER.encode(to_dict(obj))) for obj in made]
        return made

    def _add_texts(self, texts: Sequence[str]) -> None:
        shared = [shared_text(text) if len(text) <= SHORT_TEXT else text for text in texts]
        self._texts += shared
        self._times += shared

    def _pods(self, content: bytes) -> list[Any]:
        columns = _PODS.decode(content)
        self._add_texts(columns.texts)
        self._likes += map(self._like, columns.likes)
        texts = self._texts
        statuses = {each: read_status(texts[each].encode()) for each in set(columns.status)}
        rows = zip(
            columns.name,
            columns.uid,
            columns.resource_version,
            _at(texts, columns.node),
            _at(self._times, columns.created),
            map(statuses.__getitem__, columns.status),
            _at(self._likes, columns.like),
            strict=True,
        )
        pods = []
        for name, uid, version, node, created, status, like in rows:
            space, labels, notes, owners, prefix, spec, generation, deleted = like
            # in the order of the fields, which is faster than by name
            first = name, space, uid, labels, notes, owners, created, deleted
            pods.append(Pod(*first, version, generation, prefix, node, spec, status))
        if not all(pod.generate_name for pod in pods if not pod.name):
            raise FieldError("metadata.name", "expected a name; got none")
        return pods

    def _like(self, like: PodLike) -> tuple[Any, ...]:
        """The common fields of pods, in the order of `PodLike`."""
        texts = self._texts
        spec, _ = read_spec(texts[like.spec].encode())
        return (
            shared_text(texts[like.namespace] or DEFAULT_NAMESPACE.get()),
            read_labels(texts[like.labels].encode()),
            read_labels(texts[like.annotations].encode()),
            read_owners(texts[like.owners].encode()),
            texts[like.generate_name],
            spec,
            like.generation,
            self._times[like.deleted],
        )

    def _nodes(self, content: bytes) -> list[Any]:
        columns = _NODES.decode(content)
        self._add_texts(columns.texts)
        for each in set(columns.rest) - self._rests.keys():
            self._rests[each] = self._rest(self._texts[each])
        rows = zip(
            columns.name,
            columns.uid,
            columns.resource_version,
            _at(self._times, columns.created),
            columns.labels,
            map(self._rests.__getitem__, columns.rest),
            strict=True,
        )
        if not all(columns.name):
            raise FieldError("metadata.name", "expected a name; got none")
        return [
            Node(
                shared_text(name),
                uid=uid,
                labels=labels,
                annotations=like.annotations,
                resource_version=version,
                creation_timestamp=created,
                unschedulable=like.unschedulable,
                taints=like.taints,
                allocatable=like.allocatable,
                capacity=like.capacity,
                images=like.images,
                conditions=like.conditions,
                declared_features=like.declared_features,
            )
            for name, uid, version, created, labels, like in rows
        ]

    def _rest(self, text: str) -> Node:
        """A node with the fields that have no column, under another name."""
        kind = KINDS["Node"]
        wire = kind.decoder.decode(text.encode())
        named = msgspec.structs.replace(wire.metadata, name="-")
        made = kind.build(msgspec.structs.replace(wire, metadata=named))
        assert isinstance(made, Node), "the kind is Node"
        return made


def _at(values: Sequence[Any], numbers: Sequence[int]) -> Iterable[Any]:
    """The values with these numbers."""
    return map(values.__getitem__, numbers)
