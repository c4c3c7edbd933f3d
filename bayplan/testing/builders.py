"""Builders: nodes, pods and other objects for tests, and a table and a handle made of them.

Every object goes through the decoder, so it is exactly as a cluster would have sent it. Fields without a parameter are
given in Kubernetes' own form: `make_pod(spec={"hostNetwork": True})`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ..api.custom import CustomObject, CustomResource, custom_kind
from ..api.meta import KubeObject
from ..api.node import HOSTNAME, ZONE, Node
from ..api.pod import Pod
from ..api.pod_groups import GroupPreemptor
from ..api.wire.decode import build_from_tree, decode_object
from ..api.wire.kinds import KINDS
from ..clock import ManualClock
from ..cluster.objects.object_index import ObjectIndex
from ..errors import InputError
from ..framework import ActionType, ClusterEvent, Handle, Hint, Plugin
from ..framework.handle import NoClient
from ..framework.registration import registered_events
from ..releases.feature_gates import FeatureGates
from ..table import ChangeLog, NodeTable
from ..table.writer import TableWriter

# Hints: call a plugin's queueing hint for an event, as the queue would.


def ask_plugin(
    plugin: Plugin, event: str, pod: Pod, old: Any = None, new: Any = None
) -> Hint | None:
    """Whether `event`, such as `Node/Add`, requeues a pod that `plugin` rejected.

    None if the plugin did not register such events. Exceptions of the hint are raised.
    """
    resource, _, action = event.rpartition("/")
    incoming = ClusterEvent(resource, ActionType.parse(action))
    asked = [e.hint for e in registered_events(plugin) if e.event.matches(incoming)]
    answers = [Hint.QUEUE if hint is None else hint(pod, old, new) for hint in asked]
    if not answers:
        return None
    return Hint.QUEUE if Hint.QUEUE in answers else Hint.SKIP


T = TypeVar("T")
Kind = TypeVar("Kind", bound=KubeObject)
Tree: TypeAlias = Mapping[str, Any]
"""An object, or a part of one, in Kubernetes' own form."""

DELETED_AT = "2000-01-01T00:00:00Z"


def make_node(
    name: str = "node",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    zone: str | None = None,
    taints: Iterable[str | Tree] = (),
    unschedulable: bool = False,
    cpu: str | None = "4",
    memory: str | None = "16Gi",
    pods: int = 110,
    extended: Mapping[str, int | str] | None = None,
    images: Mapping[str, int] | None = None,
    features: Iterable[str] = (),
) -> Node:
    """A node. Like every real one it has its name as hostname label, unless `labels` override it.

    `taints` are written `key=value:Effect` or `key:Effect`; `extended` are further resources;
    `images` are sizes in bytes by name; `cpu` or `memory` None leaves the resource out.
    """
    resources = {"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})}
    status = {
        "allocatable": {key: str(value) for key, value in resources.items() if value is not None},
        "images": [{"names": [key], "sizeBytes": size} for key, size in (images or {}).items()],
        "declaredFeatures": list(features),
    }
    places = {HOSTNAME: name} if zone is None else {HOSTNAME: name, ZONE: zone}
    metadata = {
        "labels": {**places, **(labels or {})},
        "annotations": dict(annotations or {}),
        "uid": name,
    }
    spec = {"unschedulable": unschedulable, "taints": [parse_taint(taint) for taint in taints]}
    spec, status = _filled(spec), _filled(status)
    node: Node = make_object("Node", name, metadata=metadata, spec=spec, status=status)
    return node


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    cpu: str | None = None,
    memory: str | None = None,
    requests: Mapping[str, int | str] | None = None,
    images: Sequence[str] = ("",),
    host_ports: Iterable[int | str | Tree] = (),
    node_name: str = "",
    node_selector: Mapping[str, str] | None = None,
    affinity: Tree | None = None,
    node_affinity: Tree | None = None,
    tolerations: Iterable[str | Tree] = (),
    spread: Iterable[Tree] = (),
    priority: int | None = None,
    gates: Iterable[str] = (),
    nominated_node_name: str = "",
    start_time: str | None = None,
    terminating: bool = False,
    spec: Tree | None = None,
    status: Tree | None = None,
) -> Pod:
    """A pod with one container per image; the first one has the requests and the ports.

    `tolerations` are written `key=value:Effect`, `key:Effect` or `key`, the last two for any value,
    and `""` tolerates everything; `host_ports` are numbers or `ip:port/protocol`, ip and protocol
    being optional; `affinity`, `node_affinity` and `spread` are in Kubernetes' own form. `spec` and
    `status` take precedence.
    """
    wanted = {"cpu": cpu, "memory": memory, **(requests or {})}
    wishes = {**(affinity or {}), **({"nodeAffinity": node_affinity} if node_affinity else {})}
    given_spec = {
        "nodeName": node_name,
        "nodeSelector": node_selector,
        "affinity": wishes or None,
        "tolerations": [_toleration(toleration) for toleration in tolerations],
        "topologySpreadConstraints": list(spread),
        "priority": priority,
        "schedulingGates": [{"name": gate} for gate in gates],
        "containers": _containers(images, wanted, host_ports),
    }
    metadata = {
        "namespace": namespace,
        "uid": uid or f"{namespace}/{name}",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
        "deletionTimestamp": DELETED_AT if terminating else None,
    }
    given_status = {"nominatedNodeName": nominated_node_name, "startTime": start_time}
    whole = {**_filled(given_spec), **(spec or {})}, {**_filled(given_status), **(status or {})}
    pod: Pod = make_object("Pod", name, metadata=metadata, spec=whole[0], status=whole[1])
    return pod


