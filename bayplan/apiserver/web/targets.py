"""Targets: the subject of a request, parsed once from its method, path and query.

Mirrors k8s.io/apiserver/pkg/endpoints/request/requestinfo.go. Authorization gets `question`; the other fields of the
same object decide what is served, so that nothing else can be served than was authorized.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..access.authorizer import AccessQuestion
from ..registry.query_selectors import NAME, parse_fields, parse_labels
from ..registry.resource_table import ApiResource, ResourceCatalog
from ..registry.status_errors import StatusError, no_such_path
from .requests import is_true, parse_options

_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_PATH_VERBS = ("proxy", "watch")
"""Verbs that old clients put before the resource. Their requests are authorized like others, and not served."""
_PARTS_OF_NAMESPACES = ("status", "finalize")
_NO_NAMES = (".", "..")


class Target(NamedTuple):
    """The subject of a request: objects of a resource, or a path without any."""

    question: AccessQuestion
    """Authorization must allow this."""
    found: ApiResource | None = None
    """The resource, or None if the path belongs to no resource that is served."""
    namespace: str = ""
    """The namespace of the objects; empty for all, and for resources without namespaces."""
    name: str = ""
    subresource: str = ""
    is_path: bool = False
    """Whether the path has the form of other documents than objects."""

    @property
    def verb(self) -> str:
        return self.question.verb

    @property
    def resource(self) -> ApiResource:
        """The resource; raises StatusError (404) when there is none."""
        if self.found is None:
            raise no_such_path()
        return self.found


def parse_target(
    method: str, path: str, query: Mapping[str, str], catalog: ResourceCatalog
) -> Target:
    """Parse the decoded path. A resource that does not exist is found out when it is served, after authorization."""
    steps = path.strip("/").split("/")
    size, first = len(steps), steps[0]
    if first == "api" and size > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif first == "apis" and size > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        return Target(AccessQuestion(method.lower(), path=path), is_path=True)
    verb, is_odd = _VERBS.get(method, ""), method == "HEAD" or "" in steps
    if rest[0] in _PATH_VERBS:
        if len(rest) == 1:
            raise no_such_path()
        verb, rest, is_odd = rest[0], rest[1:], True
    within = namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        within = rest[1]
        if len(rest) > 2 and rest[2] not in _PARTS_OF_NAMESPACES:
            namespace, rest = within, rest[2:]
    plural, name, subresource, *more = (*rest, "", "")[: max(3, len(rest))]
    if verb == "proxy":
        subresource = ""
    asked = name
    if not name and verb == "get":
        verb = "watch" if is_true(query, "watch") else "list"
        asked = _selected_name(query)
    elif not name and verb == "delete":
        verb = "deletecollection"
    question = AccessQuestion(verb, within, group, plural, subresource, asked, path)
    if is_odd or more:
        return Target(question)
    resource = catalog.find(group, version, plural)
    if resource is not None and not _has(resource, namespace, name, subresource):
        resource = None
    return Target(question, resource, namespace, name, subresource)


def _has(resource: ApiResource, namespace: str, name: str, subresource: str) -> bool:
    """Whether the resource has such paths."""
    if subresource and (not name or subresource not in resource.subresources):
        return False
    return bool(namespace) <= resource.is_namespaced <= bool(namespace or not name)


def _selected_name(query: Mapping[str, str]) -> str:
    """The name of the one object that a list or watch can contain; empty if it can contain others."""
    if "fieldSelector" not in query:
        return ""
    try:
        options = parse_options(query)
        parse_labels(options.labels)
        terms = parse_fields(options.fields)
    except StatusError:
        return ""  # it is refused when it is served
    name = next((term.value for term in terms if term.key == NAME and term.is_equal), "")
    return "" if name in _NO_NAMES or "/" in name or "%" in name else name
