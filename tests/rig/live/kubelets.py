"""Kubelets: simulate kubelets and the pod garbage collector for a control plane without them.

Pods on a node run at once; terminating pods stay for their grace period; pods of deleted nodes are
deleted.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import UTC, datetime

from .client import GONE_WRONG, LiveClient, RefusedError, Tree
from .follower import ListFollower, key_of
from .kinds import path_of


class LiveKubelets:
    """The kubelets of all nodes, until `stop`."""

    def __init__(self, client: LiveClient) -> None:
        self._client = client
        self._leaving: dict[str, threading.Timer] = {}
        self._gone: set[str] = set()  # deleted nodes; pods may be seen to be bound later
        self._pods = ListFollower(client, path_of("Pod"), self._on_pod)
        self._nodes = ListFollower(client, path_of("Node"), self._on_node)

    def stop(self) -> None:
        """Stop all kubelets."""
        self._nodes.stop()
        self._pods.stop()
        for timer in self._leaving.values():
            timer.cancel()

    def _on_pod(self, kind: str, pod: Tree) -> None:
        metadata, status = pod["metadata"], pod.get("status") or {}
        if kind == "DELETED" or not pod["spec"].get("nodeName"):
            return
        if pod["spec"]["nodeName"] in self._gone:
            self._remove(pod)
        elif "deletionTimestamp" in metadata:
            if metadata["uid"] not in self._leaving:
                grace_s = metadata.get("deletionGracePeriodSeconds") or 0
                timer = threading.Timer(grace_s, self._remove, [pod])
                timer.daemon = True
                self._leaving[metadata["uid"]] = timer
                timer.start()
        elif status.get("phase") == "Pending":
            self._run(pod)

    def _on_node(self, kind: str, node: Tree) -> None:
        name = node["metadata"]["name"]
        if kind == "ADDED":
            self._gone.discard(name)
        elif kind == "DELETED":
            self._gone.add(name)
            for pod in list(self._pods.objects.values()):
                if pod["spec"].get("nodeName") == name:
                    self._remove(pod)

    def _run(self, pod: Tree) -> None:
        ready = {"type": "Ready", "status": "True"}
        started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {"phase": "Running", "conditions": [ready], "startTime": started}
        with suppress(RefusedError, *GONE_WRONG):
            path = path_of("Pod", *key_of(pod))
            body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
            self._client.patch(f"{path}/status", body, "strategic")

    def _remove(self, pod: Tree) -> None:
        uid = {"uid": pod["metadata"]["uid"]}
        with suppress(RefusedError, *GONE_WRONG):
            path = path_of("Pod", *key_of(pod))
            self._client.delete(path, gracePeriodSeconds=0, preconditions=uid)
