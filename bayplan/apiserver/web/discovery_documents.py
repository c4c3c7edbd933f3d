"""Discovery documents: the served groups, versions and resources, which clients request first.

Serves the old form, one document per version, and the aggregated one (APIGroupDiscoveryList).
Mirrors k8s.io/apiserver/pkg/endpoints/discovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from ...releases.release import DEFAULT_RELEASE
from ..registry.resource_table import RESOURCES, ApiResource, group_versions
from ..registry.status_errors import no_such_path
from .http_server import HttpResponse
from .responses import HEADERS, respond_tree

AGGREGATED = "APIGroupDiscoveryList"
SUBRESOURCES = {
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "status": ("", "", "", ("get", "patch", "update")),
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "approval": ("", "", "", ("get", "patch", "update")),
    "attach": ("", "v1", "PodAttachOptions", ("create", "get")),
    "ephemeralcontainers": ("", "", "", ("get", "patch", "update")),
    "exec": ("", "v1", "PodExecOptions", ("create", "get")),
    "log": ("", "", "", ("get",)),
    "portforward": ("", "v1", "PodPortForwardOptions", ("create", "get")),
    "resize": ("", "", "", ("get", "patch", "update")),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
Resources = tuple[ApiResource, ...]


def version_document(patch: str) -> dict[str, str]:
    """The document of /version of a server with this tag of Kubernetes."""
    major, minor, _ = patch.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{patch}+bayplan",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def answer_discovery(
    path: str,
    accept: str,
    address: str,
    resources: Resources = RESOURCES,
    patch: str = DEFAULT_RELEASE.patch,
) -> HttpResponse | None:
    """The response to a discovery request about the served `resources`; None for other paths.

    `patch` is the tag of Kubernetes that the server has.
    """
    steps = [step for step in path.split("/") if step]
    match steps:
        case ["version"]:
            return respond_tree(version_document(patch))
        case ["api"] | ["apis"]:
            version = _aggregated_version(accept)
            if version:
                return _respond_aggregated(steps[0] == "api", version, resources)
            return respond_tree(_versions(address) if steps == ["api"] else _groups(resources))
        case ["api", version]:
            return respond_tree(_resource_list("", version, resources))
        case ["apis", group]:
            return respond_tree(_group(group, resources))
        case ["apis", group, version]:
            return respond_tree(_resource_list(group, version, resources))
        case []:
            return respond_tree({"paths": ["/api", "/apis", "/healthz", "/openapi/v2", "/version"]})
    return None


def _aggregated_version(accept: str) -> str:
    """The version of the aggregated form that the client prefers over the old form, if any."""
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        given = dict(piece.partition("=")[::2] for piece in parameters)
        if media == "application/json" and given.get("as") == AGGREGATED:
            version = given.get("v", "")
            if given.get("g") == "apidiscovery.k8s.io" and version in ("v2", "v2beta1"):
                return version
    return ""


def _respond_aggregated(is_core: bool, version: str, resources: Resources) -> HttpResponse:
    kind = f"application/json;g=apidiscovery.k8s.io;v={version};as={AGGREGATED}"
    headers = {**HEADERS, "Content-Type": kind, "Vary": "Accept"}
    return HttpResponse(_aggregated(is_core, version, resources), 200, headers)


@lru_cache(maxsize=8)
def _aggregated(is_core: bool, version: str, resources: Resources) -> bytes:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {},
            "versions": [
                {
                    "version": one,
                    "resources": [_described(r) for r in _of(group, one, resources)],
                    "freshness": "Current",
                }
                for one in versions
            ],
        }
        for group, versions in group_versions(resources).items()
        if (group == "") is is_core
    ]
    head = {"kind": AGGREGATED, "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}}
    return msgspec.json.encode({**head, "items": items})


def _described(resource: ApiResource) -> dict[str, Any]:
    """One resource in the aggregated form."""
    scope = "Namespaced" if resource.is_namespaced else "Cluster"
    described: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    described |= _other_names(resource)
    if resource.subresources:
        described["subresources"] = [
            {"subresource": name, "responseKind": _kind(*kind), "verbs": list(verbs)}
            for name, kind, verbs in _subresources(resource)
        ]
    return described


def _other_names(resource: ApiResource) -> dict[str, list[str]]:
    names = {"shortNames": resource.short_names, "categories": resource.categories}
    return {field: list(given) for field, given in names.items() if given}


def _subresources(
    resource: ApiResource,
) -> Iterator[tuple[str, tuple[str, str, str], tuple[str, ...]]]:
    for name in resource.subresources:
        group, version, kind, verbs = SUBRESOURCES[name]
        if not kind:
            group, version, kind = resource.group, resource.version, resource.kind
        yield name, (group, version, kind), verbs


def _kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _of(group: str, version: str, resources: Resources) -> list[ApiResource]:
    return [r for r in resources if (r.group, r.version) == (group, version)]


def _versions(address: str) -> dict[str, Any]:
    where = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [where]}


def _groups(resources: Resources) -> dict[str, Any]:
    groups = [_described_group(g, v) for g, v in group_versions(resources).items() if g]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _described_group(group: str, versions: list[str]) -> dict[str, Any]:
    described = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": described, "preferredVersion": described[0]}


def _group(group: str, resources: Resources) -> dict[str, Any]:
    versions = group_versions(resources).get(group)
    if not versions:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_described_group(group, versions)}


def _resource_list(group: str, version: str, resources: Resources) -> dict[str, Any]:
    found = _of(group, version, resources)
    if not found:
        raise no_such_path()
    listed: list[dict[str, Any]] = []
    for resource in found:
        entry: dict[str, Any] = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.is_namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        listed.append(entry | _other_names(resource))
        for name, (sub_group, sub_version, kind), verbs in _subresources(resource):
            sub: dict[str, Any] = {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.is_namespaced,
                "kind": kind,
                "verbs": list(verbs),
            }
            if (sub_group, sub_version) != (resource.group, resource.version):
                sub |= {"group": sub_group, "version": sub_version}
            listed.append(sub)
    where = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": where,
        "resources": listed,
    }
