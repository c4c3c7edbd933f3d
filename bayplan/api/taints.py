"""Taints: node taints and pod tolerations.

Mirrors `ToleratesTaint` of k8s.io/api/core/v1 and
staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go.
"""

import re
from collections.abc import Collection, Iterable

from .meta import Wire

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
TAINT_EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
HARD_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})
TOLERATION_OPERATORS = ("", "Exists", "Equal", "Lt", "Gt")

_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_INT64 = range(-(2**63), 2**63)


class Taint(Wire, frozen=True):
    """A mark on a node that pods must tolerate."""

    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        """The taint as kubectl writes it."""
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )


class Toleration(Wire, frozen=True):
    """A pod's toleration of taints; an empty key or effect matches all."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


def tolerates(toleration: Toleration, taint: Taint, comparison_operators: bool = False) -> bool:
    """Whether `toleration` covers `taint`.

    `comparison_operators` allows Lt and Gt (feature gate TaintTolerationComparisonOperators).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison_operators:
            return _compare(toleration, taint)
        case _:
            return False


def tolerated(
    taint: Taint, tolerations: Iterable[Toleration], comparison_operators: bool = False
) -> bool:
    """Whether one of `tolerations` covers `taint`."""
    return any(tolerates(t, taint, comparison_operators) for t in tolerations)


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = HARD_EFFECTS,
    comparison_operators: bool = False,
) -> Taint | None:
    """Return the first taint with one of `effects` that none of `tolerations` covers."""
    for taint in taints:
        if taint.effect in effects and not tolerated(taint, tolerations, comparison_operators):
            return taint
    return None


def _compare(toleration: Toleration, taint: Taint) -> bool:
    """Numeric comparison; False unless both sides are plain 64-bit integers."""
    bound, value = _parse_integer(toleration.value), _parse_integer(taint.value)
    if bound is None or value is None:
        return False
    return value < bound if toleration.operator == "Lt" else value > bound


def _parse_integer(text: str) -> int | None:
    if not _CANONICAL_INTEGER.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if number in _INT64 else None
