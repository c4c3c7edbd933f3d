"""Quantity: exact amounts such as `250m`, `1.5Gi` or `2e3`.

Mirrors staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go. The finest amount that
Kubernetes keeps is a billionth, so an amount is an integer number of nano-units: sums are exact,
and a value is rounded (always up) once, when it is read.
"""

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

Quantity: TypeAlias = str | int | float | None
"""A quantity as in a manifest; null counts as zero."""

NANO = 10**9
NANO_PER_MILLI = 10**6
MAX_INT64 = 2**63 - 1

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?",
    re.ASCII,
)
_BYTES = ("memory", "ephemeral-storage", "storage")
# Beyond these exponents the amount is out of range for any digits.
_HUGE_EXPONENT = 40
_MAX_DIGITS = 400


def parse_quantity(quantity: Quantity) -> int:
    """Return the exact amount in nano-units; raise ValueError when it is not a quantity."""
    if type(quantity) is str:
        return _parse_text(quantity)
    if type(quantity) is int:
        return quantity * NANO
    if type(quantity) is float:
        return _parse_text(repr(quantity))
    if quantity is None:
        return 0
    raise ValueError(f"{quantity!r} is not a quantity")


def parse_value(quantity: Quantity) -> int:
    """Return the amount in whole units, rounded up."""
    return nano_to_value(parse_quantity(quantity))


def nano_to_value(nano: int) -> int:
    """Whole units, rounded away from zero and clamped to int64."""
    return _round_away(nano, NANO)


def nano_to_milli(nano: int) -> int:
    """Thousandths, rounded away from zero and clamped to int64."""
    return _round_away(nano, NANO_PER_MILLI)


def format_quantity(value: int, resource: str) -> str:
    """Format an amount: `250m` for cpu (given in milli), `1536Mi` for bytes."""
    if resource == "cpu":
        return str(value // 1000) if value % 1000 == 0 else f"{value}m"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _binary(value * NANO) if value else "0"
    return str(value)


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> int:
    match = _PATTERN.fullmatch(text.strip())
    if match is None or not (match["whole"] or match["part"]) or len(text) > _MAX_DIGITS:
        raise ValueError(f'"{text}" is not a quantity')
    part = match["part"] or ""
    digits = int((match["whole"] + part) or "0")
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        amount = -((-digits * NANO << _BINARY[suffix]) // _power_of_ten(len(part)))
        amount = min(amount, MAX_INT64 * NANO)
    else:
        exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
        amount = _scale(digits, exponent + 9 - len(part))
    return -amount if match["sign"] == "-" else amount


def _scale(digits: int, exponent: int) -> int:
    """`digits` times ten to the `exponent`, rounded up to an integer."""
    if digits == 0:
        return 0
    if exponent >= 0:
        return digits * _power_of_ten(min(exponent, _HUGE_EXPONENT))
    if -exponent > _MAX_DIGITS:
        return 1
    return -(-digits // _power_of_ten(-exponent))


def _power_of_ten(exponent: int) -> int:
    assert exponent >= 0, "a negative power would be a float"
    power: int = 10**exponent
    return power


def _round_away(nano: int, unit: int) -> int:
    """`nano` in `unit`s, rounded away from zero and clamped to int64."""
    size = min(-(-abs(nano) // unit), MAX_INT64)
    return -size if nano < 0 else size


BINARY, DECIMAL, EXPONENT = "binary", "decimal", "exponent"

_BINARY_SUFFIXES = ("", *_BINARY)
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
    """Notation of the quantity: binary, decimal or with an exponent."""
    if not isinstance(quantity, str):
        return DECIMAL
    text = quantity.strip()
    if text.endswith("i"):
        return BINARY
    digits = text.lstrip("+-")
    return EXPONENT if "e" in digits.lower() and not digits.endswith(("E", "e")) else DECIMAL


def _binary(nano: int) -> str:
    """The amount, which is not zero, with the largest binary suffix that divides it."""
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


def is_amount(text: str) -> bool:
    """Whether the text is a quantity that is not negative."""
    try:
        return parse_quantity(text) >= 0
    except ValueError:
        return False