def _containers(
    images: Sequence[str],
    wanted: Mapping[str, int | str | None],
    host_ports: Iterable[int | str | Tree],
) -> list[dict[str, Any]]:
    """One container per image; the first one has the requests and the ports."""
    containers: list[dict[str, Any]] = [
        {"name": f"container-{i}", "image": image} for i, image in enumerate(images)
    ]
    if containers:
        amounts = {key: str(amount) for key, amount in wanted.items() if amount is not None}
        parts = {"requests": amounts} if amounts else None
        ports = [_port(port) for port in host_ports]
        containers[0] |= _filled({"resources": parts, "ports": ports})
    return containers


def make_object(
    kind: str, name: str, *, namespace: str = "", metadata: Tree | None = None, **fields: Any
) -> Any:
    """An object of any kind; `fields` (`spec`, `status`, ...) are in Kubernetes' own form."""
    known = KINDS.get(kind)
    if known is None:
        raise InputError(f'make_object: expected a known kind; got "{kind}"')
    meta = _filled({"name": name, "namespace": namespace, **(metadata or {})})
    tree = {"apiVersion": known.api_version, "kind": kind, "metadata": meta, **fields}
    return decode_object(tree)


def make_kind(kind: type[Kind], name: str, **fields: Any) -> Kind:
    """Make an object with the type of its kind."""
    made: Kind = make_object(kind.kind, name, **fields)
    return made


def make_custom(
    resource: CustomResource, name: str, *, namespace: str = "", **fields: Any
) -> CustomObject:
    """An object of a custom resource; `fields` are the rest of its manifest."""
    made = build_from_tree(
        custom_kind(resource),
        {"metadata": _filled({"name": name, "namespace": namespace}), **fields},
    )
    assert isinstance(made, CustomObject), "decode keeps the kind"
    return made


def make_gang(
    name: str,
    size: int,
    *,
    min_count: int | None = None,
    topology_key: str = "",
    namespace: str = "default",
    **fields: Any,
) -> list[Any]:
    """A PodGroup and `size` members `name-0`, ...; `fields` are those of `make_pod`.

    `min_count` is the size unless given. With `topology_key`, the members share a value of this node label.
    """
    count = size if min_count is None else min_count
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": count}}}
    if topology_key:
        spec["schedulingConstraints"] = {"topology": [{"key": topology_key}]}
    own = {**fields.pop("spec", {}), "schedulingGroup": {"podGroupName": name}}
    return [
        make_object("PodGroup", name, namespace=namespace, spec=spec),
        *(make_pod(f"{name}-{i}", namespace=namespace, spec=own, **fields) for i in range(size)),
    ]


