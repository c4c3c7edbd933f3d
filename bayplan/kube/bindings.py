"""Bindings: bind a pod, and determine the outcome when the response was lost.

A broken connection leaves open whether a binding arrived, and repeating one that arrived is
rejected. Treating that as a failure would free the pod's resources on the node until a watch
corrects it. So the pod is read, if necessary once the server is back, and until then it stays
assumed. kube-scheduler does not do this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..api.pod import Pod
from ..errors import ApiError
from .connection import UnreachableError
from .retry_backoff import Backoff

if TYPE_CHECKING:
    from .sender import Sender

FIRST_WAIT_S, MAX_WAIT_S = 0.4, 0.8


class _Spec(msgspec.Struct):
    node_name: str = msgspec.field(default="", name="nodeName")


class _Metadata(msgspec.Struct):
    uid: str = ""


class _BoundPod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


_PODS = msgspec.json.Decoder(_BoundPod)


def path_and_body(pod: Pod, node_name: str) -> tuple[str, bytes]:
    """The path and body of a binding."""
    # Names and uids consist of letters, digits, dots and hyphens: nothing to escape.
    body = (
        f'{{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{pod.name}",'
        f'"namespace":"{pod.namespace}","uid":"{pod.uid}"}},'
        f'"target":{{"kind":"Node","name":"{node_name}"}}}}'
    )
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding", body.encode()


class Confirm:
    """Determines whether a pod was bound to its intended node."""

    __slots__ = ("_node_name", "_pod")

    def __init__(self, pod: Pod, node_name: str) -> None:
        self._pod = pod
        self._node_name = node_name

    async def __call__(self, sender: Sender, error: ApiError) -> None:
        """Return if it was; raise `error`, the apparent failure, if it was not."""
        path = f"/api/v1/namespaces/{self._pod.namespace}/pods/{self._pod.name}"
        backoff = Backoff(FIRST_WAIT_S, MAX_WAIT_S)
        while True:
            try:
                answer = await sender.request("GET", path)
                break
            except ApiError as problem:
                if not _is_passing(problem):
                    raise error from None
            await sender.pause(backoff.next_s())
        try:
            stored = _PODS.decode(answer)
        except msgspec.MsgspecError:
            raise error from None
        if (stored.metadata.uid, stored.spec.node_name) != (self._pod.uid, self._node_name):
            raise error


def _is_passing(problem: ApiError) -> bool:
    """Whether the pod may be readable later: the server is away, fails, or has too many requests."""
    return isinstance(problem, UnreachableError) or problem.code == 429 or problem.code >= 500
