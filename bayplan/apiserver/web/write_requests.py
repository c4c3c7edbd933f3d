"""Write requests: requests that create, change and delete, passed to the registry."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from ...api.rules.field_causes import Cause, invalid_value
from ...api.rules.field_warnings import WARNED, field_warnings
from ...api.schema.fields import FIELDS
from ...api.schema.input_check import WrongTypeError, unknown_fields
from ...api.schema.strategic import PatchError, strategic_merge
from ...api.wire.nulls import without_nulls
from ...api.wire.whole import merge_patch
from ..access.access_reviews import AccessReviews
from ..access.authorizer import ClusterUser
from ..access.grants import GrantGuard, GrantRequest
from ..access.rbac import GROUP
from ..registry import eviction
from ..registry.conversion import from_stored, to_stored
from ..registry.custom.definitions import DEFINITIONS, definition_warnings
from ..registry.object_registry import MADE_BY_PUT, DeleteOptions, Edit, ObjectRegistry
from ..registry.query_selectors import make_matcher
from ..registry.resource_table import ApiResource
from ..registry.scale import update_scale
from ..registry.status_errors import (
    StatusError,
    bad_request,
    invalid,
    method_not_allowed,
    unsupported_media_type,
)
from ..schema.apply import ApplyConflictError, Manager, apply
from ..schema.json_patch import TooLargePatchError, json_patch
from ..store.records import Record
from .http_requests import WholeRequest
from .http_server import HttpResponse
from .requests import (
    Options,
    parse_delete_options,
    parse_json,
    parse_yaml,
    read_body,
)
from .responses import View, respond, respond_tree, success, warning_headers
from .targets import Target

Tree = dict[str, Any]

JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
CUSTOM_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
"""Patches of custom resources, whose lists have no merge keys."""
SCALE = "autoscaling.v1.Scale"
RETURNED = frozenset(
    {
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
    }
)
"""Resources whose deletion returns the last state instead of a Status."""

USER = ("username", "groups", "uid", "extra")
"""The fields of a user in a CertificateSigningRequest."""
_POLICY = "stored and not evaluated by bayplan up"
_WEBHOOK = "stored and not called by bayplan up"
WITHOUT_EFFECT = {
    "apiservices.apiregistration.k8s.io": "stored; bayplan up proxies no requests to it",
    "certificatesigningrequests.certificates.k8s.io": "stored; bayplan up signs no certificate",
    "horizontalpodautoscalers.autoscaling": "stored; bayplan up scales nothing by it",
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _POLICY,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOK,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _POLICY,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOK,
}
"""Kinds that are stored and served and have no further effect here, with a warning for clients that write them."""


class ObjectRequest(NamedTuple):
    """A request about objects, parsed and authorized."""

    http: WholeRequest
    target: Target
    options: Options
    view: View
    user: ClusterUser


class Writing:
    """Handles write requests."""

    def __init__(
        self, registry: ObjectRegistry, reviews: AccessReviews, grants: GrantGuard
    ) -> None:
        self._registry = registry
        self._reviews = reviews
        self._grants = grants

    def create(self, asked: ObjectRequest) -> HttpResponse:
        """POST: a new object, a review, a token, or the binding or eviction of a pod."""
        request, target, options, view, user = asked
        body = read_body(request)
        resource = target.resource
        if target.name:
            return self._create_part(target, body, options)
        _check_head(resource, body)
        warnings = check_fields(resource, body, options.field_validation)
        check_namespace(target, body)
        namespace = target.namespace
        if resource.is_review:
            head = {"kind": resource.kind, "apiVersion": resource.api_version}
            answer = self._reviews.answer(resource, body, user, namespace)
            return respond_tree({**head, **answer}, 201)
        if resource.kind == "Binding":
            name = str((body.get("metadata") or {}).get("name") or "")
            self._registry.bind(namespace, name, body, options.dry_run)
            return success(201)
        tree = to_stored(resource, body)
        if (
            resource.kind == "CertificateSigningRequest"
        ):  # the user of the request, whatever its body has
            spec = {
                key: value for key, value in (tree.get("spec") or {}).items() if key not in USER
            }
            tree["spec"] = {**spec, **user.as_tree()}
        self._grants.check(user, GrantRequest(resource, namespace, ""), tree)
        record = self._registry.create(resource, namespace, tree, options.dry_run)
        return respond(view.object(record), 201, _and_effects(warnings, resource, record))

    def _create_part(self, target: Target, body: Tree, options: Options) -> HttpResponse:
        match target.subresource:
            case "binding":
                check_types(body, "core.v1.Binding")
                body["metadata"] = {"name": target.name, **(body.get("metadata") or {})}
                self._registry.bind(target.namespace, target.name, body, options.dry_run)
            case "eviction":
                check_types(body, "policy.v1.Eviction")
                deletion = parse_delete_options(body.get("deleteOptions") or {}, {})
                if options.dry_run:
                    deletion = DeleteOptions(dry_run=True)
                eviction.evict(self._registry, target.namespace, target.name, body, deletion)
            case "token":
                check_types(body, "authentication.v1.TokenRequest")
                place = target.namespace, target.name
                return respond_tree(self._reviews.make_token(self._registry, *place, body), 201)
            case _:
                raise method_not_allowed()
        return success(201)

    def update(self, asked: ObjectRequest) -> HttpResponse:
        """PUT: replace an object."""
        request, target, options, view, user = asked
        body = read_body(request)
        resource = target.resource
        if target.subresource == "scale":
            check_types(body, SCALE)
            return self._scale(target, lambda scale: body, options)
        _check_head(resource, body)
        warnings = check_fields(resource, body, options.field_validation)
        check_place(target, body)
        tree = to_stored(resource, body)
        place = self._registry.store.get(resource.storage, (target.namespace, target.name))
        if place is None and resource.storage in MADE_BY_PUT and not target.subresource:
            record = self._registry.create(resource, target.namespace, tree, options.dry_run)
            return respond(view.object(record), 201, _and_effects(warnings, resource, record))
        record = self._update(target, lambda old: tree, options, user)
        more = _and_effects(warnings, resource, record, place)
        return respond(view.object(record), 200, warnings if target.subresource else more)

    def patch(self, asked: ObjectRequest) -> HttpResponse:
        """PATCH: change an object."""
        request, target, options, _, _ = asked
        kind, data = request.content_type, request.body
        resource = target.resource
        accepted = PATCHES if resource.custom is None else CUSTOM_PATCHES
        if kind not in accepted:
            raise unsupported_media_type(accepted)
        if kind == APPLY_PATCH:
            return self._apply(asked, parse_yaml(data))
        body = parse_json(data)
        is_scale = target.subresource == "scale"
        schema = SCALE if is_scale else resource.schema
        warnings: dict[str, str] = {}

        def edit(tree: Tree) -> Tree:
            patched = _patched(kind, tree, body, schema)
            if is_scale:
                check_types(patched, SCALE)
            else:
                warnings.update(check_fields(resource, patched, options.field_validation))
            check_place(target, patched)
            _check_same_object(resource, patched, tree)
            return patched

        if is_scale:
            return self._scale(target, edit, options)
        return self._changed(asked, edit, warnings)

    def _changed(self, asked: ObjectRequest, edit: Edit, warnings: dict[str, str]) -> HttpResponse:
        """The answer to a patch; `edit` may add to the warnings."""
        _, target, options, view, user = asked
        resource = target.resource
        before = self._registry.store.get(resource.storage, (target.namespace, target.name))
        record = self._update(target, _through_version(resource, edit), options, user)
        if not target.subresource:
            warnings = _and_effects(warnings, resource, record, before)
        return respond(view.object(record), 200, warnings)

    def _apply(self, asked: ObjectRequest, config: Any) -> HttpResponse:
        """Server-side apply; creates the object if it does not exist."""
        _, target, options, view, user = asked
        resource = target.resource
        if not isinstance(config, dict):
            raise bad_request("the body of the request is not an object")
        if target.subresource == "scale":
            raise unsupported_media_type(PATCHES[:3])
        sent, config = config, without_nulls(config)
        if not options.field_manager:
            cause = Cause(
                "FieldValueRequired",
                "Required value: is required for apply patch",
                "fieldManager",
            )
            message = f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {cause.message}'
            raise StatusError(422, "Invalid", message, {"causes": [cause.as_dict()]})
        _check_head(resource, config)
        warnings = check_fields(resource, config, options.field_validation)
        check_place(target, config)
        if resource.custom is not None and not target.subresource:
            causes = resource.custom.schema.null_causes(sent)
            if causes:
                raise invalid(resource, target.name, causes)
        now = self._registry.now()
        manager = Manager(options.field_manager, resource.api_version, now, target.subresource)

        def edit(tree: Tree) -> Tree:
            return _applied(tree, config, resource, manager, options.force)

        store = self._registry.store
        key = (target.namespace if resource.is_namespaced else "", target.name)
        if store.get(resource.storage, key) is None and not target.subresource:
            tree = to_stored(resource, edit({"metadata": {"name": target.name}}))
            self._grants.check(user, GrantRequest(resource, *key), tree)
            record = self._registry.create(resource, target.namespace, tree, options.dry_run)
            return respond(view.object(record), 201, _and_effects(warnings, resource, record))
        return self._changed(asked, edit, warnings)

    def _update(self, target: Target, edit: Edit, options: Options, user: ClusterUser) -> Record:
        place = GrantRequest(target.resource, target.namespace, target.name)

        def granted(old: Tree) -> Tree:
            before = deepcopy(old)
            tree = edit(old)
            self._grants.check(user, place, tree, before)
            return tree

        return self._registry.update(
            target.resource,
            target.namespace,
            target.name,
            granted if target.resource.group == GROUP else edit,
            target.subresource,
            options.dry_run,
        )

    def _scale(self, target: Target, edit: Edit, options: Options) -> HttpResponse:
        scale = update_scale(
            self._registry,
            target.resource,
            target.namespace,
            target.name,
            edit,
            options.dry_run,
        )
        return respond_tree(scale)

    def delete(self, asked: ObjectRequest) -> HttpResponse:
        """DELETE: one object, or all that the selectors match."""
        request, target, options, view, _ = asked
        body = read_body(request) if request.body else {}
        check_types(body, "meta.v1.DeleteOptions")
        deletion = parse_delete_options(body, request.query)
        resource = target.resource
        if not target.name:
            return self._delete_all(target, options, deletion, view)
        if target.subresource:
            raise method_not_allowed()
        record, is_gone = self._registry.delete(resource, target.namespace, target.name, deletion)
        if not is_gone or resource.storage in RETURNED:
            return respond(view.object(record))
        details = {
            "name": target.name,
            "group": resource.group,
            "kind": resource.plural,
            "uid": record.uid,
        }
        return success(200, {key: value for key, value in details.items() if value})

    def _delete_all(
        self, target: Target, options: Options, deletion: DeleteOptions, view: View
    ) -> HttpResponse:
        resource, store = target.resource, self._registry.store
        matches = make_matcher(resource, options.labels, options.fields)
        deleted = []
        for record in store.list(resource.storage, target.namespace):
            if matches is None or matches(record):
                deleted.append(self._registry.delete(resource, *record.key, deletion)[0])
        version = str(store.resource_version)
        return respond(view.list(deleted, {"resourceVersion": version}))


def _and_effects(
    headers: dict[str, str], resource: ApiResource, record: Record, old: Record | None = None
) -> dict[str, str]:
    """The headers, with warnings about fields, and about kinds without an effect here."""
    texts: list[str] = []
    if resource.storage in WARNED:
        before = None if old is None else old.decode()
        texts += field_warnings(resource.storage, record.decode(), before)
    texts += write_warnings(resource, record)
    more = warning_headers(texts)
    texts = [header["Warning"] for header in (headers, more) if header]
    return {"Warning": ", ".join(texts)} if texts else {}


def check_fields(resource: ApiResource, tree: Tree, mode: str) -> dict[str, str]:
    """Reject values of the wrong type, and unknown fields when requested; return warnings as
    headers. The schema of a custom resource drops unknown fields."""
    try:
        unknown = _unknown_fields(resource, tree)
    except WrongTypeError as error:
        message = (
            f'{resource.kind} in version "{resource.version}" cannot be handled as a'
            f" {resource.kind}: {error}"
        )
        raise bad_request(message) from None
    if not unknown or mode == "Ignore":
        return {}
    faults = [f'unknown field "{path}"' for path in unknown]
    if mode == "Strict":
        message = (
            f'{resource.kind} in version "{resource.version}" cannot be handled as a'
            f" {resource.kind}: strict decoding error: {', '.join(faults)}"
        )
        raise bad_request(message)
    return warning_headers(faults)


def _unknown_fields(resource: ApiResource, tree: Tree) -> list[str]:
    if resource.custom is None:
        return unknown_fields(tree, resource.schema)
    found = unknown_fields(tree.get("metadata"), "meta.v1.ObjectMeta")
    for name in found:
        if "." not in name and "[" not in name:
            del tree["metadata"][name]
    return [*(f"metadata.{name}" for name in found), *resource.custom.schema.prune(tree)]


def check_types(tree: Tree, schema: str) -> None:
    """Reject values of the wrong type; raises StatusError (400)."""
    try:
        unknown_fields(tree, schema)
    except WrongTypeError as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from None


def _check_head(resource: ApiResource, tree: Tree) -> None:
    """Reject an object of another kind or version than the path."""
    kind, version = tree.get("kind"), tree.get("apiVersion")
    if kind not in (None, resource.kind):
        raise bad_request(
            f"the kind in the body ({kind}) does not match the expected kind ({resource.kind})"
        )
    if version not in (None, resource.api_version):
        raise bad_request(
            "the API version in the data "
            f"({version}) does not match the expected API version ({resource.api_version})"
        )


def check_namespace(target: Target, tree: Mapping[str, Any]) -> None:
    """Check that an object is in the namespace of the path; raises StatusError (400)."""
    given = (tree.get("metadata") or {}).get("namespace")
    if target.resource.is_namespaced and given and given != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_place(target: Target, tree: Mapping[str, Any]) -> None:
    """Check that an object is the one of the path; raises StatusError (400)."""
    check_namespace(target, tree)
    name = (tree.get("metadata") or {}).get("name")
    if not name:
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable:"
            " name must be provided"
        )
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )


def _check_same_object(resource: ApiResource, patched: Tree, tree: Tree) -> None:
    """Check the uid that a patch may name."""
    metadata, before = patched.get("metadata") or {}, tree.get("metadata") or {}
    uid = metadata.get("uid")
    if uid and uid != before.get("uid"):
        cause = invalid_value("metadata.uid", uid, "field is immutable")
        raise invalid(resource, str(before.get("name")), [cause])


def _through_version(resource: ApiResource, edit: Edit) -> Edit:
    """An edit of the object in the resource's version."""
    if not resource.stored_as:
        return edit
    return lambda tree: to_stored(resource, edit(from_stored(resource, tree)))


