"""Custom cases: objects of a custom resource and definitions of some, written as data, and the answers to compare.

The same cases run on a real kube-apiserver, whose answers are recorded, and on the embedded server.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import yaml

from .api_cases import ApiAnswer, ApiClient

Tree = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHAPES = "/apis/cases.example.com/v1/namespaces/default/shapes"
_DUMP = re.compile(r'Invalid value: (?:\[\{.*\}\]|\{"[Rr]ule".*?\}): ', re.DOTALL)
TRIES, WAIT_S = 200, 0.1
JSON = "application/json"


class CustomCases:
    """The cases of a file."""

    def __init__(self, path: Path) -> None:
        tree = yaml.safe_load(path.read_text())
        self._schema: Tree = tree["schema"]
        self._objects: dict[str, Tree] = {one.pop("case"): one for one in tree["objects"]}
        self._definitions: dict[str, Tree] = {one.pop("case"): one for one in tree["definitions"]}

    @property
    def names(self) -> list[str]:
        """The names of all cases."""
        return [*self._objects, *self._definitions]

    def prepare(self, client: ApiClient) -> None:
        """Create the definition that the objects need, and wait until it is served."""
        names = {"plural": "shapes", "kind": "Shape"}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": self._schema},
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                },
            },
        }
        tree = make_definition("cases.example.com", names, [version])
        answer = client.request("POST", DEFINITIONS, tree, JSON)
        assert answer.status == 201, answer.tree
        for _ in range(TRIES):
            if client.request("GET", SHAPES, None, JSON).status == 200:
                return
            time.sleep(WAIT_S)
        raise AssertionError("the definition is not served")

    def run(self, client: ApiClient, name: str) -> Tree:
        """The answer to one case; nothing of it stays."""
        if name in self._definitions:
            return self._define(client, self._definitions[name])
        return self._create(client, self._objects[name])

    def _create(self, client: ApiClient, given: Tree) -> Tree:
        body = {key: value for key, value in given.items() if key != "before"}
        tree = {"apiVersion": "cases.example.com/v1", "kind": "Shape", **body}
        if "before" in given:
            before = {**tree, "metadata": {"name": "case"}, "spec": given["before"]}
            made = client.request("POST", SHAPES, before, JSON)
            assert made.status == 201, made.tree
            tree["metadata"] = made.tree["metadata"]
            answer = client.request("PUT", f"{SHAPES}/case", tree, JSON)
        else:
            answer = client.request("POST", SHAPES, {**tree, "metadata": {"name": "case"}}, JSON)
        client.request("DELETE", f"{SHAPES}/case", None, JSON)
        return _shown(answer)

    def _define(self, client: ApiClient, given: Tree) -> Tree:
        body = dict(given)
        group = body.pop("group", "cases.example.org")
        names = body.pop("names", {"plural": "things", "kind": "Thing"})
        tree = make_definition(group, names, body.pop("versions"), **body)
        tree["metadata"]["name"] = f"things.{group}"
        answer = client.request("POST", f"{DEFINITIONS}?dryRun=All", tree, JSON)
        return _shown(answer)


def make_definition(group: str, names: Tree, versions: list[Tree], **spec: Any) -> Tree:
    """A CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": versions,
            **spec,
        },
    }


def _shown(answer: ApiAnswer) -> Tree:
    """The part of an answer that does not depend on the time, on random orders and on the types of another language."""
    tree = answer.tree
    if answer.status >= 300:
        causes = (tree.get("details") or {}).get("causes") or []
        found = [{key: _plain(text) for key, text in cause.items()} for cause in causes]
        found.sort(key=lambda cause: (cause["field"], cause["message"]))
        return {"code": answer.status, "message": _plain(tree["message"])} | (
            {"causes": found, "message": ""} if found else {}
        )
    shown = {"code": answer.status, "spec": tree.get("spec")}
    is_definition = tree["kind"] == "CustomResourceDefinition"
    return shown | ({"status": tree["status"]} if "status" in tree and not is_definition else {})


def _plain(text: str) -> str:
    """A text without the dump of a whole definition, and without the words of a parser."""
    text = _DUMP.sub("Invalid value: []: ", text)
    for mark in ("but isn't: ", "Syntax error: "):
        text = "".join(text.partition(mark)[:2])
    return text
