"""Fuzzing: random requests, from a seed: paths, queries, headers and bodies, sound ones among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import yaml

from bayplan.apiserver.registry.resource_table import RESOURCES, ApiResource
from tests.rig.api_server import PATCH_TYPES
from tests.rig.trees import pod_tree

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
NAMES = ("a", "b", "node-0", "default", "kube-system", "-", "A_B", "x" * 300, "ü", "%00", "..")
WORDS = (
    "",
    "a",
    "1",
    "-1",
    "5%",
    "1Gi",
    "10m",
    "1e400",
    "x y",
    "\u0000",
    "é" * 40,
    "Always",
    "true",
)
NUMBERS = (0, 1, -1, 3, 2**31, 2**63, -(2**63) - 1, 2**70, 0.5, 1e308)
QUERIES = (
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "propagationPolicy",
    "pretty",
    "includeObject",
    "timeoutSeconds",
    "nonsense",
)
QUERY_VALUES = (
    *WORDS,
    "All",
    "Strict",
    "NotOlderThan",
    "a=b,c in (d)",
    "metadata.name=a",
    "!(=",
    "9" * 5000,
    "\u0663",
)
ACCEPTS = (
    "",
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "text/html, */*;q=0.1",
    ";;;=,",
)
BODY_TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    *PATCH_TYPES.values(),
    "text/plain",
    "multipart/form-data",
    "application/json; charset=utf-7",
)
OTHER_PATHS = (
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps",
    "/apis/apps/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/apis/apps/v1",
    "/openapi/v3/../../etc/passwd",
    "/version",
    "/healthz",
    "/livez/ping",
    "/metrics",
    "/api/v1/namespaces",
    "/api/v1/watch/pods",
    "/%2e%2e/",
    "//api//v1//pods",
    "/api/v1/namespaces/default/pods/a/log",
    "/api/v1/namespaces/default/pods/a/exec?command=ls",
)
LABELS = {"matchLabels": {"app": "a"}}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": pod_tree("")["spec"]}
SPECS: dict[str, Any] = {
    "Pod": {**pod_tree("")["spec"], "nodeName": "node-0", "tolerations": [{"key": "a"}]},
    "Deployment": {"replicas": 2, "selector": LABELS, "template": TEMPLATE, "strategy": {}},
    "ReplicaSet": {"replicas": 1, "selector": LABELS, "template": TEMPLATE},
    "StatefulSet": {"replicas": 2, "selector": LABELS, "template": TEMPLATE, "serviceName": "a"},
    "DaemonSet": {"selector": LABELS, "template": TEMPLATE, "updateStrategy": {}},
    "Job": {
        "completions": 2,
        "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
    },
    "CronJob": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}},
    "PodDisruptionBudget": {"selector": LABELS, "minAvailable": "50%"},
    "ResourceQuota": {"hard": {"pods": "5", "requests.cpu": "4"}},
    "LimitRange": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    "PersistentVolumeClaim": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
    "PersistentVolume": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
    },
    "Service": {"ports": [{"port": 80}], "selector": {"app": "a"}},
    "Node": {"taints": [{"key": "a", "effect": "NoExecute"}], "unschedulable": True},
    "ResourceClaim": {
        "devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "x"}}]}
    },
    "ResourceSlice": {
        "driver": "d.e",
        "pool": {"name": "p", "resourceSliceCount": 1},
        "nodeName": "a",
    },
}


class RandomRequest(NamedTuple):
    """A request on the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None


def random_requests(seed: int, count: int) -> Iterator[RandomRequest]:
    """As many requests, the same ones for the same seed."""
    rng = Random(seed)
    for _ in range(count):
        yield _request(rng)


def _request(rng: Random) -> RandomRequest:
    method = rng.choices(METHODS, (20, 30, 15, 15, 10, 2, 1, 1))[0]
    if rng.random() < 0.1:
        path, resource = rng.choice(OTHER_PATHS), None
    else:
        resource = rng.choice(RESOURCES)
        path = _path(rng, resource, is_new=method == "POST")
    pairs = [
        f"{rng.choice(QUERIES)}={quote(rng.choice(QUERY_VALUES))}"
        for _ in range(rng.choice((0, 0, 0, 1, 2)))
    ]
    if pairs:
        path += ("&" if "?" in path else "?") + "&".join(pairs)
    headers = {}
    if rng.random() < 0.2:
        headers["Accept"] = rng.choice(ACCEPTS)
    if method not in ("POST", "PUT", "PATCH") and rng.random() < 0.8:
        return RandomRequest(method, path, headers, None)
    kind = rng.choice(tuple(PATCH_TYPES.values())) if method == "PATCH" else "application/json"
    kind = rng.choice(BODY_TYPES) if rng.random() < 0.1 else kind
    headers["Content-Type"] = kind
    return RandomRequest(method, path, headers, _body(rng, resource, kind))


