"""Resource table: the built-in resources, by group, version and plural name.

`resources.txt` has one per line: version, kind and plural name, then words. `cluster`: without namespaces; `status` and
`scale`: it has these subresources; `generation`: changes of the spec are counted; `graceful`: deleted after a grace
period; `review`: answered, not stored. `short=`, `category=`, `sub=` (further subresources), `verbs=`, `fields=` (what
field selectors can name) and `stored=` (the resource that has the objects) list names; `since=` and `until=` are the
releases that serve it, if not all do. The first version of a group is the preferred one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import InputError
from ...releases.release import DEFAULT_RELEASE, RELEASES, Release

if TYPE_CHECKING:
    from .custom.versions import CustomVersion

STORED_VERBS = (
    *("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
)


class ApiResource(msgspec.Struct, frozen=True, dict=True):
    """One kind of object in one version of the API."""

    group: str
    version: str
    kind: str
    plural: str
    schema: str
    """The name of its type in the table of fields."""
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    has_status: bool = False
    has_generation: bool = False
    is_graceful: bool = False
    scale: str = ""
    """Path of the number of replicas, for scalable resources."""
    fields: tuple[str, ...] = ()
    """Supported field selectors, besides name and namespace."""
    is_review: bool = False
    """Whether it is a review, answered and not stored."""
    stored_as: str = ""
    """The resource under which the objects are stored, if it differs."""
    verbs: tuple[str, ...] = STORED_VERBS
    releases: frozenset[str] = frozenset(RELEASES)
    """The releases that serve it."""
    custom: CustomVersion | None = None
    """The version of a CustomResourceDefinition; None if it is built in."""

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def name(self) -> str:
        """The name in errors: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def storage(self) -> str:
        """The name under which its objects are stored."""
        return self.stored_as or self.name

    def field_index(self, name: str) -> int:
        """The path in stored records of the field that selectors call `name`; versions may differ."""
        if self.stored_as:
            name = _EVENT_NAMES.get(name, name)
            return BY_STORAGE[self.stored_as].fields.index(name)
        return self.fields.index(name)

    @property
    def singular(self) -> str:
        return self.custom.singular if self.custom is not None else self.kind.lower()

    @property
    def list_kind(self) -> str:
        return self.custom.list_kind if self.custom is not None else f"{self.kind}List"

    @cached_property
    def head(self) -> bytes:
        """The beginning of the JSON of an object, before its own fields."""
        return b'{"kind":"%s","apiVersion":"%s",' % (self.kind.encode(), self.api_version.encode())


ALL_WORDS = frozenset({"cluster", "generation", "graceful", "review", "scale", "status"})
_LISTS = {
    "short": "short_names",
    "category": "categories",
    "verbs": "verbs",
    "fields": "fields",
}


def _parse(line: str) -> ApiResource:
    """The resource of one line."""
    api_version, kind, plural, *words = line.split()
    group, _, version = api_version.rpartition("/")
    flags = {word for word in words if "=" not in word}
    assert flags <= ALL_WORDS, f"resources.txt: unknown word in {line!r}"
    given = dict(word.split("=", 1) for word in words if "=" in word)
    subresources: list[str] = [name for name in ("status", "scale") if name in flags]
    subresources += [name for name in given.pop("sub", "").split(",") if name]
    stored_as = given.pop("stored", "")
    releases = list(RELEASES)
    first, last = given.pop("since", releases[0]), given.pop("until", releases[-1])
    lists: dict[str, Any] = {_LISTS[name]: tuple(names.split(",")) for name, names in given.items()}
    if "review" in flags:
        lists["verbs"] = ("create",)
    return ApiResource(
        group,
        version,
        kind,
        plural,
        f"{group.partition('.')[0] or 'core'}.{version}.{kind}",
        is_namespaced="cluster" not in flags,
        subresources=tuple(subresources),
        has_status="status" in flags,
        has_generation="generation" in flags,
        is_graceful="graceful" in flags,
        is_review="review" in flags,
        scale="spec.replicas" if "scale" in flags else "",
        stored_as=stored_as,
        releases=frozenset(releases[releases.index(first) : releases.index(last) + 1]),
        **lists,
    )


_TEXT = files(__package__).joinpath("resources.txt").read_text("utf-8")
ALL_RESOURCES: tuple[ApiResource, ...] = tuple(map(_parse, _TEXT.splitlines()))
"""The resources of all releases."""
RESOURCES = tuple(r for r in ALL_RESOURCES if DEFAULT_RELEASE.version in r.releases)
"""The resources of the default release."""
_EVENT_NAMES = {
    name.replace("involvedObject.", "regarding.").replace("Component", "Controller"): name
    for name in next(r for r in RESOURCES if r.plural == "events" and not r.group).fields
    if name != "source"
}
"""The names of fields in events.k8s.io, and those of the stored objects."""
BY_STORAGE: Mapping[str, ApiResource] = {
    resource.name: resource for resource in RESOURCES if not resource.stored_as
}
BY_KIND: Mapping[tuple[str, str], ApiResource] = {
    (resource.group, resource.kind): resource for resource in reversed(RESOURCES)
}
"""In the preferred version."""


