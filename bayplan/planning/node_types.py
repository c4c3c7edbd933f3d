"""Node types: the shape and the price of available nodes, and the objects of a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from ..api.devices import ResourcePool, ResourceSlice, ResourceSliceSpec
from ..api.meta import ObjectMeta
from ..api.node import HOSTNAME, ZONE, Node, NodeCondition
from ..api.storage import CSINode, CSINodeAllocatable, CSINodeDriver, CSINodeSpec
from ..api.taints import Taint
from ..cluster.objects.object_index import ClusterObject
from ..sim.plain_part import PlainPart

POOL_LABEL = "bayplan.dev/pool"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
ON_DEMAND, SPOT = "on-demand", "spot"
COST = "bayplan.dev/cost"
"""The annotation that `rebalance --objective cost` reads, too."""
DEFAULT_PODS = 110
"""kubelet's default of maxPods."""
DEFAULT_BOOT_S = 60.0
NOTHING: Mapping[str, int] = {}
ARCH = "kubernetes.io/arch"
PLATFORM = {ARCH: "amd64", "kubernetes.io/os": "linux"}


@dataclass(frozen=True, eq=False)
class NodeType(PlainPart):
    """One kind of node of a pool. Amounts are in the scheduler's units: cpu in milli."""

    PLAIN = (
        "name capacity# allocatable# labels taints zones=zone_names price spot=is_spot bootSeconds=boot_s"
        " interruptionRate devices=device_count csiLimits"
    )

    name: str
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    """Taints of a node that boots; they are removed when it is ready."""
    zones: tuple[str, ...] = ("",)
    """The zones to choose from; an empty name is a node without a zone."""
    price: float | None = None
    """Per hour; None if unknown."""
    boot_s: float = DEFAULT_BOOT_S
    interruption_rate: float = 0.0
    """Expected interruptions of a node per hour."""
    slices: tuple[ResourceSliceSpec, ...] = ()
    """Devices that the node's drivers publish; names of node and pool are filled in."""
    csi_limits: Mapping[str, int | None] = field(default_factory=dict)
    """Installed CSI drivers with the number of volumes they can attach."""

    @property
    def pool(self) -> str:
        """The name of its pool."""
        return self.labels.get(POOL_LABEL, "")

    @property
    def zone_names(self) -> list[str]:
        """The zones that have a name."""
        return [zone for zone in self.zones if zone]

    @property
    def device_count(self) -> int:
        """The number of devices of a node."""
        return sum(len(spec.devices or ()) for spec in self.slices)

    @property
    def is_spot(self) -> bool:
        """Whether its nodes can be removed."""
        return self.labels.get(CAPACITY_TYPE) == SPOT

    def make_objects(
        self,
        name: str,
        zone: str = "",
        *,
        used: Mapping[str, int] = NOTHING,
    ) -> list[ClusterObject]:
        """A node with this name in a zone, then its CSINode and ResourceSlices if it has any.

        An amount that is `used` already is not allocatable.
        """
        node = self.make_node(name, zone, used=used)
        return [node, *self._csi_node(name), *self._resource_slices(name)]

    def make_node(
        self,
        name: str,
        zone: str = "",
        *,
        is_booting: bool = False,
        used: Mapping[str, int] = NOTHING,
    ) -> Node:
        """The node alone."""
        free = {r: max(amount - used.get(r, 0), 0) for r, amount in self.allocatable.items()}
        labels = {**PLATFORM, INSTANCE_TYPE: self.name, **self.labels, HOSTNAME: name}
        if zone:
            labels[ZONE] = zone
        return Node(
            name,
            labels=labels,
            annotations={COST: f"{self.price:.10g}"} if self.price is not None else {},
            taints=self.taints + (self.startup_taints if is_booting else ()),
            capacity=dict(self.capacity),
            allocatable=free,
            conditions=(NodeCondition(type="Ready", status="False" if is_booting else "True"),),
        )

    def _csi_node(self, name: str) -> list[ClusterObject]:
        if not self.csi_limits:
            return []
        drivers = tuple(
            CSINodeDriver(
                name=driver,
                node_id=name,
                allocatable=None if count is None else CSINodeAllocatable(count=count),
            )
            for driver, count in self.csi_limits.items()
        )
        return [CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))]

    def _resource_slices(self, name: str) -> list[ClusterObject]:
        return [
            ResourceSlice(
                metadata=ObjectMeta(name=f"{name}-{number}"),
                spec=replace(
                    spec,
                    node_name=name,
                    pool=ResourcePool(
                        name=f"{name}-{spec.driver}",
                        generation=1,
                        resource_slice_count=sum(s.driver == spec.driver for s in self.slices),
                    ),
                ),
            )
            for number, spec in enumerate(self.slices)
        ]
