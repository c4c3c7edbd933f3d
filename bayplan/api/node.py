"""Node: one node, flat and immutable.

Mirrors Node of k8s.io/api/core/v1/types.go and `GetZoneKey` of
staging/src/k8s.io/component-helpers/node/topology/helpers.go.
"""

from typing import Any

from .meta import NO_STRINGS, Wire
from .taints import Taint

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"


class ContainerImage(Wire, frozen=True):
    """An image the node holds: its names and its size."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeCondition(Wire, frozen=True):
    """One aspect of a node's state."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class Node:
    """A node. Never changed in place: `replace` makes a copy.

    `allocatable` and `capacity` are in the scheduler's units: cpu in milli, others in whole
    units, `pods` among them. Without `allocatable`, all of `capacity` is allocatable.
    """

    __slots__ = (
        "allocatable",
        "annotations",
        "capacity",
        "conditions",
        "creation_timestamp",
        "declared_features",
        "images",
        "labels",
        "name",
        "resource_version",
        "taints",
        "uid",
        "unschedulable",
    )

    kind = "Node"
    api_version = "v1"
    namespace = ""

    def __init__(
        self,
        name: str,
        *,
        uid: str = "",
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        resource_version: str = "",
        creation_timestamp: str | None = None,
        unschedulable: bool = False,
        taints: tuple[Taint, ...] = (),
        allocatable: dict[str, int] | None = None,
        capacity: dict[str, int] | None = None,
        images: tuple[ContainerImage, ...] = (),
        conditions: tuple[NodeCondition, ...] = (),
        declared_features: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.uid = uid
        self.labels: dict[str, str] = NO_STRINGS if labels is None else labels
        self.annotations: dict[str, str] = NO_STRINGS if annotations is None else annotations
        self.resource_version = resource_version
        self.creation_timestamp = creation_timestamp
        self.unschedulable = unschedulable
        self.taints = taints
        self.capacity: dict[str, int] = {} if capacity is None else capacity
        self.allocatable: dict[str, int] = self.capacity if allocatable is None else allocatable
        self.images = images
        self.conditions = conditions
        self.declared_features = declared_features

    @property
    def key(self) -> str:
        """The name; nodes have no namespace."""
        return self.name

    @property
    def zone_key(self) -> str:
        """Region and zone in one text, empty when the node has neither.

        The old beta labels win whenever they are present, even with an empty value.
        """
        labels = self.labels
        zone = labels.get(BETA_ZONE, labels.get(ZONE, ""))
        region = labels.get(BETA_REGION, labels.get(REGION, ""))
        return f"{region}:\x00:{zone}" if region or zone else ""

    def condition(self, kind: str) -> NodeCondition | None:
        """Return the first condition of type `kind`."""
        return next((c for c in self.conditions if c.type == kind), None)

    def replace(self, **changes: Any) -> "Node":
        """A copy of this node with some fields changed."""
        fields = {name: getattr(self, name) for name in Node.__slots__}
        return Node(**(fields | changes))

    def __repr__(self) -> str:
        return f"<Node {self.name}>"
