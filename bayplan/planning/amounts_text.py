"""Amounts as text: quantities, labels and taints of pool documents, each fault with its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.resources import CPU, MEMORY, PODS, is_scalar, to_unit
from ..api.taints import TAINT_EFFECTS, Taint
from ..api.text.name_faults import key_faults, value_faults
from ..api.text.quantity import parse_quantity
from ..config.problems import Literally, Problems, child
from ..errors import one_of

EPHEMERAL_STORAGE = "ephemeral-storage"
COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
QUANTITY = "an amount such as 4, 500m or 16Gi"


def read_amount(name: str, value: Any, path: str, problems: Problems) -> int:
    """An amount of a resource in the scheduler's unit; 0 with a problem if it is not one."""
    try:
        amount = to_unit(name, parse_quantity(value))
    except ValueError:
        amount = -1
    if amount < 0 or isinstance(value, bool):
        problems.add(path, QUANTITY, value)
        return 0
    return amount


def read_amounts(values: Mapping[str, Any], path: str, problems: Problems) -> dict[str, int]:
    """Amounts by resource."""
    found = {}
    for name, value in values.items():
        where = child(path, name)
        if name not in COUNTED and not is_scalar(name):
            expected = "cpu, memory, ephemeral-storage, pods or a name such as example.com/gpu"
            problems.add(where, expected, Literally("another resource"))
            continue
        found[name] = read_amount(name, value, where, problems)
    return found


def check_labels(labels: Mapping[str, str], path: str, problems: Problems) -> None:
    """Record what Kubernetes would refuse as labels."""
    for key, value in labels.items():
        for fault in key_faults(key):
            problems.add(child(path, key), "a label", Literally(f"a key of which {fault}"))
        for fault in value_faults(value):
            problems.add(child(path, key), "a label value", Literally(f'"{value}": {fault}'))


def check_taints(taints: Sequence[Taint], path: str, problems: Problems) -> None:
    """Record what Kubernetes would refuse as taints."""
    for i, taint in enumerate(taints):
        if not taint.key or key_faults(taint.key):
            problems.add(f"{path}[{i}].key", "a label key", taint.key)
        if taint.effect not in TAINT_EFFECTS:
            problems.add(f"{path}[{i}].effect", one_of(TAINT_EFFECTS), taint.effect)
