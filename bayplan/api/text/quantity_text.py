"""Quantity text: exact amounts in the notation that Kubernetes prints.

Mirrors String and Add of staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go: a sum has the notation (binary,
decimal, exponent) of its first addend that is not zero.
"""

from typing import NamedTuple

from .quantity import NANO, Quantity, parse_quantity

BINARY, DECIMAL, EXPONENT = "binary", "decimal", "exponent"

_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")


class ExactAmount(NamedTuple):
    """An amount in nano-units, and its notation."""

    nano: int
    notation: str = DECIMAL

    @classmethod
    def of(cls, quantity: Quantity) -> "ExactAmount":
        """The amount of a quantity in a manifest; raises ValueError when it is not one."""
        return cls(parse_quantity(quantity), notation_of(quantity))

    def plus(self, other: "ExactAmount") -> "ExactAmount":
        """The sum of both."""
        notation = self.notation if self.nano else other.notation
        return ExactAmount(self.nano + other.nano, notation)

    def minus(self, other: "ExactAmount") -> "ExactAmount":
        """The difference of both."""
        return ExactAmount(self.nano - other.nano, self.notation)

    def __str__(self) -> str:
        if self.notation == BINARY and abs(self.nano) >= 1024 * NANO:
            return _binary(self.nano)
        return _decimal(self.nano, self.notation == EXPONENT)


def notation_of(quantity: Quantity) -> str:
    """How the quantity is written."""
    if not isinstance(quantity, str):
        return DECIMAL
    text = quantity.strip()
    if text.endswith("i"):
        return BINARY
    digits = text.lstrip("+-")
    return EXPONENT if "e" in digits.lower() and not digits.endswith(("E", "e")) else DECIMAL


def _binary(nano: int) -> str:
    value, step = -(-abs(nano) // NANO), 0
    while value % 1024 == 0 and step < len(_BINARY_SUFFIXES) - 1:
        value, step = value // 1024, step + 1
    return f"{'-' if nano < 0 else ''}{value}{_BINARY_SUFFIXES[step]}"


def _decimal(nano: int, as_exponent: bool) -> str:
    if not nano:
        return "0"
    value, step = abs(nano), 0
    while value % 1000 == 0 and step < len(_DECIMAL_SUFFIXES) - 1:
        value, step = value // 1000, step + 1
    exponent = 3 * step - 9
    suffix = _DECIMAL_SUFFIXES[step]
    if as_exponent:
        suffix = f"e{exponent}" if exponent else ""
    return f"{'-' if nano < 0 else ''}{value}{suffix}"
