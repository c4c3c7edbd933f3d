"""Faults of new objects, each as its field and message."""

from typing import Any

from bayplan.api.rules.object_validation import create_causes


def faults(storage: str, **fields: Any) -> list[str]:
    """The faults of an object named x with these fields besides its metadata."""
    tree = {"metadata": {"name": "x", "namespace": "default"}, **fields}
    return [f"{cause.field}: {cause.message}" for cause in create_causes(storage, tree)]
