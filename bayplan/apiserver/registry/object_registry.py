"""Object registry: create, change and delete objects, as the API server does.

Mirrors k8s.io/apiserver/pkg/registry/generic/registry/store.go. Clients over HTTP and controllers
within the process use the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...api.rules.device_rules import admin_access_causes
from ...api.rules.field_causes import Cause
from ...api.rules.field_defaults import CANONICAL, apply_defaults, canonical_status, complete
from ...api.rules.object_validation import create_causes, status_causes, update_causes
from ...clock import Clock, SystemClock
from ...cluster.objects.pod_life import timestamp
from ...framework.lister import Lister
from ...releases.feature_gates import FeatureGates
from ...releases.release import DEFAULT_RELEASE
from ..store.records import Record
from ..store.store import Store
from . import pods, server_fields
from .conversion import event_causes
from .custom.definitions import DEFINITIONS, Definitions, mark_terminating
from .object_admission import Admitting
from .object_counts import ObjectQuotas
from .pod_group_rules import GATED as GROUP_STORAGES
from .pod_group_rules import PodGroupRules
from .resource_table import BY_STORAGE, ApiResource, ResourceCatalog
from .status_errors import (
    StatusError,
    already_exists,
    bad_request,
    forbidden,
    invalid,
    not_found,
    stale,
)

Tree = dict[str, Any]
Edit = Callable[[Tree], Tree]
"""Returns the new state of an object, which it may modify."""

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
ORPHANING = frozenset({"jobs.batch", "replicationcontrollers"})
"""Kinds whose pods are orphaned by default."""
KEPT_NAMESPACES = ("default", "kube-system", "kube-public")
STATUS_WRITES = ("status", "approval")
"""Subresources that write the status only."""
MADE_BY_PUT = frozenset(
    {"leases.coordination.k8s.io", "endpoints", "events", "limitranges", "resourcequotas"}
)
RESOURCE_VERSION = "metadata.resourceVersion"
_PROPAGATION = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND], "Background": []}
_CLAIMS = frozenset({"resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"})
_NAMESPACES = BY_STORAGE["namespaces"]


class DeleteOptions(msgspec.Struct, frozen=True):
    """Options of a deletion."""

    grace_s: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


class ObjectRegistry:
    """All objects of the cluster, with the rules for changing them. Admission reads from `lister`.

    `gates` are the feature gates of the API server; one that is not named is off.
    """

    def __init__(
        self,
        store: Store,
        lister: Lister,
        clock: Clock | None = None,
        gates: Mapping[str, bool] | None = None,
    ) -> None:
        self.store = store
        self.lister = lister
        self.clock = clock or SystemClock()
        self.groups = PodGroupRules(gates or {}, lister)
        self.release = gates.release if isinstance(gates, FeatureGates) else DEFAULT_RELEASE
        """The release of Kubernetes that the server reports."""
        self.catalog = ResourceCatalog(self.groups.serves, self.release)
        self.definitions = Definitions(store, self.catalog)
        self.quotas = ObjectQuotas(store, lister, self.catalog)
        self._admitting = Admitting(lister, self.quotas.ledger)

    def now(self, later_s: float = 0) -> str:
        """The time, or some seconds later, in Kubernetes' format."""
        return timestamp(self.clock, later_s)

    def get(self, resource: ApiResource, namespace: str, name: str) -> Record:
        """The object; raises StatusError if it does not exist."""
        record = self.store.get(resource.storage, (namespace, name))
        if record is None:
            raise not_found(resource, name)
        return record

    # Creating

    def create(
        self, resource: ApiResource, namespace: str, tree: Tree, dry_run: bool = False
    ) -> Record:
        """Store a new object, with all server-side fields."""
        now = self.now()
        server_fields.begin(resource, tree, namespace, now)
        is_pod, has_labels = resource.storage == "pods", bool(tree["metadata"].get("labels"))
        sent = msgspec.json.encode(tree.get("spec")) if is_pod else b""
        known = self._admitting.checked(sent) if is_pod else None
        if known is not None:
            tree["spec"] = known.tree
            CANONICAL.strip(tree["metadata"], "meta.v1.ObjectMeta")
        else:
            _set_defaults(resource, tree, now)
        name = str(tree["metadata"].get("name") or "")
        if resource.is_namespaced:
            self._check_namespace(resource, namespace, name)
        self.groups.prepare(resource, tree)
        self.definitions.prepare(resource, tree)
        causes = [
            *create_causes(resource.storage, tree, is_checked=known is not None),
            *(event_causes(tree) if resource.stored_as == "events" else ()),
            *self.groups.causes(resource, tree),
            *self.definitions.causes(resource, tree),
            *(self._admin_causes(namespace, tree) if resource.storage in _CLAIMS else ()),
        ]
        if causes:
            raise invalid(resource, name, causes)
        self.groups.check(resource, tree)
        self.definitions.complete(resource, tree, now)
        if is_pod:
            if known is None:
                complete(tree, _type_of(resource))
            tree = self._admitting.admit_pod(tree, sent, known)
        else:
            tree = self._admitting.admit(resource, tree)
        refusal = self.quotas.refusal(resource, namespace, tree)
        if refusal:
            raise forbidden(resource, name, refusal)
        server_fields.complete(resource, tree, now, has_labels)
        if resource.storage == "services":
            others = (record.decode() for record in self.store.list("services"))
            server_fields.allocate(tree, others)
        if not is_pod:
            complete(tree, _type_of(resource))
        key = (namespace if resource.is_namespaced else "", name)
        if self.store.get(resource.storage, key) is not None:
            raise already_exists(resource, name)
        return self._put(resource, key, server_fields.bare(tree), dry_run)

    def restore(self, resource: ApiResource, namespace: str, tree: Tree) -> Record:
        """Store an object of another API server, with the defaults of this one."""
        metadata = dict(server_fields.metadata_of(tree))
        for name in ("resourceVersion", "selfLink"):
            metadata.pop(name, None)
        metadata["creationTimestamp"] = metadata.get("creationTimestamp") or self.now()
        if resource.is_namespaced:
            metadata["namespace"] = namespace
        if resource.has_generation:
            metadata.setdefault("generation", 1)
        tree = {**tree, "metadata": metadata}
        _set_defaults(resource, tree, self.now())
        key = (namespace if resource.is_namespaced else "", str(metadata["name"]))
        return self._put(resource, key, server_fields.bare(tree), False)

    def create_own(self, resource: ApiResource, namespace: str, tree: Tree) -> Record:
        """Store a new object that the server made itself, which has all fields that rules would set or check."""
        metadata = tree["metadata"]
        name = metadata["name"]
        self._check_namespace(resource, namespace, name)
        refusal = self.quotas.refusal(resource, namespace, tree)
        if refusal:
            raise forbidden(resource, name, refusal)
        metadata["uid"] = server_fields.random_uid()
        metadata["creationTimestamp"] = self.now()
        return self.store.put(resource.storage, (namespace, name), tree)

    def _check_namespace(self, resource: ApiResource, namespace: str, name: str) -> None:
        record = self.store.get("namespaces", ("", namespace))
        if record is None:
            raise not_found(_NAMESPACES, namespace)
        if record.fields == ("Terminating",):
            problem = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = Cause(
                "NamespaceTerminating",
                f"namespace {namespace} is being terminated",
                "metadata.namespace",
            )
            raise forbidden(resource, name, problem, [cause])

    def _admin_causes(self, namespace: str, claim: Tree) -> list[Cause]:
        record = self.store.get("namespaces", ("", namespace))
        return admin_access_causes(claim, (record.labels if record is not None else None) or {})

    # Changing

    def update(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        edit: Edit,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Record:
        """Replace the object by the result of `edit`; raises StatusError if that is not allowed."""
        record = self.get(resource, namespace, name)
        old, tree = record.decode(), record.decode()
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        tree = edit({**head, **tree})
        self._check_identity(resource, tree, old)
        server_fields.keep_server_set(tree, old)
        if subresource in STATUS_WRITES:
            tree = self._with_status(resource, tree, old)
        elif subresource == "finalize":
            tree = {**old, "spec": tree.get("spec") or {}}
        elif subresource == "resize":
            tree = self._resized(resource, tree, old)
        else:
            tree = self._with_all_but_status(resource, tree, old)
        tree = server_fields.bare(tree)
        self._admitting.check(resource, tree, old if subresource == "" else None)
        if resource.storage == "services" and subresource == "":
            refusal = self.quotas.refusal(resource, namespace, tree, old)
            if refusal:
                raise forbidden(resource, name, refusal)
        return self._replace(resource, record, tree, old, dry_run)

    def _with_status(self, resource: ApiResource, tree: Tree, old: Tree) -> Tree:
        """`old` with the status of `tree`; raises StatusError for faults of it."""
        tree = server_fields.only_status(resource, tree, old)
        canonical_status(tree, _type_of(resource))
        _refuse(
            resource,
            old,
            *status_causes(resource.storage, tree),
            *self.groups.status_causes(resource, tree),
            *self.definitions.status_causes(resource, tree, old),
        )
        return tree

    def _resized(self, resource: ApiResource, tree: Tree, old: Tree) -> Tree:
        """`old` with the resources of the containers of `tree`."""
        tree = pods.resized(tree, old)
        _set_defaults(resource, tree, self.now())
        _refuse(resource, old, *pods.resize_causes(tree, old))
        tree["metadata"] = dict(tree["metadata"])
        complete(tree, _type_of(resource))
        server_fields.count_generation(resource, tree, old)
        return tree

    def _with_all_but_status(self, resource: ApiResource, tree: Tree, old: Tree) -> Tree:
        """`tree` with the status of `old`."""
        tree = server_fields.all_but_status(resource, tree, old)
        _set_defaults(resource, tree, self.now())
        self.groups.prepare(resource, tree, old)
        self.definitions.prepare(resource, tree, old)
        _refuse(
            resource,
            old,
            *update_causes(resource.storage, resource.kind, tree, old),
            *(event_causes(tree) if resource.stored_as == "events" else ()),
            *self.groups.causes(resource, tree, old),
            *self.definitions.causes(resource, tree, old),
        )
        self.groups.check(resource, tree, old)
        self.definitions.complete(resource, tree, self.now())
        complete(tree, _type_of(resource))
        server_fields.count_generation(resource, tree, old)
        return tree

    def write(self, resource: ApiResource, record: Record, tree: Tree) -> Record:
        """Replace `record` by `tree` without any rule: for the server's own bookkeeping."""
        old, tree = record.decode(), server_fields.bare(tree)
        tree["metadata"] = dict(tree["metadata"])
        server_fields.count_generation(resource, tree, old)
        return self._replace(resource, record, tree, old, False)

    def _check_identity(self, resource: ApiResource, tree: Tree, old: Tree) -> None:
        """Check that the object is the one that was read."""
        metadata, before = server_fields.metadata_of(tree), old["metadata"]
        name = before["name"]
        if tree.get("kind", resource.kind) != resource.kind:
            raise bad_request(
                f"the kind in the body ({tree['kind']}) does not match the expected kind ({resource.kind})"
            )
        given = metadata.get("name")
        if given and given != name:
            raise bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({name})"
            )
        if metadata.get("uid") and metadata["uid"] != before["uid"]:
            pods.check_preconditions(resource, old, metadata["uid"], None)
        version = metadata.get("resourceVersion")
        if not version and resource.custom is not None:
            problem = "must be specified for an update"
            cause = Cause("FieldValueInvalid", f"Invalid value: 0: {problem}", RESOURCE_VERSION)
            raise invalid(resource, name, [cause])
        if version and str(version) != before["resourceVersion"]:
            raise stale(resource, name)

    def _replace(
        self, resource: ApiResource, record: Record, tree: Tree, old: Tree, dry_run: bool
    ) -> Record:
        if tree == old:
            return record  # no change: no new version, no event
        metadata = tree["metadata"]
        leaves = metadata.get("deletionTimestamp") and not metadata.get("finalizers")
        has_grace = metadata.get("deletionGracePeriodSeconds")
        if not leaves or has_grace or self._holds(resource, tree):
            return self._put(resource, record.key, tree, dry_run)
        return record if dry_run else self.store.remove(resource.storage, record.key)

    def _put(
        self, resource: ApiResource, key: tuple[str, str], tree: Tree, dry_run: bool
    ) -> Record:
        if not dry_run:
            return self.store.put(resource.storage, key, tree)
        data = msgspec.json.encode(tree)
        return Record(key, tree["metadata"]["uid"], 0, data, tree["metadata"].get("labels"))

    def _holds(self, resource: ApiResource, tree: Tree) -> bool:
        """Whether anything besides finalizers of the metadata keeps the object."""
        return resource.storage == "namespaces" and bool((tree.get("spec") or {}).get("finalizers"))

    # Deleting

    def delete(
        self, resource: ApiResource, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> tuple[Record, bool]:
        """Delete the object, or start its deletion; return its last state and whether it was removed."""
        options = options or DeleteOptions()
        record = self.get(resource, namespace, name)
        tree, old = record.decode(), record.decode()
        pods.check_preconditions(resource, tree, options.uid, options.resource_version)
        if resource.storage == "namespaces" and name in KEPT_NAMESPACES:
            raise forbidden(resource, name, "this namespace may not be deleted")
        metadata = tree["metadata"]
        self._set_finalizers(resource, metadata, options.propagation)
        if resource.storage == DEFINITIONS and not metadata.get("deletionTimestamp"):
            mark_terminating(tree, self.now())
        grace_s = pods.grace_of(tree, options.grace_s) if resource.is_graceful else 0
        if metadata.get("deletionTimestamp"):
            grace_s = min(grace_s, int(metadata.get("deletionGracePeriodSeconds") or 0))
        must_stay = bool(metadata.get("finalizers")) or self._holds(resource, tree)
        if options.dry_run:
            return record, not must_stay and not grace_s
        if not must_stay and not grace_s:
            return self.store.remove(resource.storage, record.key), True
        self._mark_deleted(resource, tree, grace_s)
        if tree != old:
            record = self.store.put(resource.storage, record.key, tree)
        return record, False

    def delete_if_there(
        self, resource: ApiResource, namespace: str, name: str, options: DeleteOptions
    ) -> None:
        """Delete the object, unless it was deleted or replaced already."""
        try:
            self.delete(resource, namespace, name, options)
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    def drop_finalizer(self, resource: ApiResource, record: Record, finalizer: str) -> None:
        """Remove a finalizer of an object; a terminating object is removed with its last finalizer."""
        tree = record.decode()
        others = [f for f in tree["metadata"].pop("finalizers", None) or () if f != finalizer]
        if others:
            tree["metadata"]["finalizers"] = others
        self.write(resource, record, tree)

    def _mark_deleted(self, resource: ApiResource, tree: Tree, grace_s: int) -> None:
        """Mark the object as terminating, with its deadline."""
        metadata = tree["metadata"]
        if not metadata.get("deletionTimestamp") or grace_s < int(
            metadata.get("deletionGracePeriodSeconds") or 0
        ):
            metadata["deletionTimestamp"] = self.now(grace_s)
            metadata["deletionGracePeriodSeconds"] = grace_s
            if resource.has_generation:
                metadata["generation"] = int(metadata.get("generation") or 0) + 1
        if resource.storage == "namespaces":
            tree["status"] = {**(tree.get("status") or {}), "phase": "Terminating"}

    def _set_finalizers(self, resource: ApiResource, metadata: Tree, propagation: str) -> None:
        """Keep the object until its dependents are deleted or orphaned, if requested."""
        others = [f for f in metadata.get("finalizers") or () if f not in (ORPHAN, FOREGROUND)]
        chosen = _PROPAGATION.get(propagation)
        if chosen is None:
            present = set(metadata.get("finalizers") or ())
            chosen = [f for f in (ORPHAN, FOREGROUND) if f in present]
            if not chosen and resource.storage in ORPHANING:
                chosen = [ORPHAN]
        if chosen == [ORPHAN] and not self.store.owned_by(metadata["uid"]):
            chosen = []
        finalizers = [*others, *chosen]
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)

    # Pods

    def bind(self, namespace: str, name: str, binding: Tree, dry_run: bool = False) -> None:
        """Bind a pod to the node that a Binding names."""
        node_name = pods.check_binding(binding, name)
        record = self.get(pods.PODS, namespace, name)
        tree = pods.bind(record.decode(), binding, node_name, self.now())
        node = self.store.get("nodes", ("", node_name))
        if node is not None:
            pods.copy_topology(tree, node.labels or {})
        self._put(pods.PODS, record.key, tree, dry_run)


def _set_defaults(resource: ApiResource, tree: Tree, now: str) -> None:
    if resource.custom is None:
        apply_defaults(resource.storage, tree, _type_of(resource), now)


def _type_of(resource: ApiResource) -> str:
    """The type of the stored objects; empty for custom ones. Groups have another form in each release that has them."""
    if resource.custom is not None:
        return ""
    stored = resource if resource.storage in GROUP_STORAGES else BY_STORAGE[resource.storage]
    return stored.schema


def _refuse(resource: ApiResource, old: Tree, *causes: Cause) -> None:
    """Raise StatusError if the change of an object has faults."""
    if causes:
        raise invalid(resource, old["metadata"]["name"], causes)
