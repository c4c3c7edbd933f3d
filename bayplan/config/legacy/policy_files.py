"""PolicyFiles: the shape of a Policy, the format of kube-scheduler up to v1.22.

Mirrors staging/src/k8s.io/kube-scheduler/config/v1/types.go of v1.20.
"""

from typing import Any

import msgspec
from msgspec import field, structs

from ..decode import Int32, Int64
from ..plugin_args import ResourceSpec, UtilizationShapePoint
from ..types import Extender

API_VERSION = "v1"
KIND = "Policy"
CONFIG_MAP_KIND = "ConfigMap"
CONFIG_MAP_KEY = "policy.cfg"
_NANO = 10**9


class LabelsFile(msgspec.Struct, frozen=True, rename="camel"):
    """Labels that pods of one service must share."""

    labels: tuple[str, ...] = ()


class LabelsPresenceFile(msgspec.Struct, frozen=True, rename="camel"):
    """Labels a node must have, or must not have."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgumentFile(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a predicate: exactly one member."""

    service_affinity: LabelsFile | None = None
    labels_presence: LabelsPresenceFile | None = None


class PredicateFile(msgspec.Struct, frozen=True, rename="camel"):
    """A predicate, by its name from before plugins."""

    name: str = ""
    argument: PredicateArgumentFile | None = None


class ServiceAntiAffinityFile(msgspec.Struct, frozen=True, rename="camel"):
    """The label to spread the pods of a service over."""

    label: str = ""


class LabelPreferenceFile(msgspec.Struct, frozen=True, rename="camel"):
    """A preferred, or disliked, label."""

    label: str = ""
    presence: bool = False


class RatioFile(msgspec.Struct, frozen=True, rename="camel"):
    """The arguments of RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgumentFile(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a priority: exactly one member."""

    service_anti_affinity: ServiceAntiAffinityFile | None = None
    label_preference: LabelPreferenceFile | None = None
    requested_to_capacity_ratio_arguments: RatioFile | None = None


class PriorityFile(msgspec.Struct, frozen=True, rename="camel"):
    """A priority function, by its name from before plugins."""

    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgumentFile | None = None


class LegacyExtender(Extender, frozen=True, rename="camel"):
    """An extender, as it was written then; its field names are case-insensitive."""

    enable_https: bool = False
    http_timeout_s: Int64 = field(default=0, name="httpTimeout")

    def to_extender(self) -> Extender:
        """Returns the extender as the current format has it."""
        members = structs.asdict(self) | {"http_timeout_s": self.http_timeout_s / _NANO}
        return Extender(**members)


class PolicyFile(msgspec.Struct, frozen=True, rename="camel"):
    """The file. Absent predicates differ from an empty list of them."""

    api_version: str = API_VERSION
    kind: str = KIND
    predicates: tuple[PredicateFile, ...] | None = None
    priorities: tuple[PriorityFile, ...] | None = None
    extenders: tuple[LegacyExtender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


class ConfigMapFile(msgspec.Struct, frozen=True, rename="camel"):
    """A ConfigMap with a configuration."""

    api_version: str = API_VERSION
    kind: str = CONFIG_MAP_KIND
    metadata: Any = None
    data: dict[str, Any] = field(default_factory=dict)
    binary_data: Any = None
    immutable: Any = None
