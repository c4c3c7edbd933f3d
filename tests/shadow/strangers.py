"""Strangers: an extender, a webhook and a configuration that are not given to a shadow, for a live measurement."""

import base64
import itertools
import json
from pathlib import Path
from typing import Any

from tests.rig.live.json_server import JsonServer

Tree = dict[str, Any]


class Extender(JsonServer):
    """Refuses nodes of one pool for some pods, and prefers those of another one."""

    def __init__(self) -> None:
        super().__init__(lambda path, arguments: (200, answer_of(path, arguments)))

    @property
    def config(self) -> Tree:
        return {
            "urlPrefix": f"http://127.0.0.1:{self.port}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "nodeCacheCapable": True,
        }


def answer_of(path: str, arguments: Tree) -> Any:
    """Odd nodes are refused for pods of tier t3; nodes that end with 4 get ten points."""
    names = arguments.get("NodeNames") or arguments.get("nodenames") or []
    pod = arguments.get("Pod") or arguments.get("pod") or {}
    if path.endswith("prioritize"):
        return [{"Host": name, "Score": 10 if name.endswith("4") else 0} for name in names]
    tier = pod["metadata"].get("labels", {}).get("tier")
    refused = [name for name in names if tier == "t3"]
    kept = [name for name in names if name not in refused]
    return {
        "NodeNames": kept,
        "FailedNodes": dict.fromkeys(refused, "node(s) had no licence left"),
    }


class BindingWebhook(JsonServer):
    """Changes the node of every third binding, as a webhook of an operator may."""

    NAME = "bindings.example.com"

    def __init__(self, folder: Path, node_names: list[str]) -> None:
        super().__init__(self._review, folder)
        self._node_names = node_names
        self._counted = itertools.count()

    def _review(self, path: str, review: Tree) -> tuple[int, Tree]:
        number = next(self._counted)
        answer: Tree = {"uid": review["request"]["uid"], "allowed": True}
        if number % 3 == 0:
            target = self._node_names[number % len(self._node_names)]
            patch = [{"op": "replace", "path": "/target/name", "value": target}]
            text = base64.b64encode(json.dumps(patch).encode()).decode()
            answer |= {"patchType": "JSONPatch", "patch": text}
        head = {key: review[key] for key in ("apiVersion", "kind")}
        return 200, {**head, "response": answer}

    def configuration(self) -> Tree:
        """The object that registers it."""
        hook = {
            "name": self.NAME,
            "clientConfig": {
                "url": f"https://127.0.0.1:{self.port}/bind",
                "caBundle": self.bundle,
            },
            "rules": [
                {
                    "operations": ["CREATE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["pods/binding"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.NAME},
            "webhooks": [hook],
        }


MOST_ALLOCATED = {
    "schedulerName": "default-scheduler",
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "NodeResourcesFitArgs",
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                },
            },
        }
    ],
}
