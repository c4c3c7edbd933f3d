"""Extender: one web service that is called during scheduling: its requests and answers.

Mirrors pkg/scheduler/extender.go and staging/src/k8s.io/kube-scheduler/extender/v1/types.go. The names of fields are
sent as Go writes them and read in any case. Pods and nodes are sent with all of their fields. The transport sends the
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import msgspec

from ..api.node import Node
from ..api.pod import Pod
from ..api.wire.go_json import (
    decode_json,
    find,
    int_member,
    list_member,
    member,
    text_member,
    texts_by_name,
)
from ..api.wire.whole import whole
from ..config.types import Extender as ExtenderConfig
from ..errors import ApiError, DecodeError, ExtenderError
from ..framework.victims import Victims
from ..table import NodeTable

DEFAULT_TIMEOUT_S = 5.0
INT64 = range(-(2**63), 2**63)
Tree: TypeAlias = dict[str, Any]


class ExtenderTransport(Protocol):
    """Sends requests to an extender."""

    def post(self, url: str, body: bytes, timeout_s: float) -> bytes:
        """The body of the answer; raises ApiError, with the HTTP status as its code when there is one."""


MakeTransport: TypeAlias = Callable[[ExtenderConfig], ExtenderTransport]


def make_http_transport(config: ExtenderConfig) -> ExtenderTransport:
    """Make the transport that an extender's configuration asks for. HTTPS without a CA accepts any certificate."""
    # TLS and HTTP are imported only where extenders are configured.
    from ..cluster.http_transport import HttpTransport, TlsOptions

    given = config.tls_config
    tls = TlsOptions(**msgspec.structs.asdict(given)) if given is not None else TlsOptions()
    if config.enable_https and not (tls.ca_file or tls.ca_data):
        tls = msgspec.structs.replace(tls, insecure=True)
    return HttpTransport(tls)


class Filtered(msgspec.Struct, frozen=True):
    """The remaining nodes, in the extender's order, and its reasons for others, by name."""

    names: list[str]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    by_name: bool = True
    """False if the extender returned whole nodes: scoring then sees these, without their pods and images."""


