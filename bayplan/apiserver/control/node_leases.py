"""Node leases: the leases of nodes, which their kubelets renew.

Mirrors pkg/kubelet/nodelease: a lease is valid for 40 s and is renewed every 10 s. On a clock that runs faster both
are longer, so that the number of writes is one of the machine's time.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any
from uuid import uuid4

from ...clock import Clock
from ...cluster.objects import Later
from ..store import Store

Tree = dict[str, Any]

LEASES, NODE_LEASES = "leases.coordination.k8s.io", "kube-node-lease"
VALID_S, RENEW_S = 40, 10
MAX_PER_S = 200
"""Most renewals in a second of the machine; with more than 2,000 nodes, leases are renewed less often."""


class NodeLeases:
    """Makes the leases of new nodes, and renews a share of all leases every second."""

    def __init__(self, store: Store, clock: Clock, timers: Later) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._names: OrderedDict[str, None] = OrderedDict()
        timers.after(clock.speed, self._renew_some)

    def add(self, name: str) -> None:
        """Make the lease of this node, and renew it from now on; one from before a restart stays until its turn."""
        self._names[name] = None
        if self._store.get(LEASES, (NODE_LEASES, name)) is None:
            self._renew(name, self._renewed())

    def _renew_some(self) -> None:
        renewed = self._renewed()
        for _ in range(min(math.ceil(len(self._names) / RENEW_S), MAX_PER_S)):
            name = next(iter(self._names))
            self._names.move_to_end(name)
            self._renew(name, renewed)
        self._timers.after(self._clock.speed, self._renew_some)

    def _renew(self, name: str, renewed: Tree) -> None:
        node = self._store.get("nodes", ("", name))
        if node is None:
            del self._names[name]
            return
        record = self._store.get(LEASES, (NODE_LEASES, name))
        tree = self._make(name, node.uid) if record is None else record.decode()
        tree["spec"] = {**(tree.get("spec") or {}), **renewed}
        self._store.put(LEASES, (NODE_LEASES, name), tree)

    def _make(self, name: str, uid: str) -> Tree:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        metadata = {
            "name": name,
            "namespace": NODE_LEASES,
            "uid": str(uuid4()),
            "creationTimestamp": self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "ownerReferences": [owner],
        }
        return {"metadata": metadata, "spec": {"holderIdentity": name}}

    def _renewed(self) -> Tree:
        valid_s = math.ceil(VALID_S * self._clock.speed)
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"leaseDurationSeconds": valid_s, "renewTime": now}
