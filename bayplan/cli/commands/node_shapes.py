"""Node shapes: the sources of nodes of `bayplan up --like`: a type of a table, or amounts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...api.resources import CPU, MEMORY
from ...api.text.quantity import format_quantity
from ...apiserver import NodeModel
from ...apiserver.default_nodes import RESOURCES, ZONES
from ...config.problems import Problems
from ...errors import InputError
from ...planning import InstanceType, read_instance_table
from ...planning.amounts_text import read_amounts
from .example import find_example

TABLE = "plan/instance-types.csv"


def read_shape(text: str, table: Path | None) -> NodeModel:
    """The shape that `--like` names: a type of the table, the shipped one by default, or `cpu=4,memory=16Gi`.

    Raises InputError.
    """
    if "=" in text:
        return _of_amounts(text)
    types = read_instance_table(table or find_example(TABLE)).types
    found = types.get(text)
    if found is None:
        known = ", ".join(types)
        raise InputError(
            f'--like: expected a type of the table ({known}) or amounts such as cpu=4,memory=16Gi; got "{text}"'
        )
    return _of_type(found)


def _of_type(found: InstanceType) -> NodeModel:
    labels = {"node.kubernetes.io/instance-type": found.name, **found.labels}
    zones = found.zones or ZONES
    return NodeModel(_texts(found.capacity), _texts(found.allocatable), zones, labels)


def _of_amounts(text: str) -> NodeModel:
    given: dict[str, str] = {}
    problems = Problems()
    for part in text.split(","):
        name, _, amount = part.partition("=")
        if name.strip() in given:
            problems.add(name.strip(), "each resource once", amount)
        given[name.strip()] = amount.strip()
    amounts = read_amounts(given, "", problems)
    problems_text = [f"--like: {problem}" for problem in problems]
    missing = [name for name in (CPU, MEMORY) if not amounts.get(name)]
    if missing and not problems:
        problems_text = [f'--like: expected an amount of {" and ".join(missing)}; got "{text}"']
    if problems_text:
        raise InputError("\n".join(problems_text))
    capacity = {**RESOURCES, **_texts(amounts)}
    return NodeModel(capacity, capacity)


def _texts(amounts: Mapping[str, int]) -> dict[str, str]:
    found = {name: format_quantity(amount, name) for name, amount in amounts.items()}
    return {**{name: RESOURCES[name] for name in RESOURCES if name not in (CPU, MEMORY)}, **found}