class HTTPExtender:
    """Calls one extender. Every method raises ExtenderError when it fails or its answer is invalid."""

    def __init__(self, config: ExtenderConfig, transport: ExtenderTransport) -> None:
        self.config = config
        self._transport = transport
        self._timeout_s = config.http_timeout_s or DEFAULT_TIMEOUT_S
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._encoded: dict[str, tuple[Node, msgspec.Raw]] = {}

    @property
    def name(self) -> str:
        """The address of the extender."""
        return self.config.url_prefix

    @property
    def is_ignorable(self) -> bool:
        """Whether scheduling goes on without it when it fails."""
        return self.config.ignorable

    def is_interested(self, pod: Pod) -> bool:
        """Whether it is interested in `pod`: it manages a resource of one of its containers, or none at all."""
        if not self._managed:
            return True
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
            resources = container.resources
            if resources is not None and not (
                self._managed.isdisjoint(resources.requests or ())
                and self._managed.isdisjoint(resources.limits or ())
            ):
                return True
        return False

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """The nodes of `nodes` that the extender accepts."""
        given = {node.name for node in nodes}
        if not self.config.filter_verb:
            return Filtered([node.name for node in nodes], {}, {})
        answer = self._send(self.config.filter_verb, self._about(pod, nodes))
        with _reading(self.name):
            problem = text_member(answer, "Error")
            if problem:
                raise ExtenderError(problem)
            by_name = self.config.node_cache_capable and find(answer, "NodeNames") is not None
            names = _names(answer) if by_name else _names_of_nodes(answer)
            filtered = Filtered(
                list(dict.fromkeys(names)),
                texts_by_name(answer, "FailedNodes"),
                texts_by_name(answer, "FailedAndUnresolvableNodes"),
                by_name,
            )
        for name in filtered.names:
            if name not in given:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in '
                    "the input node list"
                )
        return filtered

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[tuple[str, int]]:
        """Node names with their scores, mostly from 0 to 10; not weighted yet."""
        if not self.config.prioritize_verb:
            return [(node.name, 0) for node in nodes]
        answer = self._send(self.config.prioritize_verb, self._about(pod, nodes))
        with _reading(self.name):
            entries = list_member({"scores": answer}, "scores")
            scores = [(text_member(e, "Host"), int_member(e, "Score")) for e in entries]
            for host, score in scores:
                if score not in INT64:
                    raise DecodeError(host, f"expected a score of 64 bits; got {score}")
            return scores

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], table: NodeTable
    ) -> dict[str, Victims]:
        """The remaining candidates, which may be other victims on other nodes."""
        cached = self.config.node_cache_capable
        described = {name: _describe(found, cached) for name, found in candidates.items()}
        args = {
            "Pod": whole(pod),
            "NodeNameToVictims": None if cached else described,
            "NodeNameToMetaVictims": described if cached else None,
        }
        answer = self._send(self.config.preempt_verb, args)
        with _reading(self.name):
            chosen = member(answer, "NodeNameToMetaVictims")
            return {
                name: self._victims(name, entry_of_node, table)
                for name, entry_of_node in chosen.items()
            }

    def bind(self, pod: Pod, node_name: str) -> None:
        """Have the extender bind the pod."""
        args = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": node_name,
        }
        answer = self._send(self.config.bind_verb, args)
        with _reading(self.name):
            problem = text_member(answer, "Error")
        if problem:
            raise ExtenderError(problem)

    def _about(self, pod: Pod, nodes: Sequence[Node]) -> Tree:
        """The request about a pod and nodes: names only for an extender that caches nodes."""
        if self.config.node_cache_capable:
            names = [node.name for node in nodes]
            return {"Pod": whole(pod), "Nodes": None, "NodeNames": names}
        items = {"metadata": {}, "items": [self._encode(node) for node in nodes]}
        return {"Pod": whole(pod), "Nodes": items, "NodeNames": None}

    def _encode(self, node: Node) -> msgspec.Raw:
        """The node as JSON, made once as long as the node does not change."""
        known = self._encoded.get(node.name)
        if known is None or known[0] is not node:
            raw = msgspec.Raw(msgspec.json.encode(whole(node)))
            known = self._encoded[node.name] = (node, raw)
        return known[1]

    def _victims(self, node_name: str, entry_of_node: Any, table: NodeTable) -> Victims:
        """The victims on one node, which an answer names by their uids."""
        row = table.row_of.get(node_name)
        if row is None or not table.live[row]:
            raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
        pods = []
        for entry in list_member(entry_of_node, "Pods"):
            uid = text_member(entry, "UID")
            pod = table.pods[row].get(uid)
            if pod is None:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: {node_name}, "
                    "but the pod is not found on that node"
                )
            pods.append(pod)
        return Victims(node_name, pods, int_member(entry_of_node, "NumPDBViolations"))

    def _send(self, verb: str, args: Tree) -> Any:
        """Post `args` and return the decoded answer."""
        url = f"{self.name.rstrip('/')}/{verb}"
        try:
            body = self._transport.post(url, msgspec.json.encode(args), self._timeout_s)
        except ApiError as error:
            if error.code:
                raise ExtenderError(
                    f"failed {verb} with extender at URL {url}, code {error.code}"
                ) from error
            raise ExtenderError(str(error)) from error
        with _reading(url):
            return decode_json(body)


@contextmanager
def _reading(whose: str) -> Iterator[None]:
    """Turn a fault in an answer into an ExtenderError that names the extender."""
    try:
        yield
    except DecodeError as error:
        raise ExtenderError(f"answer of extender {whose}: {error}") from error


def _names(answer: Any) -> list[str]:
    """The names of the nodes in an answer by name."""
    return [text_member({"name": name}, "name") for name in list_member(answer, "NodeNames")]


def _names_of_nodes(answer: Any) -> list[str]:
    """The names of the nodes in an answer with whole nodes; empty if the answer has none."""
    items = list_member(find(answer, "Nodes"), "items")
    return [text_member(member(item, "metadata"), "name") for item in items]


def _describe(victims: Victims, by_uid: bool) -> Tree:
    pods = [{"UID": pod.uid} if by_uid else whole(pod) for pod in victims.pods]
    return {"Pods": pods, "NumPDBViolations": victims.pdb_violations}
