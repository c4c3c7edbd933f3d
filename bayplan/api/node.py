"""Node: one node, flat and immutable.

Mirrors Node of k8s.io/api/core/v1/types.go and `GetZoneKey` of
staging/src/k8s.io/component-helpers/node/topology/helpers.go.
"""

from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

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


def _no_strings() -> dict[str, str]:
    return NO_STRINGS


ALL_OF_CAPACITY: dict[str, int] = {}
"""Marks a node without `allocatable`."""


class Node(Struct, eq=False):
    """A node. Never changed in place: `replace` makes a copy.

    `allocatable` and `capacity` are in the scheduler's units: cpu in milli, others in whole
    units, `pods` among them. Without `allocatable`, all of `capacity` is allocatable.
    """

    kind: ClassVar = "Node"
    api_version: ClassVar = "v1"
    namespace: ClassVar = ""

    name: str
    uid: str = ""
    labels: dict[str, str] = field(default_factory=_no_strings)
    annotations: dict[str, str] = field(default_factory=_no_strings)
    resource_version: str = ""
    creation_timestamp: str | None = None
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    allocatable: dict[str, int] = field(default_factory=lambda: ALL_OF_CAPACITY)
    capacity: dict[str, int] = field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.allocatable is ALL_OF_CAPACITY:
            self.allocatable = self.capacity

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
        return replace(self, **changes)

    def __repr__(self) -> str:
        return f"<Node {self.name}>"
