"""Decode: Kubernetes objects from JSON bytes, or from parsed JSON or YAML.

An unreadable object is rejected with one line that names the object, the field, what was expected
and what was found. Lists are read item by item directly from the bytes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ...errors import DecodeError
from ..custom import find_custom_kind
from ..custom_workloads import CustomWorkload, is_custom_group, read_custom_workload
from ..meta import Wire
from .kinds import KINDS, FieldError, Kind, NodeWire, group_of
from .nulls import read_nulls
from .pod_text import PodText
from .served_versions import version_fault
from .sourced import is_keeping_sources, with_source

_TYPE_NAMES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "array": "list",
    "object": "object",
    "null": "null",
}
_MESSAGE = re.compile(r"(?P<fault>.*?)(?: - at `\$(?P<path>.*?)`)?", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<want>[^`]*)`, got `(?P<got>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")


NO_KIND = "expected a kind; got none"


class UnknownObject(Wire, frozen=True):
    """An object of a kind that does not affect scheduling."""

    api_version: str
    kind: str
    name: str = ""
    namespace: str = ""


class _Name(Wire, frozen=True):
    """The metadata needed to name an object."""

    name: str = ""
    namespace: str = ""


class _Head(Wire, frozen=True):
    """Identity of an object."""

    api_version: str = ""
    kind: str = ""
    metadata: _Name = _Name()

    def within(self, items: "_Head") -> "_Head":
        """This head, with the item kind of the enclosing list if it has no kind itself."""
        if self.kind or not items.kind:
            return self
        return _Head(
            api_version=self.api_version or items.api_version,
            kind=items.kind,
            metadata=self.metadata,
        )


class _ListHead(Wire, frozen=True):
    """A list with undecoded items; other objects have none."""

    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


class _TaggedPod(PodText, frozen=True, tag_field="kind", tag="Pod"):
    """A pod among objects of other kinds."""

    api_version: str = ""


class _TaggedNode(NodeWire, frozen=True, tag_field="kind", tag="Node"):
    """A node among objects of other kinds."""

    api_version: str = ""


_HEADS = msgspec.json.Decoder(_Head)
_LISTS = msgspec.json.Decoder(_ListHead)
_ANYTHING = _Head()
_PODS_AND_NODES = msgspec.json.Decoder(list[_TaggedPod | _TaggedNode])
# Kubernetes' printers sort fields, so the kind comes second.
_START = re.compile(
    rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"\s*[,}]'
)


def decode(data: bytes | str) -> object:
    """Read one object from JSON; DecodeError if it cannot be read."""
    raw = data.encode() if isinstance(data, str) else data
    return _decode_json(raw, _head(raw))


def decode_as(data: "bytes | msgspec.Raw", kind: Kind) -> object:
    """Read one object of a given kind from JSON; list items need not name their kind."""
    return _sourced(_decode_kind(data, kind), data)


def decode_object(tree: Any) -> object:
    """Read one object from parsed JSON or YAML; DecodeError if it cannot be read."""
    return _decode_tree(tree, _head_of(tree))


def iter_objects(source: bytes | str | Any) -> Iterator[object]:
    """Yield the objects of JSON bytes or of a parsed tree: one, or the items of a list."""
    if isinstance(source, str):
        source = source.encode()
    if isinstance(source, bytes | bytearray | memoryview):
        yield from _iter_json(bytes(source))
    elif isinstance(source, Mapping) and _is_list(source.get("kind"), source.get("items")):
        yield from _iter_tree(source)
    else:
        yield decode_object(source)


def decode_items(data: bytes, list_kind: str) -> list[object] | None:
    """Decode the items of a list, a JSON array, at once; None if they must be decoded one by one.

    That is the case if one cannot be decoded, if a List holds other kinds than pods and nodes, or
    if sources are kept.
    """
    if is_keeping_sources():
        return None
    items = _head_of_items(list_kind, "")
    try:
        if not items.kind:
            return _decode_mixed(data)
        kind = _find_kind(items)
        if kind is None:
            return None
        return [kind.build(wire) for wire in kind.list_decoder.decode(data)]
    except (msgspec.ValidationError, FieldError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None


def _decode_mixed(data: bytes) -> list[object] | None:
    """Read pods and nodes; None if one belongs to another API group."""
    pod, node, objects = KINDS["Pod"], KINDS["Node"], []
    for wire in _PODS_AND_NODES.decode(data):
        kind = pod if type(wire) is _TaggedPod else node
        if wire.api_version != kind.api_version:
            return None
        objects.append(kind.build(wire))
    return objects


def _iter_json(data: bytes) -> Iterator[object]:
    try:
        head = _LISTS.decode(data)
    except msgspec.ValidationError:
        yield from iter_objects(_parse(data))  # slower, but it finds the error
        return
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None
    if not _is_list(head.kind, head.items):
        yield decode(data)
        return
    items = _head_of_items(head.kind, head.api_version)
    if _find_kind(items) is not None:
        for item in head.items or ():
            yield _decode_json(item, items)
        return
    for item in head.items or ():
        item_head = (_peek(item) or _head(item)).within(items)
        if _is_list(item_head.kind, None):
            yield from _iter_json(bytes(memoryview(item)))
        else:
            yield _decode_json(item, item_head)


def _iter_tree(tree: Mapping[str, Any]) -> Iterator[object]:
    items, around = tree.get("items") or (), _head_of(tree)
    if not isinstance(items, list | tuple):
        raise DecodeError("items", f"expected list, got {_type_of(items)}")
    expected = _head_of_items(around.kind, around.api_version)
    for i, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise DecodeError(f"items[{i}]", f"expected object, got {_type_of(item)}")
        head = _head_of(item).within(expected)
        if _is_list(head.kind, item.get("items")):
            yield from _iter_tree(item)
        else:
            yield _decode_tree(item, head)


def _head_of_items(kind: str, api_version: str) -> _Head:
    """The item kind that a list implies: of a PodList, not of a List."""
    item_kind = kind.removesuffix("List")
    return _Head(kind=item_kind, api_version=api_version) if item_kind else _ANYTHING


def _decode_json(data: "bytes | msgspec.Raw", head: _Head) -> object:
    """Read one object of the kind in `head` from bytes."""
    kind = _find_kind(head)
    if kind is None:
        is_custom = is_custom_group(group_of(head.api_version))
        return _unknown(head, _parse(data) if is_custom else None)
    return _sourced(_decode_kind(data, kind), data)


def _sourced(obj: object, data: "bytes | msgspec.Raw") -> object:
    return with_source(obj, bytes(data)) if is_keeping_sources() else obj


def _decode_kind(data: "bytes | msgspec.Raw", kind: Kind) -> object:
    try:
        return kind.build(kind.decoder.decode(data))
    except (msgspec.ValidationError, FieldError):
        # Decoding again from the tree allows nulls, and gives the error message.
        return _read_tree(kind, _parse(data))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None


def _decode_tree(tree: Any, head: _Head) -> object:
    """Read one object of the kind in `head` from its parsed form."""
    kind = _find_kind(head)
    if kind is None:
        return _unknown(head, tree)
    obj = _read_tree(kind, tree)
    return with_source(obj, msgspec.json.encode(tree)) if is_keeping_sources() else obj


def _read_tree(kind: Kind, tree: Any) -> object:
    """Read an object of a known kind from its parsed form."""
    try:
        return build_from_tree(kind, tree)
    except FieldError as error:
        label = label_of(tree, kind.name)
        where = f"{label}: {error.path}" if error.path else label
        raise DecodeError(where, error.fault) from None


def build_from_tree(kind: Kind, tree: Any) -> object:
    """Make an object from its parsed form; FieldError, with the path, if it cannot be read."""
    try:
        return kind.build(convert_tree(kind, tree))
    except msgspec.ValidationError as error:
        raise FieldError(*_explain(error, read_nulls(tree, kind.api_version, kind.name))) from None


def convert_tree(kind: Kind, tree: Any) -> Any:
    """The wire form of a parsed object, in which nulls are absent values; raises ValidationError."""
    try:
        return msgspec.convert(tree, kind.wire)
    except msgspec.ValidationError:
        return msgspec.convert(read_nulls(tree, kind.api_version, kind.name), kind.wire)


def _find_kind(head: _Head) -> Kind | None:
    """The kind of that name, unless the API group is a different one; else a custom kind that is read."""
    kind = KINDS.get(head.kind)
    if kind is None or (head.api_version and group_of(head.api_version) != kind.group):
        return find_custom_kind(head.api_version, head.kind)
    if head.api_version != kind.api_version:
        _refuse_version(head)
    return kind


def _refuse_version(head: _Head) -> None:
    """Raise DecodeError for a version of a built-in kind that does not exist."""
    fault = version_fault(head.api_version, head.kind)
    if fault:
        name = head.metadata.name
        where = f"{head.kind.lower()} {name}" if name else head.kind.lower()
        raise DecodeError(f"{where}: apiVersion", fault)


def _is_list(kind: Any, items: Any) -> bool:
    """Whether an object is a list of objects, judged by its kind and `items`."""
    if not kind:
        return isinstance(items, list)
    if not isinstance(kind, str) or not kind.endswith("List"):
        return False
    return items is not None or kind.removesuffix("List") in ("", *KINDS)


def _unknown(head: _Head, tree: Any) -> UnknownObject | CustomWorkload:
    """A custom workload if `tree` is one; else only the name of the object."""
    name = head.metadata.name
    if not head.kind:
        raise DecodeError(f"object {name}: kind" if name else "kind", NO_KIND)
    _refuse_version(head)
    if is_custom_group(group_of(head.api_version)) and isinstance(tree, Mapping):
        fields = {"apiVersion": head.api_version, "kind": head.kind}
        workload = read_custom_workload({**tree, **fields})
        if workload is not None:
            return workload
    return UnknownObject(head.api_version, head.kind, name, head.metadata.namespace)


def _peek(data: msgspec.Raw) -> _Head | None:
    """The head of an object whose text begins with apiVersion and kind, as printers write it; None for other texts and
    unknown kinds.
    """
    start = _START.match(memoryview(data))
    if start is None or start[2].decode() not in KINDS:
        return None
    return _Head(api_version=start[1].decode(), kind=start[2].decode())


def _head(data: "bytes | msgspec.Raw") -> _Head:
    try:
        return _HEADS.decode(data)
    except msgspec.ValidationError:
        return _head_of(_parse(data))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None


def _head_of(tree: Any) -> _Head:
    if not isinstance(tree, Mapping):
        raise DecodeError("", f"expected object, got {_type_of(tree)}")
    metadata = tree.get("metadata")
    found = metadata if isinstance(metadata, Mapping) else {}
    return _Head(
        api_version=_text(tree.get("apiVersion")),
        kind=_text(tree.get("kind")),
        metadata=_Name(name=_text(found.get("name")), namespace=_text(found.get("namespace"))),
    )


def _parse(data: "bytes | msgspec.Raw") -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None


def _malformed(error: msgspec.DecodeError | UnicodeDecodeError) -> DecodeError:
    fault = str(error).removeprefix("JSON is malformed: ")
    return DecodeError("", f"expected JSON; got malformed text: {fault}")


_OTHER_CLUSTER_KINDS = frozenset(
    {
        *("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "APIService"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "IngressClass"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterTrustBundle"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "VolumeAttributesClass"),
        *("CertificateSigningRequest", "FlowSchema", "PriorityLevelConfiguration", "ServiceCIDR"),
        *("IPAddress", "StorageVersion", "StorageVersionMigration"),
    }
)
"""Built-in kinds without a namespace that are not read."""


def label_of(tree: Any, kind_name: str) -> str:
    """`pod default/web-1`: the name of an object in messages."""
    head, kind = _head_of(tree), KINDS.get(kind_name)
    name = head.metadata.name
    if not name:
        return kind_name.lower()
    is_namespaced = kind_name not in _OTHER_CLUSTER_KINDS if kind is None else kind.is_namespaced
    place = f"{head.metadata.namespace or 'default'}/" if is_namespaced else ""
    return f"{kind_name.lower()} {place}{name}"


def _explain(error: msgspec.ValidationError, tree: Any) -> tuple[str, str]:
    """The path and the fault of a type error."""
    match = _MESSAGE.fullmatch(str(error))
    assert match is not None, "the pattern matches any text"
    path, fault = (match["path"] or "").removeprefix("."), match["fault"]
    missing = _MISSING.fullmatch(fault)
    if missing is not None:
        name = missing["name"]
        return (f"{path}.{name}" if path else name), "expected a value; got none"
    types = _EXPECTED.match(fault)
    if types is None:
        return path, fault[:1].lower() + fault[1:]
    want = [_TYPE_NAMES.get(name, name) for name in types["want"].split(" | ") if name != "null"]
    got = _TYPE_NAMES.get(types["got"], types["got"])
    return _name_entry(path, got, tree), f"expected {' or '.join(want)}, got {got}"


def _name_entry(path: str, got: str, tree: Any) -> str:
    """Replace the decoder's `[...]` by the name of the invalid entry."""
    before, gap, after = path.partition("[...]")
    if not gap or after:
        return path
    found = tree
    for step in re.findall(r"[^.\[\]]+", before):
        found = found[int(step)] if isinstance(found, list) else found[step]
    if not isinstance(found, Mapping):
        return path
    names = [key for key, value in found.items() if _type_of(value) == got]
    return f"{before}.{names[0]}" if names else path


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _type_of(value: Any) -> str:
    """The name of a value's JSON type."""
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (Mapping, "object"),
        (list, "list"),
    ):
        if isinstance(value, kind):
            return name
    return "null" if value is None else type(value).__name__