def make_table(
    *nodes: Node,
    pods: Iterable[Pod] = (),
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> NodeTable:
    """A table of `nodes`, row by row, with each of `pods` on the node it names.

    `namespaces` are the labels of namespaces by name.
    """
    writer = TableWriter(NodeTable())
    for node in nodes:
        writer.set_node(node)
    for pod in pods:
        if not pod.node_name:
            raise InputError(f"make_table: pod {pod.key}: expected a node_name; got none")
        writer.add_pod(pod)
    for name, labels in (namespaces or {}).items():
        writer.set_namespace(name, labels)
    writer.table.images.refresh()
    return writer.table


def make_handle(
    table: NodeTable | None = None,
    objects: Iterable[Any] = (),
    *,
    nominated: Mapping[str, Iterable[Pod]] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Handle:
    """A handle for a plugin: a lister over `objects`, pods nominated by node name, a manual clock.

    `client` is a `RecordingClient`: it records binds and evictions without performing them.
    """
    return Handle(
        table=make_table() if table is None else table,
        clock=ManualClock(),
        lister=ObjectLister(objects),
        client=RecordingClient(),
        nominator=Nominations(nominated or {}),
        feature_gates=FeatureGates.of(feature_gates),
    )


class ObjectLister(ObjectIndex):
    """A lister over objects held in memory."""

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        super().__init__()
        for obj in objects:
            self.add(obj)

    def add(self, obj: Any) -> None:
        """Add or replace an object."""
        self.put_in(obj)

    def remove(self, obj: Any) -> None:
        """Remove an object."""
        if self.get(obj.kind, obj.namespace, obj.name) is not None:
            self.take_out(obj)


class RecordingClient(NoClient):
    """A client that only records its calls.

    `bound` is (pod key, node name), `updated`, `created` and `deleted` are the objects to be
    written, the others are pods.
    """

    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []
        self.evicted: list[Pod] = []
        self.cleared: list[Pod] = []
        self.updated: list[Any] = []
        self.created: list[Any] = []
        self.deleted: list[Any] = []

    def bind(self, pod: Pod, node_name: str) -> None:
        self.bound.append((pod.key, node_name))

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        self.evicted.append(victim)

    def clear_nomination(self, pod: Pod) -> None:
        self.cleared.append(pod)

    def update(self, obj: T) -> T:
        self.updated.append(obj)
        return obj

    def update_status(self, obj: T) -> T:
        return self.update(obj)

    def create(self, obj: T) -> T:
        self.created.append(obj)
        return obj

    def delete(self, obj: KubeObject) -> None:
        self.deleted.append(obj)


class Nominations:
    """Nominated pods, by node name."""

    def __init__(self, nominated: Mapping[str, Iterable[Pod]]) -> None:
        self._nominated = {name: list(pods) for name, pods in nominated.items()}
        self._log: ChangeLog[str] = ChangeLog()

    def __bool__(self) -> bool:
        return any(self._nominated.values())

    @property
    def version(self) -> int:
        return self._log.version

    def changed_since(self, version: int) -> Iterable[str] | None:
        return self._log.since(version)

    def node_of(self, pod: Pod) -> str:
        """The node that `pod` is nominated to; "" for none."""
        found = (name for name, pods in self._nominated.items() if pod.uid in {p.uid for p in pods})
        return next(found, "")

    def nominated_pods(self, node_name: str) -> list[Pod]:
        return list(self._nominated.get(node_name, ()))

    def node_names(self) -> list[str]:
        return list(self._nominated)

    def delete(self, pod: Pod) -> None:
        for name, pods in self._nominated.items():
            pods[:] = [other for other in pods if other.uid != pod.uid]
            self._log.mark(name)


def parse_taint(taint: str | Tree) -> Tree:
    if not isinstance(taint, str):
        return taint
    pair, colon, effect = taint.rpartition(":")
    if not colon:
        raise InputError(f'taint: expected key=value:Effect or key:Effect; got "{taint}"')
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _toleration(toleration: str | Tree) -> Tree:
    if not isinstance(toleration, str):
        return toleration
    pair, _, effect = toleration.partition(":")
    key, equals, value = pair.partition("=")
    if equals:
        return {"key": key, "operator": "Equal", "value": value, "effect": effect}
    return {"key": key, "operator": "Exists", "effect": effect}


def _port(port: int | str | Tree) -> Tree:
    if isinstance(port, Mapping):
        return port
    address, _, protocol = str(port).partition("/")
    ip, _, number = address.rpartition(":")
    if not number.isdecimal():
        raise InputError(f'host port: expected a number or ip:port/protocol; got "{port}"')
    return {
        "containerPort": int(number),
        "hostPort": int(number),
        "hostIP": ip,
        "protocol": protocol,
    }


def _filled(tree: Tree) -> dict[str, Any]:
    """The tree without empty entries, as a cluster sends it."""
    return {key: value for key, value in tree.items() if value not in (None, "", [])}
