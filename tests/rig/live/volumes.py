"""Volumes: simulate the volume controller and a provisioner for a control plane without them.

A claim and a volume that refer to each other are bound; for a claim with a selected node a volume
is created that only this node reaches.
"""

from __future__ import annotations

from contextlib import suppress

from .client import GONE_WRONG, LiveClient, RefusedError, Tree
from .follower import ListFollower, key_of
from .kinds import path_of, with_head

SELECTED_NODE = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
HOSTNAME = "kubernetes.io/hostname"


class Volumes:
    """Binds and provisions, until `stop`."""

    def __init__(self, client: LiveClient) -> None:
        self._client = client
        self._claims = ListFollower(client, path_of("PersistentVolumeClaim"), self._on_claim)
        self._volumes = ListFollower(client, path_of("PersistentVolume"), self._on_volume)

    def stop(self) -> None:
        """Stop binding."""
        self._volumes.stop()
        self._claims.stop()

    def _on_claim(self, kind: str, claim: Tree) -> None:
        if kind == "DELETED" or (claim.get("status") or {}).get("phase") == "Bound":
            return
        metadata = claim["metadata"]
        node = (metadata.get("annotations") or {}).get(SELECTED_NODE)
        with suppress(RefusedError, *GONE_WRONG):
            if claim["spec"].get("volumeName"):
                self._complete(claim, claim["spec"]["volumeName"])
            elif node:
                self._provision(claim, node)

    def _on_volume(self, kind: str, volume: Tree) -> None:
        wanted, phase = volume["spec"].get("claimRef"), (volume.get("status") or {}).get("phase")
        if kind == "DELETED" or phase == "Bound":
            return
        with suppress(RefusedError, *GONE_WRONG):
            if not wanted:
                if phase != "Available":
                    path = path_of("PersistentVolume", name=volume["metadata"]["name"])
                    self._client.patch(f"{path}/status", {"status": {"phase": "Available"}})
                return
            path = path_of("PersistentVolumeClaim", wanted["namespace"], wanted["name"])
            claim = self._client.find(path)
            if claim is not None:
                self._complete(claim, volume["metadata"]["name"])

    def _provision(self, claim: Tree, node: str) -> None:
        """Create the volume, which then is bound like any other."""
        spec, metadata = claim["spec"], claim["metadata"]
        term = {"key": HOSTNAME, "operator": "In", "values": [node]}
        volume = {
            "metadata": {"name": f"pvc-{metadata['uid']}", "annotations": {BY_CONTROLLER: "yes"}},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "storageClassName": spec["storageClassName"],
                "persistentVolumeReclaimPolicy": "Delete",
                "csi": {"driver": "test.bayplan.dev", "volumeHandle": metadata["uid"]},
                "claimRef": _reference(claim),
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            },
        }
        path = path_of("PersistentVolume")
        answer = self._client.request("POST", path, with_head("PersistentVolume", volume))
        assert answer.status in (201, 409), answer.tree

    def _complete(self, claim: Tree, volume: str) -> None:
        """Write the binding on both sides."""
        path = path_of("PersistentVolume", name=volume)
        self._client.patch(path, {"spec": {"claimRef": _reference(claim)}})
        self._client.patch(f"{path}/status", {"status": {"phase": "Bound"}})
        path = path_of("PersistentVolumeClaim", *key_of(claim))
        annotations = {COMPLETED: "yes", BY_CONTROLLER: "yes"}
        self._client.patch(
            path, {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}
        )
        size = claim["spec"]["resources"]["requests"]
        status = {"phase": "Bound", "capacity": size, "accessModes": claim["spec"]["accessModes"]}
        self._client.patch(f"{path}/status", {"status": status})


def _reference(claim: Tree) -> Tree:
    metadata = claim["metadata"]
    names = {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **names}
