"""API cases: requests to an API server, written as data, and the answers to compare.

A case is a list of steps; the answer to the last one counts, the others must succeed. The same cases run
on a real kube-apiserver, whose answers are recorded, and on the embedded server.
"""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from .client import PATCH_TYPES, Tree
from .control_plane import POD_GROUP_GATES
from .kinds import KINDS, path_of, with_head

METHODS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "get": "GET",
}
NAME = "g"
TRIES, WAIT_S = 600, 0.05
GATE_SETS: dict[str, tuple[str, ...]] = {
    "all": (*POD_GROUP_GATES, "DRAWorkloadResourceClaims", "WorkloadWithJob"),
    "generic": ("GenericWorkload",),
    "none": (),
}
"""The feature gates that are on, by the name of the set."""
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LONG_VALUE = re.compile(r"Invalid value: \{.{150,}\}: ")
_numbers = itertools.count()


class ApiAnswer(Protocol):
    """The answer of a server: its code, and the object or the error."""

    @property
    def status(self) -> int: ...
    @property
    def tree(self) -> Any: ...


class ApiClient(Protocol):
    """A client of any API server."""

    def request(self, method: str, path: str, body: Any, kind: str, /) -> ApiAnswer: ...


@dataclass(frozen=True)
class ApiCase:
    """One case. `gates` names the set of feature gates that the server has.

    With `is_eventual` the last step is refused for what an admission plugin has read in a watch, and so is tried
    without effect until it is.
    """

    name: str
    steps: tuple[Tree, ...]
    gates: str = "all"
    is_eventual: bool = False


def read_cases(path: Path) -> list[ApiCase]:
    """The cases in a YAML file."""
    trees = yaml.safe_load(path.read_text())
    return [
        ApiCase(t["case"], tuple(t["steps"]), t.get("gates", "all"), t.get("eventual", False))
        for t in trees
    ]


def prepare_server(client: ApiClient) -> None:
    """Create the priority class that the cases use."""
    tree = with_head("PriorityClass", {"value": 1000, **named("high")})
    _need(client.request("POST", path_of("PriorityClass"), tree, "application/json"))


def run_case(client: ApiClient, case: ApiCase) -> Tree:
    """The answer to the last step, in a new namespace."""
    namespace = f"case-{next(_numbers)}"
    _need(client.request("POST", path_of("Namespace"), named(namespace), "application/json"))
    *before, last = case.steps
    for step in before:
        _need(_send(client, step, namespace))
    if case.is_eventual:
        for _ in range(TRIES):
            answer = _send(client, last, namespace, "?dryRun=All")
            if answer.status >= 300:
                return _shown(answer)
            time.sleep(WAIT_S)
    return _shown(_send(client, last, namespace))


def named(name: str) -> Tree:
    """An object without anything but a name."""
    return {"metadata": {"name": name}}


def _send(client: ApiClient, step: Tree, namespace: str, query: str = "") -> ApiAnswer:
    """Send one step: a verb with a kind (and a subresource), the rest is the body."""
    body = dict(step)
    verb = next(verb for verb in METHODS if verb in body)
    kind, _, subresource = str(body.pop(verb)).partition("/")
    name = str(body.pop("name", NAME))
    where = namespace if KINDS[kind][2] else ""
    if verb == "create":
        tree = {**body, "metadata": {"name": name, **body.get("metadata", {})}}
        path = path_of(kind, where) + query
        return client.request("POST", path, with_head(kind, tree), "application/json")
    path = path_of(kind, where, name) + (f"/{subresource}" if subresource else "") + query
    if verb == "patch":
        form = PATCH_TYPES[body.pop("as", "merge")]
        return client.request("PATCH", path, body.pop("body", body), form)
    if verb == "update":
        tree = {**body, "metadata": {"name": name, **body.get("metadata", {})}}
        return client.request("PUT", path, with_head(kind, tree), "application/json")
    return client.request(METHODS[verb], path, None, "application/json")


def _need(answer: ApiAnswer) -> None:
    assert answer.status < 300, f"{answer.status} {answer.tree}"


def _shown(answer: ApiAnswer) -> Tree:
    """The part of an answer that does not depend on the time and on random names."""
    tree = answer.tree
    if answer.status >= 300:
        causes = (tree.get("details") or {}).get("causes") or []
        shown = {"code": answer.status, "message": _plain(tree["message"])}
        fields = [{k: _plain(v) for k, v in cause.items()} for cause in causes]
        return shown | ({"causes": fields} if fields else {})
    metadata, spec = tree["metadata"], tree.get("spec") or {}
    if tree["kind"] in ("Pod", "Job"):
        template = (spec.get("template") or {}).get("spec") or spec
        found = {"code": answer.status, "schedulingGroup": template.get("schedulingGroup")}
        return found | _resources_in(tree, template)
    found = {"generation": metadata.get("generation"), "finalizers": metadata.get("finalizers")}
    found |= {"spec": _stored(spec), "status": _stored(tree.get("status"))}
    if metadata.get("deletionTimestamp"):
        found["deleting"] = True
    return {"code": answer.status, **{k: v for k, v in found.items() if v}}


def _resources_in(tree: Tree, spec: Tree) -> Tree:
    """The resources of containers, and the annotation of limit ranges about them, if there are any."""
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    resources = [container["resources"] for container in containers if container.get("resources")]
    note = (tree["metadata"].get("annotations") or {}).get("kubernetes.io/limit-ranger")
    return ({"resources": resources} if resources else {}) | ({"limits set": note} if note else {})


def _plain(text: str) -> str:
    """A text without uids, and without the internal types of kube-apiserver: differences and long values."""
    return _LONG_VALUE.sub("Invalid value: {}: ", _UID.sub("UID", text.partition("\n")[0]))


def _stored(value: Any) -> Any:
    """An object without nulls and empty lists, and with its conditions in the order of their types."""
    if isinstance(value, dict):
        return {key: _stored(part) for key, part in value.items() if part not in (None, [])}
    if not isinstance(value, list):
        return value
    items = [_stored(part) for part in value]
    is_by_type = all(isinstance(item, dict) and "type" in item for item in items)
    return sorted(items, key=lambda item: str(item["type"])) if is_by_type else items
