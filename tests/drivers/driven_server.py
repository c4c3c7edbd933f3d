"""An API server in a thread with the driver of `run` on it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bayplan.drivers.kube_driver import KubeDriver
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import pod_tree

DEADLINE_S = 30.0
NODES = "/api/v1/nodes"
Work = Callable[[KubeDriver], Awaitable[None]]


async def until(look: Callable[[], Any]) -> Any:
    """The first truthy result of `look`; the test's deadline ends the wait."""
    while not (found := look()):
        await asyncio.sleep(0.01)
    return found


def node_of(server: ServerInThread, name: str) -> str:
    tree = server.get(f"{PODS}/{name}").tree
    return str(tree.get("spec", {}).get("nodeName", ""))


def condition(server: ServerInThread, name: str, kind: str) -> dict[str, Any]:
    status = server.get(f"{PODS}/{name}").tree.get("status", {})
    return next((c for c in status.get("conditions", ()) if c["type"] == kind), {})


def reasons(server: ServerInThread) -> set[tuple[str, str]]:
    items = server.get("/apis/events.k8s.io/v1/namespaces/default/events").tree["items"]
    return {(event["regarding"]["name"], event["reason"]) for event in items}


def asking(cpu: str, **spec: Any) -> dict[str, Any]:
    """The spec of a pod with these requests."""
    resources = {"requests": {"cpu": cpu}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}], **spec}


def post_pod(server: ServerInThread, name: str, cpu: str = "1", **spec: Any) -> None:
    server.make(PODS, {**pod_tree(name), "spec": asking(cpu, **spec)})
