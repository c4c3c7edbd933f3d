"""Selection: which devices a request picks, judged once for each make of device.

Mirrors isSelectable and taintPreventsAllocation of
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...api.cel import CelError, SeenDevice, compile_expression
from ...api.devices import BLOCKING_EFFECTS, DeviceTaint
from ...api.dra import DeviceClass, DeviceSelector, DeviceToleration
from .pools import Offer


class Fault(NamedTuple):
    """An expression failed: the class it is of ("": the claim), which one it is there, and why."""

    of_class: str
    position: int
    problem: str

    def text(self, claim: str) -> str:
        """What went wrong, for people; `claim` is the key of the claim that asked."""
        whose = f"class {self.of_class}" if self.of_class else f"claim {claim}"
        return f"{whose}: selector #{self.position}: {self.problem}"


Judged = bool | Fault


class Selection:
    """The selectors of a class and of a request for its devices, and the taints the request tolerates."""

    __slots__ = ("_expressions", "_judged", "tolerations")

    def __init__(
        self,
        device_class: DeviceClass,
        selectors: Iterable[DeviceSelector],
        tolerations: tuple[DeviceToleration, ...],
    ) -> None:
        self._expressions = [
            *_numbered(device_class.name, device_class.spec.selectors or ()),
            *_numbered("", selectors),
        ]
        self.tolerations = tolerations
        self._judged: dict[tuple[str, bytes], Judged] = {}

    def judge(self, offer: Offer) -> Judged:
        """Whether the device is picked; expressions after the first that says no are not asked."""
        key = (offer.driver, offer.device.content)
        known = self._judged.get(key)
        if known is None:
            known = self._judged[key] = self._ask(offer)
        return known

    def _ask(self, offer: Offer) -> Judged:
        for of_class, position, text in self._expressions:
            try:
                expression = compile_expression(text)
            except CelError as error:
                return Fault(of_class, position, f"CEL compile error: {error}")
            try:
                seen = offer.memo.get(SeenDevice)
                if seen is None:
                    seen = offer.memo[SeenDevice] = SeenDevice(offer.device, offer.driver)
                if not expression.matches(seen):
                    return False
            except CelError as error:
                return Fault(of_class, position, f"CEL runtime error: {error}")
        return True

    def tolerates(self, offer: Offer) -> bool:
        """Whether no taint keeps the device from being used."""
        return not offer.is_blocked or all(
            any(_tolerates(toleration, taint) for toleration in self.tolerations)
            for taint in offer.device.taints or ()
            if taint.effect in BLOCKING_EFFECTS
        )


def _numbered(of_class: str, selectors: Iterable[DeviceSelector]) -> list[tuple[str, int, str]]:
    return [(of_class, i, s.cel.expression) for i, s in enumerate(selectors) if s.cel is not None]


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
