"""Distributions: random numbers: fixed, from a list, exponential, lognormal, Pareto, or geometric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, inf, log
from random import Random
from typing import Any, TypeAlias

import msgspec

from ...errors import InputError
from ...manifests.document_fields import found

ParseNumber: TypeAlias = Callable[[Any, str], float]
"""Reads a number at a path: a quantity, a duration, or a count."""

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "values": (),
    "exponential": ("mean",),
    "lognormal": ("median", "sigma"),
    "pareto": ("min", "alpha"),
    "geometric": ("mean",),
}
"""The parameters of each kind; each but `values` may have a `max`, too."""
PLAIN = ("sigma", "alpha")
"""Parameters that are numbers, whatever the unit of the values is."""


class DrawnNumber(msgspec.Struct, frozen=True):
    """A distribution of numbers. A number above `highest` is drawn again, so that the tail is cut off, not piled up."""

    kind: str
    parameters: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    highest: float = inf

    def draw(self, random: Random) -> float:
        """A number."""
        for _ in range(1000):
            number = self._draw(random)
            if number <= self.highest:
                return number
        return self.highest

    def _draw(self, random: Random) -> float:
        match self.kind:
            case "values":
                return random.choices(self.parameters, self.weights or None)[0]
            case "exponential":
                return random.expovariate(1 / self.parameters[0])
            case "lognormal":
                median, sigma = self.parameters
                return median * exp(random.gauss(0.0, sigma))
            case "pareto":
                least, alpha = self.parameters
                return least * random.paretovariate(alpha)
            case _:
                return draw_geometric(random, self.parameters[0])


def draw_geometric(random: Random, mean: float) -> float:
    """A whole number of 1 or more with this mean."""
    if mean <= 1:
        return 1
    return 1 + int(log(1 - random.random()) / log(1 - 1 / mean))


def parse_distribution(value: Any, path: str, parse: ParseNumber) -> DrawnNumber:
    """The distribution in plain data: one number, or an object with a kind; raises InputError."""
    if not isinstance(value, Mapping):
        return DrawnNumber("values", (parse(value, path),))
    kinds = [name for name in value if name in PARAMETERS]
    allowed = {"values", "weights"} if kinds == ["values"] else {*kinds}
    if len(kinds) != 1 or {*value} - allowed:
        shown = ", ".join(map(str, value)) or "nothing"
        raise InputError(
            f"{path}: expected a number or one of {', '.join(PARAMETERS)}; got {shown}"
        )
    (kind,) = kinds
    if kind == "values":
        return _of_values(value, path, parse)
    return _of_parameters(kind, value[kind], f"{path}.{kind}", parse)


def _of_values(value: Mapping[str, Any], path: str, parse: ParseNumber) -> DrawnNumber:
    values, weights = value["values"], value.get("weights", [])
    if not isinstance(values, list) or not values:
        raise InputError(
            f"{path}.values: expected a list with at least one entry; got {found(values)}"
        )
    numbers = tuple(parse(each, f"{path}.values[{i}]") for i, each in enumerate(values))
    if not isinstance(weights, list) or (weights and len(weights) != len(values)):
        raise InputError(
            f"{path}.weights: expected as many numbers as values; got {found(weights)}"
        )
    shares = tuple(parse_number(each, f"{path}.weights[{i}]") for i, each in enumerate(weights))
    if shares and not sum(shares):
        raise InputError(f"{path}.weights: expected a number above 0; got none")
    return DrawnNumber("values", numbers, shares)


def _of_parameters(kind: str, value: Any, path: str, parse: ParseNumber) -> DrawnNumber:
    names = PARAMETERS[kind]
    if not isinstance(value, Mapping) or not {*names} <= {*value} <= {*names, "max"}:
        shown = ", ".join(map(str, value)) if isinstance(value, Mapping) else found(value)
        raise InputError(f"{path}: expected {', '.join(names)}, and max if wanted; got {shown}")
    read = {
        name: (parse_number if name in PLAIN else parse)(value[name], f"{path}.{name}")
        for name in value
    }
    for name in names:
        if not read[name] > 0:
            raise InputError(f"{path}.{name}: expected a number above 0; got {found(value[name])}")
    highest = read.get("max", inf)
    least = 1.0 if kind == "geometric" else read.get("min", 0.0)
    if highest < least:
        raise InputError(f"{path}.max: expected {least:g} or more; got {found(value['max'])}")
    return DrawnNumber(kind, tuple(read[name] for name in names), highest=highest)


def parse_number(value: Any, path: str) -> float:
    """A number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise InputError(f"{path}: expected a number that is not negative; got {found(value)}")
    return float(value)
