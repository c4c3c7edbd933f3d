"""Object tables: objects in rows of cells, as `kubectl get` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ..registry.resource_table import ApiResource
from ..store import Record
from .printer_columns import columns_of, custom_columns


def make_table(
    resource: ApiResource, records: Sequence[Record], now: datetime, include_object: str
) -> dict[str, Any]:
    """The table of the objects; each row has the object, its metadata or nothing besides its cells."""
    custom = resource.custom
    definitions, make = columns_of(resource.storage) if custom is None else custom_columns(custom)
    rows = []
    for record in records:
        tree = record.decode()
        row: dict[str, Any] = {"cells": list(make(tree, now.astimezone(UTC)))}
        if include_object == "Object":
            head = {"kind": resource.kind, "apiVersion": resource.api_version}
            row["object"] = {**head, **tree}
        elif include_object != "None":
            head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            row["object"] = {**head, "metadata": tree["metadata"]}
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    }
