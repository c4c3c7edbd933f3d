"""Gangs for tests of their lives."""

from typing import Any

from bayplan.api.pod import Pod
from bayplan.api.pod_groups import MIN_AVAILABLE_LABEL, NAME_LABEL
from bayplan.testing.builders import make_node, make_pod

CPU = "1"


def member(group: str, number: int, needed: int, **wishes: Any) -> Pod:
    labels = {NAME_LABEL: group, MIN_AVAILABLE_LABEL: str(needed)}
    return make_pod(f"{group}-{number}", labels=labels, **{"cpu": CPU, **wishes})


def gang(group: str, size: int, needed: int | None = None, **wishes: Any) -> list[Pod]:
    return [member(group, number, needed or size, **wishes) for number in range(size)]


def nodes(count: int, cpu: int = 10, **offers: Any) -> list[Any]:
    return [make_node(f"n{number:02}", cpu=str(cpu), **offers) for number in range(count)]
