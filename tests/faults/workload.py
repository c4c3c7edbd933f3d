"""Workload: pods and nodes are added, changed and deleted in the store of a simulated API server."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.rig.simulated import SimulatedApi

Tree = dict[str, Any]

NAMESPACE = "default"
NODES = 8
MAX_PODS = 40
FOREIGN = "foreign"
"""A node that pods of the scheduler do not tolerate; another scheduler binds to it."""
STEP_S = (0.05, 1.2)


class Workload:
    """Changes the cluster at random; `later` calls something after some seconds. `has_priorities`: some pods may
    preempt others."""

    def __init__(
        self,
        api: SimulatedApi,
        dice: random.Random,
        later: Callable[[float, Callable[[], None]], object],
        has_priorities: bool,
    ) -> None:
        self._api = api
        self._later = later
        self._store = api.store
        self._dice = dice
        self._has_priorities = has_priorities
        self._pods = 0
        self._sizes: dict[str, int] = {}
        self._actions: list[tuple[int, Callable[[], None]]] = [
            (8, self.create_pods),
            (4, self.delete_pod),
            (2, self.finish_pod),
            (2, self.recreate_pod),
            (2, self.change_pod),
            (2, self.start_pods),
            (1, self.remove_node),
            (2, self.restore_node),
            (1, self.cordon_node),
            (1, self.change_node),
            (1, self.bind_elsewhere),
            (1, self._store.compact),
        ]

    def begin(self) -> None:
        """The cluster before the scheduler starts."""
        self._store.add("namespaces", {"metadata": {"name": NAMESPACE}})
        taint = {"key": "other", "effect": "NoSchedule"}
        self._add_node(FOREIGN, {"taints": [taint]})
        for number in range(NODES):
            self._add_node(f"n-{number}")
        for _ in range(self._dice.randrange(3)):
            self.create_pods()

    def step(self) -> float:
        """Change something; returns the seconds until the next change."""
        weights = [weight for weight, _ in self._actions]
        ((_, action),) = self._dice.choices(self._actions, weights)
        action()
        return self._dice.uniform(*STEP_S)

    # Pods

    def create_pods(self) -> None:
        """Create some pods."""
        for _ in range(self._dice.randint(1, 5)):
            if len(self._store.objects.get("pods", ())) < MAX_PODS:
                self._pods += 1
                self._add_pod(f"p-{self._pods}")
        if self._dice.random() < 0.3:  # about when it is bound
            self._later(self._dice.uniform(0.01, 0.06), self._delete_newest)

    def _delete_newest(self) -> None:
        pod = self._store.get("pods", NAMESPACE, f"p-{self._pods}")
        if pod is not None:
            self._api.delete_pod(pod)

    def delete_pod(self) -> None:
        """Delete one of the pods."""
        pod = self._any_pod(lambda pod: "deletionTimestamp" not in pod["metadata"])
        if pod is not None:
            self._api.delete_pod(pod)

    def finish_pod(self) -> None:
        """A pod that runs comes to its end."""
        pod = self._any_pod(lambda pod: bool(pod["spec"].get("nodeName")))
        if pod is not None:
            phase = self._dice.choice(["Succeeded", "Failed"])
            self._store.update("pods", {**pod, "status": {**pod["status"], "phase": phase}})

    def recreate_pod(self) -> None:
        """Delete a pod and create another one with the same name, at once."""
        pod = self._any_pod(lambda pod: True)
        if pod is not None:
            name = pod["metadata"]["name"]
            self._store.delete("pods", NAMESPACE, name)
            self._add_pod(name)

    def change_pod(self) -> None:
        """Change the labels of a pod."""
        pod = self._any_pod(lambda pod: True)
        if pod is not None:
            labels = {"step": str(self._store.version)}
            self._store.update("pods", {**pod, "metadata": {**pod["metadata"], "labels": labels}})

    def start_pods(self) -> None:
        """Kubelets start the pods of their nodes."""
        for pod in self._store.trees("pods"):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                status = {**pod["status"], "phase": "Running"}
                self._store.update("pods", {**pod, "status": status})

    def bind_elsewhere(self) -> None:
        """Another scheduler binds a pod that waits."""
        pod = self._any_pod(lambda pod: not pod["spec"].get("nodeName"))
        if pod is not None and "deletionTimestamp" not in pod["metadata"]:
            self._api.bind_pod(pod, FOREIGN)

    def _add_pod(self, name: str) -> None:
        milli_cpu = self._dice.choice([250, 500, 1000, 1500])
        spec: Tree = {
            "schedulerName": "default-scheduler",
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": f"{milli_cpu}m"}}},
            ],
        }
        if self._has_priorities:
            spec["priority"] = self._dice.choice([0, 0, 0, 100, 1000])
        head = {"apiVersion": "v1", "kind": "Pod"}
        metadata = {"namespace": NAMESPACE, "name": name}
        status = {"phase": "Pending"}
        self._store.add("pods", {**head, "metadata": metadata, "spec": spec, "status": status})

    def _any_pod(self, is_wanted: Callable[[Tree], bool]) -> Tree | None:
        pods = [pod for pod in self._store.trees("pods") if is_wanted(pod)]
        return self._dice.choice(pods) if pods else None

    # Nodes

    def remove_node(self) -> None:
        """Remove a node with its pods."""
        name = f"n-{self._dice.randrange(NODES)}"
        if self._store.get("nodes", "", name) is not None:
            self._store.delete("nodes", "", name)
            self.collect_pods()

    def collect_pods(self) -> None:
        """Remove the pods of nodes that are not there."""
        for pod in self._store.trees("pods"):
            node_name = pod["spec"].get("nodeName")
            if node_name and self._store.get("nodes", "", node_name) is None:
                self._store.delete("pods", NAMESPACE, pod["metadata"]["name"])

    def restore_node(self) -> None:
        """An absent node is added again, empty, or a cordoned one is uncordoned."""
        self.collect_pods()
        for number in range(NODES):
            node = self._store.get("nodes", "", f"n-{number}")
            if node is None:
                self._add_node(f"n-{number}")
                return
            if node["spec"].get("unschedulable"):
                self._store.update("nodes", {**node, "spec": {}})
                return

    def cordon_node(self) -> None:
        """A node takes no more pods."""
        node = self._store.get("nodes", "", f"n-{self._dice.randrange(NODES)}")
        if node is not None:
            self._store.update("nodes", {**node, "spec": {"unschedulable": True}})

    def change_node(self) -> None:
        """Change the labels of a node."""
        node = self._store.get("nodes", "", f"n-{self._dice.randrange(NODES)}")
        if node is not None:
            labels = {**node["metadata"]["labels"], "step": str(self._store.version)}
            self._store.update(
                "nodes", {**node, "metadata": {**node["metadata"], "labels": labels}}
            )

    def _add_node(self, name: str, spec: Tree | None = None) -> None:
        # A node that is added again with less room would be overcommitted by pods that are being bound.
        cpu = self._sizes.setdefault(name, self._dice.choice([2, 3, 4]))
        room = {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}
        self._store.add(
            "nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": spec or {},
                "status": {"allocatable": room, "capacity": room},
            },
        )