def _path(rng: Random, resource: ApiResource, *, is_new: bool) -> str:
    prefix = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    if resource.is_namespaced and rng.random() < 0.95:
        prefix += (
            f"/namespaces/{quote(_name(rng))}" if rng.random() < 0.2 else "/namespaces/default"
        )
    path = f"{prefix}/{resource.plural}"
    if rng.random() < (0.1 if is_new else 0.8):
        path += f"/{quote(_name(rng))}"
        if rng.random() < 0.2:
            path += f"/{rng.choice((*resource.subresources, 'status', 'scale', 'nonsense'))}"
    return path


def _name(rng: Random) -> str:
    return rng.choice(NAMES[:3]) if rng.random() < 0.8 else rng.choice(NAMES)


def _body(rng: Random, resource: ApiResource | None, kind: str) -> bytes:
    if rng.random() < 0.05:
        return rng.choice(
            (
                b"",
                b"{",
                b"null",
                b"[]",
                b'"a"',
                b"[" * 100_000,
                b'{"a":' * 50_000,
                b"\xff\xfe",
                b'{"metadata":{"name":"\\ud800"}}',
                b"a: &a [*a]",
                b"k8s\x00\xff\xff\xff\xff",
                rng.randbytes(200),
            )
        )
    tree: Any = _object(rng, resource)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 5))):
        tree = _mutated(rng, tree)
    if kind == PATCH_TYPES["json"]:
        tree = [
            {
                "op": rng.choice(("add", "remove", "replace", "test", "move", "copy", "x")),
                "path": rng.choice(
                    ("/spec", "/metadata/labels/a", "/spec/containers/0", "", "x", "/-")
                ),
                "from": "/metadata",
                "value": _junk(rng, 2),
            }
            for _ in range(rng.choice((0, 1, 3)))
        ]
    if kind == "application/yaml":
        return yaml.safe_dump(tree).encode()
    return json.dumps(tree).encode() if rng.random() < 0.5 else _encoded(tree)


def _encoded(tree: Any) -> bytes:
    try:
        return msgspec.json.encode(tree)
    except (OverflowError, msgspec.MsgspecError):
        return json.dumps(tree).encode()


def _object(rng: Random, resource: ApiResource | None) -> dict[str, Any]:
    kind = resource.kind if resource is not None else "Pod"
    tree: dict[str, Any] = {
        "apiVersion": resource.api_version if resource is not None else "v1",
        "kind": kind,
        "metadata": {
            "name": _name(rng),
            "labels": {"app": "a"},
            "annotations": {"bayplan.dev/duration": rng.choice(("1s", "soon", "-1h"))},
        },
    }
    if rng.random() < 0.1:
        tree["metadata"]["ownerReferences"] = [{"uid": "x", "kind": "Pod", "name": "a"}]
    if rng.random() < 0.1:
        tree["metadata"]["finalizers"] = ["a/b", "orphan"]
    if kind in SPECS:
        tree["spec"] = json.loads(json.dumps(SPECS[kind]))
    elif rng.random() < 0.2:
        tree["spec"] = _junk(rng, 3)
    if rng.random() < 0.1:
        tree["status"] = _junk(rng, 3)
    return tree


def _mutated(rng: Random, tree: Any) -> Any:
    """The tree with nonsense at one place."""
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.15:
        return _junk(rng, 2)
    if isinstance(tree, dict):
        key = rng.choice(list(tree))
        if rng.random() < 0.1:
            return {name: value for name, value in tree.items() if name != key}
        return {**tree, key: _mutated(rng, tree[key])}
    place = rng.randrange(len(tree))
    return [*tree[:place], _mutated(rng, tree[place]), *tree[place + 1 :]]


def _junk(rng: Random, depth: int) -> Any:
    choice = rng.randrange(7 if depth else 4)
    if choice < 2:
        return rng.choice(WORDS)
    if choice == 2:
        return rng.choice(NUMBERS)
    if choice == 3:
        return rng.choice((None, True, False))
    if choice == 4:
        return [_junk(rng, depth - 1) for _ in range(rng.randrange(3))]
    keys = ("name", "spec", "replicas", "template", "selector", "containers", "key", "cpu", "")
    return {rng.choice(keys): _junk(rng, depth - 1) for _ in range(rng.randrange(4))}
