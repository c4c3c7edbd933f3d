"""Containers: the parts of a container that matter for placement.

Mirrors Container, ContainerPort and ResourceRequirements of k8s.io/api/core/v1/types.go.
"""

from typing import NamedTuple

from msgspec import field

from .meta import Wire
from .text.quantity import Quantity

ANY_IP = "0.0.0.0"


class ResourceClaimRef(Wire, frozen=True):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire, frozen=True):
    """Requests and limits, as written in the manifest."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None
    claims: tuple[ResourceClaimRef, ...] | None = None

    def __hash__(self) -> int:
        return hash((hash_map(self.requests), hash_map(self.limits), self.claims))


class ContainerPort(Wire, frozen=True):
    """A port of a container; `host_port` is 0 if it uses no port of the node."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""


class RestartRule(Wire, frozen=True):
    """The action when the container exits with certain codes."""

    action: str = ""


class Container(Wire, frozen=True):
    """A container or an init container."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None

    @property
    def is_restartable(self) -> bool:
        """Whether an init container is a sidecar: started in order, then kept running."""
        return self.restart_policy == "Always"

    @property
    def requests(self) -> dict[str, Quantity]:
        return (self.resources.requests or {}) if self.resources else {}


class HostPort(NamedTuple):
    """A port a pod takes on its node."""

    ip: str
    protocol: str
    port: int

    def conflicts_with(self, other: "HostPort") -> bool:
        """Whether both cannot be used on one node; the wildcard address conflicts with every
        address."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.ip == other.ip or ANY_IP in (self.ip, other.ip)


def hash_map(values: dict[str, Quantity] | None) -> int:
    """Hash of a map's content, independent of order."""
    return hash(frozenset(values.items())) if values else 0
