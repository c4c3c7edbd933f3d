"""All objects of the field corpus, applied to `up` and compared with those of a real kube-apiserver, field by field."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.yaml_tree import iter_trees
from tests.rig.api_server import ServerInThread, api_server

Tree = dict[str, Any]

FIELD = Path(__file__).resolve().parents[3] / "shared" / "field"
DUMP = FIELD / "dump-all.yaml.gz"
NAMESPACES = {"argo-cd-ha.yaml.gz": "argocd", "istio-addons.yaml.gz": "istio-system"}
"""The namespaces in which manifests are applied that do not bring them."""
BY_NATURE = re.compile(
    r"metadata\.(uid|creationTimestamp|resourceVersion|managedFields)"
    r"|metadata\.ownerReferences\.uid"
    r"|.*\.last\w+Time"
    r"|spec\.clusterIPs?|spec\.ports\.nodePort"
    r"|metadata\.annotations\.kubectl\.kubernetes\.io/last-applied-configuration"
)
"""Times, uids, allocated addresses, and who applied it."""
BY_NAME = re.compile(
    r"metadata\.(name|ownerReferences\.name)"
    r"|metadata\.labels\.(pod-template-hash|controller-revision-hash)"
    r"|spec\.selector\.matchLabels\.pod-template-hash"
    r"|spec\.template\.metadata\.labels\.pod-template-hash"
    r"|metadata\.generateName"
    r"|status\.(currentRevision|updateRevision|conditions\.message)"
)
"""Names with the hash of a template, which differs from that of kube-controller-manager."""
BY_LIFE = {
    "Node": re.compile(r"status\.(addresses|nodeInfo\..*)"),
    "PersistentVolumeClaim": re.compile(r"metadata\.annotations\.volume.*"),
    "Pod": re.compile(
        r"spec\.(nodeName|affinity\.nodeAffinity\..*\.matchFields\.values)"
        r"|status\.(conditions|nominatedNodeName)|metadata\.labels\.topology\.kubernetes\.io/.*"
    ),
    "Service": re.compile(r"spec\.ports\.targetPort"),
}
"""Fields of the scheduler, the volume controller and the nodes, which do not run in this comparison; the port of the
server itself."""

pytestmark = [
    pytest.mark.skipif(not DUMP.exists(), reason="not run: no ../shared/field"),
    pytest.mark.slow,
]


def corpus() -> Iterator[tuple[str, Tree]]:
    """Yield all objects of the corpus with the names of their files, definitions and namespaces first."""
    manifests = sorted((FIELD / "manifests").glob("*.yaml.gz"))
    files = [FIELD / "cluster.yaml", *manifests]
    found = []
    for path in files:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for tree in filter(None, iter_trees(text)):
            items = tree["items"] if tree["kind"].endswith("List") else [tree]
            found += [(path.name, item) for item in items]
    first = ("Namespace", "CustomResourceDefinition")
    yield from sorted(found, key=lambda pair: pair[1]["kind"] not in first)


def path_of(api: ServerInThread, tree: Tree, namespace: str) -> str:
    """The path of the object's collection."""
    resource = api.within(lambda server: server.registry.catalog.of_manifest(tree))
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    namespace = tree["metadata"].get("namespace") or namespace
    where = f"/namespaces/{namespace}" if resource.is_namespaced else ""
    return f"{root}{where}/{resource.plural}"


@pytest.fixture(scope="module")
def applied() -> Iterator[ServerInThread]:
    """A server to which the corpus was applied, its definitions twice, without conflicts or errors."""
    with api_server() as api:
        for namespace in NAMESPACES.values():
            api.make("/api/v1/namespaces", {"metadata": {"name": namespace}})
        for file, tree in corpus():
            path = path_of(api, tree, NAMESPACES.get(file, "default"))
            query = "fieldManager=kubectl&fieldValidation=Strict"
            for _ in range(2 if tree["kind"] == "CustomResourceDefinition" else 1):
                answer = api.patch(f"{path}/{tree['metadata']['name']}?{query}", tree, "apply")
                assert answer.status in (200, 201), (file, tree["kind"], answer.tree)
        api.settle()
        yield api


def differences(ours: Any, real: Any, kind: str, path: str = "") -> Iterator[str]:
    """Yield the fields that differ and are not expected to."""
    patterns = [BY_NATURE, BY_NAME, *([BY_LIFE[kind]] if kind in BY_LIFE else [])]
    if any(pattern.fullmatch(path) for pattern in patterns):
        return
    if isinstance(ours, dict) and isinstance(real, dict):
        for name in {**ours, **real}:
            below = f"{path}.{name}".removeprefix(".")
            default: Any = {} if isinstance(ours.get(name, real.get(name)), dict) else "absent"
            pair = ours.get(name, default), real.get(name, default)
            if (pair[0] == {}) != (pair[1] == {}) and name not in ("annotations", "labels"):
                pair = ours.get(name, "absent"), real.get(name, "absent")
            yield from differences(*pair, kind, below)
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for one, other in zip(ours, real, strict=True):
            yield from differences(one, other, kind, path)
    elif ours != real:
        yield f"{kind} {path}: {str(ours)[:80]!r} instead of {str(real)[:80]!r}"


def stem(tree: Tree) -> tuple[str, str, str]:
    """Kind, namespace and name without hashes and random letters."""
    metadata, kind = tree["metadata"], tree["kind"]
    name = metadata["name"]
    owner = next(iter(metadata.get("ownerReferences") or ()), {"kind": "", "name": ""})
    if kind == "ReplicaSet":
        name = owner["name"]
    elif kind == "Pod" and owner["kind"] == "ReplicaSet":
        name = owner["name"].rpartition("-")[0]
    elif kind == "Pod" and owner["kind"] == "DaemonSet":
        name = owner["name"]
    return kind, metadata.get("namespace", ""), name


def test_every_object_is_that_of_kube_apiserver(applied: ServerInThread) -> None:
    (dump,) = iter_trees(gzip.decompress(DUMP.read_bytes()))
    ours: dict[tuple[str, str, str], list[Tree]] = {}
    for api_version, kind in {(item["apiVersion"], item["kind"]) for item in dump["items"]}:
        path = path_of(applied, {"apiVersion": api_version, "kind": kind, "metadata": {}}, "")
        listed = applied.get(path.replace("/namespaces//", "/")).tree["items"]
        for item in listed:
            tree = {"apiVersion": api_version, "kind": kind, **item}
            ours.setdefault(stem(tree), []).append(tree)

    faults: dict[str, str] = {}
    for item in dump["items"]:
        same = ours.get(stem(item))
        if not same:
            faults[f"{stem(item)}: missing"] = ""
            continue
        for fault in differences(same.pop(), item, item["kind"]):
            faults.setdefault(fault, item["metadata"]["name"])
    assert faults == {}
    assert len(dump["items"]) == 243
