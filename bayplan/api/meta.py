"""Meta: the metadata of every Kubernetes object.

`Wire` is the base of everything decoded: immutable, camelCase on the wire, unknown fields
ignored. Mirrors staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

from msgspec import Struct

DEFAULT_NAMESPACE: ContextVar[str] = ContextVar("default_namespace", default="default")
"""The namespace of namespaced objects that name none, while they are decoded."""


@contextmanager
def reading_into(namespace: str | None) -> Iterator[None]:
    """Inside the block, decoded objects without a namespace get this one, as with `kubectl apply -n`; None is
    `default`.
    """
    token = DEFAULT_NAMESPACE.set(namespace or "default")
    try:
        yield
    finally:
        DEFAULT_NAMESPACE.reset(token)


class Wire(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of the structures decoded from manifests."""


class OwnerReference(Wire, frozen=True):
    """Points at the object that owns this one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Wire, frozen=True):
    """The `metadata` of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    resource_version: str = ""
    generation: int = 0
    finalizers: tuple[str, ...] | None = None


EMPTY_META = ObjectMeta()
NO_STRINGS: dict[str, str] = {}
"""Default for absent labels and annotations; shared, so never modified."""


class KubeObject(Wire, frozen=True):
    """Base of the objects other than pods and nodes: `metadata` and its short names."""

    kind: ClassVar[str] = ""
    api_version: ClassVar[str] = "v1"
    is_namespaced: ClassVar[bool] = True

    metadata: ObjectMeta = EMPTY_META

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace; `default` when the manifest names none, empty for cluster objects."""
        return (self.metadata.namespace or "default") if self.is_namespaced else ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster object."""
        return f"{self.namespace}/{self.name}" if self.is_namespaced else self.name

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or NO_STRINGS

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or NO_STRINGS

    @property
    def owner_references(self) -> tuple[OwnerReference, ...]:
        return self.metadata.owner_references or ()

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    @property
    def creation_timestamp(self) -> str | None:
        return self.metadata.creation_timestamp

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None


def controller_of(owners: tuple[OwnerReference, ...]) -> OwnerReference | None:
    """Return the owner that manages the object, if one does."""
    for owner in owners:
        if owner.controller:
            return owner
    return None


def is_equal(first: Any, second: Any) -> bool:
    """Whether two decoded values are semantically equal, recursively.

    Mirrors staging/src/k8s.io/apimachinery/pkg/api/equality/semantic.go: an absent list or map equals an empty
    one. Quantities and times are compared as text; the API server writes equal ones the same way.
    """
    if first is second or first == second:
        return True
    if first is None or second is None:
        present = second if first is None else first
        return isinstance(present, tuple | list | dict) and not present
    if isinstance(first, Struct):
        return type(first) is type(second) and all(
            is_equal(getattr(first, name), getattr(second, name))
            for name in first.__struct_fields__
        )
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(is_equal(first[k], second[k]) for k in first)
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(is_equal, first, second))
    return False


def is_older(listed: KubeObject, written: KubeObject) -> bool:
    """Whether the lister still shows a version from before the write; versions are numbers."""
    shown, wrote = listed.resource_version, written.resource_version
    return shown.isdecimal() and wrote.isdecimal() and int(shown) < int(wrote)
