"""Api: effects of requests on the store: discovery, lists, watches, bindings, statuses, deletions, leases, events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from .store import ExpiredVersionError, Tree, VersionedStore, is_finished

PAGE = 8
"""Lists are given in pages of this size, also when a request allows more."""
SERVED = {
    "/api/v1": ("namespaces", "nodes", "pods"),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/coordination.k8s.io/v1": ("leases",),
}
GRACE_S = 1.0
"""Seconds that a running pod takes to end after its deletion."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Tree).decode
_DISCOVERED = {
    path: _encode({"resources": [{"name": plural} for plural in plurals]})
    for path, plurals in SERVED.items()
}


class Reply(NamedTuple):
    """A response: its status code and body."""

    code: int
    body: bytes


class WatchReply(NamedTuple):
    """A response without an end: the changes of a kind after a version."""

    plural: str
    version: int
    leaves_out_finished: bool
    initial: tuple[bytes, ...] = ()
    """Sent first: all objects, with a bookmark at their end."""


class BindingRequest(NamedTuple):
    """A requested binding, and whether it was written."""

    name: str
    uid: str
    node_name: str
    is_written: bool


class SimulatedApi:
    """Answers requests. `later` calls something after some seconds: pods take a while to end."""

    def __init__(
        self, store: VersionedStore, later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self.store = store
        self._later = later
        self.on_binding: Callable[[BindingRequest], None] = lambda binding: None
        self.on_status: Callable[[Tree, Tree], None] = lambda pod, status: None
        """Called with a pod and the status that a patch is to give it."""
        self.events = 0
        """Number of written events."""

    def answer(self, method: str, target: str, body: bytes) -> Reply | WatchReply:
        """Carry out a request."""
        path, _, text = target.partition("?")
        if method == "GET" and path in _DISCOVERED:
            return Reply(200, _DISCOVERED[path])
        parts = path.split("/")[2:]  # "" and api or apis
        parts = parts[1:] if path.startswith("/api/") else parts[2:]
        namespace = ""
        if parts[:1] == ["namespaces"] and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        if not parts:
            return refuse(404, "not found")
        if parts[0] == "events":
            self.events += method == "POST"
            return Reply(201, b"{}")
        if method == "GET" and len(parts) == 1:
            return self._list_or_watch(parts[0], dict(parse_qsl(text)))
        return self._write(method, parts, namespace, body)

    def _list_or_watch(self, plural: str, query: dict[str, str]) -> Reply | WatchReply:
        leaves_out = "fieldSelector" in query
        store = self.store
        try:
            if "sendInitialEvents" in query:
                return self._stream(plural, leaves_out)
            if "watch" in query:
                version = int(query["resourceVersion"])
                store.changes_after(plural, version)
                return WatchReply(plural, version, leaves_out)
            limit = min(int(query.get("limit", PAGE)), PAGE)
            token = query.get("continue")
            page = (
                store.next_page(token, limit)
                if token
                else store.first_page(plural, limit, leaves_out)
            )
        except ExpiredVersionError:
            return refuse(410, "too old resource version")
        head = {"resourceVersion": str(page.version), "continue": page.token}
        body = b'{"metadata":%s,"items":[%s]}' % (_encode(head), b",".join(page.items))
        return Reply(200, body)

    def _stream(self, plural: str, leaves_out: bool) -> WatchReply:
        page = self.store.first_page(plural, 1 << 30, leaves_out)
        lines = [b'{"type":"ADDED","object":%s}\n' % item for item in page.items]
        half = len(lines) // 2
        notes = b'{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}'
        end = b'{"type":"BOOKMARK","object":{"metadata":%s}}\n' % (notes % page.version)
        initial = b"".join(lines[:half]), b"".join(lines[half:]) + end
        return WatchReply(plural, page.version, leaves_out, initial)

    def _write(self, method: str, parts: list[str], namespace: str, body: bytes) -> Reply:
        plural, name, sub = [*parts, "", ""][:3]
        tree = _decode(body) if body else {}
        if plural == "leases":
            return self._lease(method, namespace, name, tree)
        found = self.store.get(plural, namespace, name)
        if found is None:
            return refuse(404, f'{plural} "{name}" not found')
        if method == "GET":
            return Reply(200, _encode(found))
        assert plural == "pods", f"not simulated: {method} {plural}"
        if (method, sub) == ("POST", "binding"):
            return self._bind(found, tree)
        if (method, sub) == ("PATCH", "status"):
            return self._patch_status(found, tree)
        assert (method, sub) == ("DELETE", ""), f"not simulated: {method} {plural}/{sub}"
        uid = tree.get("preconditions", {}).get("uid")
        if uid not in (None, found["metadata"]["uid"]):
            return refuse(409, "the UID in the precondition does not match")
        self.delete_pod(found)
        return Reply(200, _encode(found))

    def _bind(self, pod: Tree, tree: Tree) -> Reply:
        node_name, wanted = tree["target"]["name"], tree["metadata"]["uid"]
        is_free = (
            wanted == pod["metadata"]["uid"]
            and not pod["spec"].get("nodeName")
            and "deletionTimestamp" not in pod["metadata"]
            and not is_finished(pod)
        )
        self.on_binding(BindingRequest(pod["metadata"]["name"], wanted, node_name, is_free))
        if not is_free:
            return refuse(409, f"pod {pod['metadata']['name']} cannot be bound to {node_name}")
        self.bind_pod(pod, node_name)
        return Reply(201, b"{}")

    def bind_pod(self, pod: Tree, node_name: str) -> None:
        """Give the pod its node."""
        scheduled = {"type": "PodScheduled", "status": "True"}
        status = merge(pod.get("status", {}), {"conditions": [scheduled]})
        spec = {**pod["spec"], "nodeName": node_name}
        self.store.update("pods", {**pod, "spec": spec, "status": status})

    def _patch_status(self, pod: Tree, patch: Tree) -> Reply:
        uid = patch.get("metadata", {}).get("uid")
        if uid not in (None, pod["metadata"]["uid"]):
            return refuse(409, "the UID in the patch does not match")
        self.on_status(pod, patch["status"])
        if pod["spec"].get("nodeName") and patch["status"].get("nominatedNodeName"):
            return refuse(422, "nominatedNodeName may not be set on pods that are already bound")
        status = merge(pod.get("status", {}), patch["status"])
        return Reply(200, _encode(self.store.update("pods", {**pod, "status": status})))

    def delete_pod(self, pod: Tree) -> None:
        """Delete a pod: at once if it does not run, else after its grace period."""
        metadata = pod["metadata"]
        namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
        if not pod["spec"].get("nodeName") or is_finished(pod):
            self.store.delete("pods", namespace, name)
            return
        if "deletionTimestamp" in metadata:
            return
        ending = {**metadata, "deletionTimestamp": "2000-01-01T00:00:00Z"}
        self.store.update("pods", {**pod, "metadata": ending})

        def end() -> None:
            left = self.store.get("pods", namespace, name)
            if left is not None and left["metadata"]["uid"] == uid:
                self.store.delete("pods", namespace, name)

        self._later(GRACE_S, end)

    def _lease(self, method: str, namespace: str, name: str, tree: Tree) -> Reply:
        store = self.store
        name = name or tree["metadata"]["name"]
        found = store.get("leases", namespace, name)
        if method == "POST":
            if found is not None:
                return refuse(409, "the lease exists")
            return Reply(201, _encode(store.add("leases", tree)))
        if found is None:
            return refuse(404, "the lease does not exist")
        if method == "PUT":
            if tree["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
                return refuse(409, "the lease has been modified")
            found = store.update("leases", tree)
        return Reply(200, _encode(found))


def refuse(code: int, message: str) -> Reply:
    """A refusal, as a Status object."""
    tree = {"kind": "Status", "apiVersion": "v1", "message": message, "code": code}
    return Reply(code, _encode(tree))


def merge(target: Tree, patch: Tree) -> Tree:
    """A strategic merge patch: null removes a field, conditions are merged by type."""
    merged: dict[str, Any] = {**target}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif name == "conditions":
            known = {condition["type"]: condition for condition in target.get(name, ())}
            for condition in value:
                known[condition["type"]] = merge(known.get(condition["type"], {}), condition)
            merged[name] = list(known.values())
        elif isinstance(value, dict):
            merged[name] = merge(target.get(name, {}), value)
        else:
            merged[name] = value
    return merged
