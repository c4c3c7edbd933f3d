"""Measured use: how much of cpu and memory pods really use, from metrics.k8s.io, Prometheus or a table.

Of several values in time the highest counts, of the containers of a pod together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from ..api.resources import CPU, MEMORY, allocatable_units
from ..errors import InputError
from .sources import open_source

Units: TypeAlias = dict[str, int]
"""Amounts by resource: cpu in milli, memory in bytes."""
PodName: TypeAlias = tuple[str, str]
RESOURCES = (CPU, MEMORY)
COLUMNS = ("namespace", "pod", "container", *RESOURCES)
PAUSE = "POD"
"""The container of a pod's sandbox in the metrics of the kubelet."""
EXPECTED = (
    "expected a PodMetricsList, the JSON of a Prometheus query, or CSV with the columns "
    f"{', '.join(COLUMNS)}"
)


class MeasuredUse:
    """The highest use of each container, and of each pod."""

    def __init__(self) -> None:
        self._at: dict[PodName, dict[str, dict[str, dict[float, int]]]] = {}
        """By pod, container and resource: the use by time."""

    def __bool__(self) -> bool:
        return bool(self._at)

    def add(
        self, pod: PodName, container: str, resource: str, amount: int, time_s: float = 0.0
    ) -> None:
        """Add a value in the scheduler's units; a second one of the same time counts if it is higher."""
        series = self._at.setdefault(pod, {}).setdefault(container, {}).setdefault(resource, {})
        series[time_s] = max(series.get(time_s, 0), amount)

    def of_pod(self, namespace: str, name: str) -> Units | None:
        """The highest use of the pod, its containers together; None if it was not measured."""
        containers = self._at.get((namespace, name))
        if containers is None:
            return None
        # The series without a container is the sum of the others.
        chosen = [one for name, one in containers.items() if name] or list(containers.values())
        found: Units = {}
        for resource in RESOURCES:
            sums: dict[float, int] = {}
            for series in chosen:
                for time_s, amount in series.get(resource, {}).items():
                    sums[time_s] = sums.get(time_s, 0) + amount
            if sums:
                found[resource] = max(sums.values())
        return found

    def of_containers(self, namespace: str, name: str) -> dict[str, Units]:
        """The highest use of each container of a pod; without names where only pods were measured."""
        containers = self._at.get((namespace, name), {})
        named = {word: one for word, one in containers.items() if word} or containers
        return {
            word: {resource: max(values.values()) for resource, values in one.items()}
            for word, one in named.items()
        }

    def pods(self) -> Iterable[PodName]:
        """The measured pods."""
        return self._at

    def by_pod(self) -> dict[PodName, Units]:
        """The highest use of each pod."""
        return {pod: self.of_pod(*pod) or {} for pod in self._at}


def read_use(texts: Iterable[str]) -> MeasuredUse:
    """Read files, each with `cpu=` or `memory=` in front where it does not name the resource; raises InputError."""
    use = MeasuredUse()
    for text in texts:
        resource, equals, path = text.partition("=")
        if not equals or resource not in RESOURCES:
            resource, path = "", text
        source = open_source(path)
        data = bytes(source.data[:])
        if data.lstrip()[:1] in (b"{", b"["):
            add_document(use, _decoded(data, source.name), source.name, resource)
        else:
            _add_table(use, data, source.name)
    if not use:
        raise InputError(f"--usage: expected the use of pods; got none in {', '.join(texts)}")
    return use


def _decoded(data: bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InputError(f"{place}: {EXPECTED}; got malformed JSON: {error}") from None


def add_document(use: MeasuredUse, tree: Any, place: str, resource: str = "") -> None:
    """Add the use in a PodMetricsList, or in the result of a Prometheus query."""
    if isinstance(tree, Mapping) and isinstance(tree.get("items"), list):
        for i, item in enumerate(tree["items"]):
            _add_pod_metrics(use, item, f"{place}: items[{i}]")
        return
    if isinstance(tree, Mapping) and isinstance(tree.get("data"), Mapping):
        tree = tree["data"].get("result")
    if not isinstance(tree, list):
        raise InputError(f"{place}: {EXPECTED}; got another document")
    for i, series in enumerate(tree):
        _add_series(use, series, f"{place}: result[{i}]", resource)


def _add_pod_metrics(use: MeasuredUse, item: Any, place: str) -> None:
    try:
        pod = item["metadata"]["namespace"], item["metadata"]["name"]
        containers = [(one["name"], dict(one["usage"])) for one in item["containers"]]
    except (KeyError, TypeError):
        raise InputError(f"{place}: expected metadata and containers with their usage") from None
    for name, usage in containers:
        for resource, amount in _units(usage, place).items():
            use.add(pod, name, resource, amount)


def _add_series(use: MeasuredUse, series: Any, place: str, resource: str) -> None:
    labels = series.get("metric") if isinstance(series, Mapping) else None
    if not isinstance(labels, Mapping):
        raise InputError(f"{place}: expected a series with its metric; got none")
    pod = labels.get("namespace"), labels.get("pod") or labels.get("pod_name")
    container = str(labels.get("container") or labels.get("container_name") or "")
    if not all(pod) or container == PAUSE:
        return  # of a node, a slice of the system, or a sandbox
    name = str(labels.get("resource") or labels.get("__name__") or "")
    found = resource or next((known for known in RESOURCES if known in name), "")
    if not found:
        raise InputError(
            f"{place}: expected a metric or a label resource that names cpu or memory; give it as --usage cpu=FILE"
        )
    values = series.get("values") or [series.get("value")]
    try:
        pairs = [(float(time_s), float(value)) for time_s, value in values]
    except (TypeError, ValueError):
        raise InputError(f"{place}: expected values as pairs of time and number") from None
    for time_s, value in pairs:
        if value >= 0:  # NaN marks a gap
            amount = round(value * 1000) if found == CPU else round(value)
            use.add((str(pod[0]), str(pod[1])), container, found, amount, time_s)


def _add_table(use: MeasuredUse, data: bytes, place: str) -> None:
    try:
        rows = csv.DictReader(io.StringIO(data.decode()))
        names = rows.fieldnames or []
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{place}: {EXPECTED}; got other data") from None
    wrong = [name for name in names if name not in COLUMNS]
    if wrong or "namespace" not in names or "pod" not in names:
        raise InputError(f"{place}: {EXPECTED}; got {', '.join(names) or 'nothing'}")
    for number, row in enumerate(rows, 2):
        amounts = {name: row[name] for name in RESOURCES if row.get(name)}
        pod = row["namespace"] or "", row["pod"] or ""
        if not all(pod):
            raise InputError(f"{place}: line {number}: expected a namespace and a pod; got none")
        for resource, amount in _units(amounts, f"{place}: line {number}").items():
            use.add(pod, row.get("container") or "", resource, amount)


def _units(amounts: Mapping[str, Any], place: str) -> Units:
    """Quantities in the scheduler's units; other resources than cpu and memory are left out."""
    known = {name: amount for name, amount in amounts.items() if name in RESOURCES}
    try:
        units = allocatable_units(known)
    except (ValueError, TypeError):
        raise InputError(
            f"{place}: expected quantities such as 250m and 1Gi; got {known}"
        ) from None
    return dict(units)
