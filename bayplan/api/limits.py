"""Limits: LimitRange and ResourceQuota, which bound the requests of pods and claims of a namespace.

Mirrors k8s.io/api/core/v1/types.go, and the defaults of LimitRangeItem in pkg/apis/core/v1/defaults.go.
"""

from typing import ClassVar

from msgspec.structs import replace

from .meta import KubeObject, Wire
from .text.quantity import Quantity

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"
EXISTS = "Exists"


class LimitRangeItem(Wire, frozen=True):
    """The bounds and defaults for one type of object: containers, pods or claims."""

    type: str = ""
    max: dict[str, Quantity] | None = None
    min: dict[str, Quantity] | None = None
    default: dict[str, Quantity] | None = None
    default_request: dict[str, Quantity] | None = None
    max_limit_request_ratio: dict[str, Quantity] | None = None

    def with_defaults(self) -> "LimitRangeItem":
        """The item as the API server stores it: of containers, the maximum is the default limit, and the default limit
        or the minimum is the default request."""
        if self.type != CONTAINER:
            return self
        limits = {**(self.max or {}), **(self.default or {})}
        requests = {**(self.min or {}), **limits, **(self.default_request or {})}
        return replace(self, default=limits, default_request=requests)


class LimitRangeSpec(Wire, frozen=True):
    """The items of a limit range."""

    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(KubeObject, frozen=True):
    """Defaults and bounds for the containers, pods and claims of a namespace."""

    kind: ClassVar[str] = "LimitRange"

    spec: LimitRangeSpec = LimitRangeSpec()

    @property
    def items(self) -> tuple[LimitRangeItem, ...]:
        """The items of the range, with their defaults."""
        return tuple(item.with_defaults() for item in self.spec.limits or ())


class ScopeRequirement(Wire, frozen=True):
    """A condition on the objects that a quota counts."""

    scope_name: str = ""
    operator: str = EXISTS
    values: tuple[str, ...] | None = None


class ScopeSelector(Wire, frozen=True):
    """Conditions, all of which must hold."""

    match_expressions: tuple[ScopeRequirement, ...] | None = None


class ResourceQuotaSpec(Wire, frozen=True):
    """The limits of a quota, and the objects it counts."""

    hard: dict[str, Quantity] | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuota(KubeObject, frozen=True):
    """Bounds the sum of the requests of the objects of a namespace."""

    kind: ClassVar[str] = "ResourceQuota"

    spec: ResourceQuotaSpec = ResourceQuotaSpec()

    @property
    def hard(self) -> dict[str, Quantity]:
        """The limits by resource."""
        return self.spec.hard or {}

    @property
    def scopes(self) -> tuple[ScopeRequirement, ...]:
        """All conditions on the objects it counts."""
        named = (ScopeRequirement(scope_name=name) for name in self.spec.scopes or ())
        selector = self.spec.scope_selector
        return (*named, *((selector.match_expressions or ()) if selector is not None else ()))
