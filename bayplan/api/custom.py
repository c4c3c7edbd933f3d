"""Custom: objects of kinds that only plugins read, such as those of a CustomResourceDefinition.

They are named as in kube-scheduler's EventsToRegister, `foos.v1.example.com`: plural, version and group. That name is
also their `kind` here, so that they never take the place of another group's kind of the same name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from .meta import KubeObject
from .wire.kinds import KINDS, FieldError, Kind

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(
    rf"(?P<plural>{_LABEL})\.(?P<version>{_LABEL})\.(?P<group>{_LABEL}(\.{_LABEL})*)?"
)
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


class CustomResource(Struct, frozen=True):
    """A kind of objects that a plugin reads: its name, and its names in manifests.

    `name` is `plural.version.group`; the core group is empty: `configmaps.v1.`
    """

    name: str
    kind: str
    is_namespaced: bool = True

    @property
    def plural(self) -> str:
        return self.name.split(".", 2)[0]

    @property
    def api_version(self) -> str:
        """As in manifests: `example.com/v1`, or `v1` for the core group."""
        _, version, group = self.name.split(".", 2)
        return f"{group}/{version}" if group else version

    @property
    def description(self) -> str:
        """The declaration besides the name, for messages: `kind Foo, namespaced`."""
        return f"kind {self.kind}, {'namespaced' if self.is_namespaced else 'cluster-scoped'}"

    def problem(self) -> str | None:
        """Reason why it cannot be read; None if it can."""
        if not is_custom(self.name):
            return f'name: expected plural.version.group, as foos.v1.example.com; got "{self.name}"'
        if not _KIND.fullmatch(self.kind):
            return f'kind: expected that of its manifests, as Foo; got "{self.kind}"'
        known = KINDS.get(self.kind)
        group = self.name.split(".", 2)[2]
        if known is not None and known.group == group:
            return f"kind: expected one that handle.lister does not have; got {self.kind}"
        return None


def is_custom(name: str) -> bool:
    """Whether `name` has the form `plural.version.group`."""
    return _NAME.fullmatch(name) is not None


class CustomObject(KubeObject, frozen=True):
    """An object of a custom resource; `raw` is its manifest, never modified."""

    resource: ClassVar[CustomResource]

    raw: dict[str, Any] = msgspec.field(default_factory=dict)


@lru_cache(maxsize=256)
def custom_kind(resource: CustomResource) -> Kind:
    """Decoding of the objects of the resource."""

    class Made(CustomObject, frozen=True):
        kind = resource.name
        api_version = resource.api_version
        is_namespaced = resource.is_namespaced

    Made.resource = resource
    Made.__name__ = Made.__qualname__ = resource.kind

    def build(tree: dict[str, Any]) -> CustomObject:
        metadata = msgspec.convert(tree, KubeObject).metadata
        if not metadata.name and not metadata.generate_name:
            raise FieldError("metadata.name", "expected a name; got none")
        kept = {key: value for key, value in tree["metadata"].items() if key != "managedFields"}
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        return Made(metadata=metadata, raw={**tree, **head, "metadata": kept})

    return Kind(resource.name, resource.api_version, dict, build, resource.is_namespaced)


def custom_tree(obj: CustomObject) -> dict[str, Any]:
    """The manifest of the object, with the identity that its cluster gave it."""
    given = {
        "name": obj.name,
        "uid": obj.uid,
        "resourceVersion": obj.resource_version,
    }
    metadata = {**obj.raw.get("metadata", {}), **{k: v for k, v in given.items() if v}}
    return {**obj.raw, "metadata": metadata}


# Which of them are read

Readable = Mapping[tuple[str, str], Kind]
"""By `apiVersion` and `kind` of a manifest."""

_NONE: Readable = {}
_READABLE: ContextVar[Readable] = ContextVar("custom_kinds", default=_NONE)


@contextmanager
def reading_custom(resources: Iterable[CustomResource]) -> Iterator[None]:
    """Inside the block, objects of these resources are decoded; others are unknown objects."""
    kinds = {(one.api_version, one.kind): custom_kind(one) for one in resources}
    token = _READABLE.set(kinds)
    try:
        yield
    finally:
        _READABLE.reset(token)


def find_custom_kind(api_version: str, kind: str) -> Kind | None:
    """The kind of a manifest, if objects of it are read here."""
    return _READABLE.get().get((api_version, kind))


def readable_kinds() -> dict[str, Kind]:
    """The custom kinds that are read here, by name and by the kind of their manifests in lower case."""
    found = _READABLE.get()
    by_kind = {kind.lower(): made for (_, kind), made in found.items()}
    return by_kind | {made.name: made for made in found.values()}


def readable_resources() -> list[CustomResource]:
    """The custom resources that are read here."""
    return [
        CustomResource(made.name, kind, made.is_namespaced)
        for (_, kind), made in _READABLE.get().items()
    ]