def _patched(kind: str, tree: Tree, body: Any, schema: str) -> Tree:
    try:
        if kind == JSON_PATCH:
            patched = json_patch(tree, body)
        elif kind == MERGE_PATCH:
            patched = merge_patch(tree, body)
        else:
            patched = strategic_merge(tree, body, schema)
    except TooLargePatchError as error:
        raise StatusError(413, "RequestEntityTooLarge", str(error)) from None
    except PatchError as error:
        code, reason = (422, "Invalid") if error.is_unprocessable else (400, "BadRequest")
        message = f"the server rejected our request due to an error in our request: {error}"
        raise StatusError(code, reason, message) from None
    if not isinstance(patched, dict):
        raise bad_request("the patched object is not an object")
    return patched


def _applied(
    tree: Tree, config: Tree, resource: ApiResource, manager: Manager, force: bool
) -> Tree:
    try:
        fields = resource.custom.schema if resource.custom is not None else FIELDS
        return apply(tree, config, resource.schema, manager, force, fields)
    except ApplyConflictError as error:
        causes = [
            Cause("FieldManagerConflict", f'conflict with "{name}"', path).as_dict()
            for name, path in error.conflicts
        ]
        count = len(causes)
        listed = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
        text = f"Apply failed with {count} conflict{'s' * (count > 1)}: {listed}"
        raise StatusError(409, "Conflict", text, {"causes": causes}) from None


def write_warnings(resource: ApiResource, record: Record) -> list[str]:
    """Parts of a created or changed object that have no effect here."""
    if resource.custom is not None:
        warning = resource.custom.deprecation
        return [warning] if warning else []
    if resource.storage == DEFINITIONS:
        return definition_warnings(record.decode())
    text = WITHOUT_EFFECT.get(resource.storage)
    return [f"{resource.kind}: {text}"] if text else []