def group_versions(resources: Iterable[ApiResource] = RESOURCES) -> dict[str, list[str]]:
    """The versions of each group of `resources`, preferred first; the core group is ""."""
    found: dict[str, list[str]] = {}
    for resource in resources:
        versions = found.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
    return found


_VERSION = re.compile(r"v(?P<major>\d+)(?:(?P<level>alpha|beta)(?P<minor>\d+))?")
_LEVELS = {None: 2, "beta": 1, "alpha": 0}


def version_rank(name: str) -> tuple[int, int, int, str]:
    """Sorts versions: v2 before v1 before v2beta1 before v1alpha1, other names last."""
    match = _VERSION.fullmatch(name)
    if match is None:
        return (1, 0, 0, name)
    return (-_LEVELS[match["level"]], -int(match["major"]), -int(match["minor"] or 0), name)


def selectable_fields(storage: str, tree: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values for field selectors, in the order of the resource's `fields`; None for an unset field."""
    read = _READERS.get(storage)
    return read(tree) if read is not None else ()


def field_text(path: str, value: Any) -> str:
    """A value of a field as selectors compare it."""
    if value is None:
        return _EMPTY.get(path, "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reader(paths: Iterable[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Reads the values at the paths. Those in the same object are read together."""
    runs: list[tuple[str, list[str]]] = []
    special = [(i, _SPECIAL[path]) for i, path in enumerate(paths) if path in _SPECIAL]
    for path in paths:
        parent, _, name = path.rpartition(".")
        if not runs or runs[-1][0] != parent:
            runs.append((parent, []))
        runs[-1][1].append(name)

    def read(tree: Mapping[str, Any]) -> tuple[Any, ...]:
        values: list[Any] = []
        for parent, names in runs:
            holder = (tree.get(parent) or {}) if parent else tree
            values += map(holder.get, names)
        for i, get in special:
            values[i] = get(tree)
        return tuple(values)

    return read


_SPECIAL: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "source": lambda event: str(
        (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    ),
    "status.successful": lambda job: str((job.get("status") or {}).get("succeeded") or 0),
}
_EMPTY = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0"}
_READERS = {
    storage: _reader(resource.fields) for storage, resource in BY_STORAGE.items() if resource.fields
}


class ResourceCatalog:
    """All served resources. Definitions add and remove some; `revision` changes with each."""

    def __init__(
        self,
        serves: Callable[[ApiResource], bool] = lambda resource: True,
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        self._built_in = tuple(
            resource
            for resource in ALL_RESOURCES
            if release.version in resource.releases and serves(resource)
        )
        self._custom: dict[str, Sequence[ApiResource]] = {}
        self.revision = 0
        self._index()

    def set_custom(self, storage: str, resources: Sequence[ApiResource]) -> None:
        """Serve these versions of a custom resource; without versions it is removed."""
        if resources:
            self._custom[storage] = resources
        elif self._custom.pop(storage, None) is None:
            return
        self.revision += 1
        self._index()

    def _index(self) -> None:
        custom = [resource for versions in self._custom.values() for resource in versions]
        custom.sort(key=lambda resource: version_rank(resource.version))
        self.resources: tuple[ApiResource, ...] = (*self._built_in, *custom)
        """All of them, the preferred version of a group first."""
        self._by_path = {(r.group, r.version, r.plural): r for r in self.resources}
        self._by_head = {(r.api_version, r.kind): r for r in self.resources}
        self._by_storage = {r.name: r for r in reversed(self.resources) if not r.stored_as}
        self._kinds = {(r.group, r.kind) for r in self.resources}

    def find(self, group: str, version: str, plural: str) -> ApiResource | None:
        """The resource at a path."""
        return self._by_path.get((group, version, plural))

    def of_manifest(self, tree: Mapping[str, Any]) -> ApiResource:
        """The resource of a manifest that can be stored; raises InputError without one."""
        api_version, kind = str(tree.get("apiVersion") or ""), str(tree.get("kind") or "")
        resource = self._by_head.get((api_version, kind))
        if resource is None or "create" not in resource.verbs or resource.is_review:
            raise InputError(f'no matches for kind "{kind}" in version "{api_version}"')
        return resource

    def at(self, storage: str) -> ApiResource | None:
        """The resource whose objects are stored under that name."""
        return self._by_storage.get(storage)

    def has_kind(self, group: str, kind: str) -> bool:
        """Whether objects of the kind are served, in any version."""
        return (group, kind) in self._kinds
