"""Model: the document WorkloadModel, which describes nodes, jobs, their arrivals, and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...api.text.name_faults import is_label_value, is_qualified_name
from ...api.text.quantity import parse_quantity
from ...api.wire.field_error import FieldError
from ...errors import InputError
from ...manifests.document_fields import (
    check_head,
    duration_of,
    entries_of,
    fields_of,
    flag_of,
    found,
    mapping_of,
)
from ...manifests.sources import read_document
from .distributions import DrawnNumber, parse_distribution, parse_number
from .processes import DAY_S, ArrivalProcess, Bursts, DayCurve, FailureRate

KIND = "WorkloadModel"
ONE = DrawnNumber("values", (1.0,))


class ModelNodes(msgspec.Struct, frozen=True):
    """Equal nodes, distributed over the zones in turn."""

    count: int
    resources: Mapping[str, str]
    labels: Mapping[str, str] = {}
    zones: tuple[str, ...] = ()


class JobKind(msgspec.Struct, frozen=True):
    """Jobs that are drawn alike."""

    name: str
    requests: Mapping[str, DrawnNumber]
    """Requests of each pod: cpu in cores, memory in bytes, others in whole units."""
    duration: DrawnNumber | None = None
    """Seconds on the node; None if it does not end."""
    share: float = 1.0
    """Relative frequency among the kinds."""
    namespace: str = "default"
    pods: DrawnNumber = ONE
    is_gang: bool = False
    """Whether its pods start together."""
    priority: int | None = None
    node_selector: Mapping[str, str] = {}


class WorkloadModel(msgspec.Struct, frozen=True):
    """A workload from which any number of workloads are drawn."""

    duration_s: float
    """Time in which jobs arrive and nodes fail."""
    nodes: tuple[ModelNodes, ...]
    arrivals: ArrivalProcess
    jobs: tuple[JobKind, ...]
    failures: tuple[FailureRate | None, FailureRate | None] = (None, None)
    """Failure rates of a node, and of a zone."""


def read_model(path: str | Path) -> WorkloadModel:
    """Read the one WorkloadModel in a file; raises InputError with file and field."""
    return parse_model(*read_document(path, f"document of kind {KIND}"))


def parse_model(tree: Any, source: str) -> WorkloadModel:
    """The model in plain data."""
    try:
        return _model(tree)
    except (InputError, FieldError) as error:
        raise InputError(f"{source}: {error}") from None


def _model(tree: Any) -> WorkloadModel:
    fields = fields_of(
        tree, "", "apiVersion", "kind", "duration", "nodes", "arrivals", "jobs", "failures"
    )
    check_head(fields, KIND)
    failures = fields_of(fields.get("failures", {}), "failures", "nodes", "zones")
    return WorkloadModel(
        _positive(duration_of, fields.get("duration"), "duration"),
        tuple(_nodes(each, path) for path, each in entries_of(fields.get("nodes"), "nodes")),
        _arrivals(fields.get("arrivals")),
        tuple(_job(each, path) for path, each in entries_of(fields.get("jobs"), "jobs")),
        (
            _failure_rate(failures.get("nodes"), "failures.nodes"),
            _failure_rate(failures.get("zones"), "failures.zones"),
        ),
    )


def _nodes(tree: Any, path: str) -> ModelNodes:
    fields = fields_of(tree, path, "count", "resources", "labels", "zones")
    resources = _mapping(fields.get("resources"), f"{path}.resources")
    if not resources:
        raise InputError(f"{path}.resources: expected amounts; got none")
    for name, amount in resources.items():
        _quantity(amount, f"{path}.resources.{name}")
    zones = fields.get("zones", [])
    if not isinstance(zones, list) or not all(isinstance(each, str) for each in zones):
        raise InputError(f"{path}.zones: expected a list of texts; got {found(zones)}")
    return ModelNodes(
        int(_positive(_whole, fields.get("count"), f"{path}.count")),
        {name: str(amount) for name, amount in resources.items()},
        _labels(fields.get("labels"), f"{path}.labels"),
        tuple(zones),
    )


def _arrivals(tree: Any) -> ArrivalProcess:
    fields = fields_of(tree, "arrivals", "perHour", "diurnal", "bursts")
    curve = bursts = None
    if "diurnal" in fields:
        path = "arrivals.diurnal"
        given = fields_of(fields["diurnal"], path, "swing", "peak", "period")
        swing = parse_number(given.get("swing"), f"{path}.swing")
        if swing > 1:
            raise InputError(f"{path}.swing: expected a number from 0 to 1; got {swing:g}")
        period_s = DAY_S
        if "period" in given:
            period_s = _positive(duration_of, given["period"], f"{path}.period")
        curve = DayCurve(swing, duration_of(given.get("peak", "0s"), f"{path}.peak"), period_s)
    if "bursts" in fields:
        path = "arrivals.bursts"
        given = fields_of(fields["bursts"], path, "perHour", "jobs", "within")
        bursts = Bursts(
            _positive(parse_number, given.get("perHour"), f"{path}.perHour"),
            _positive(parse_number, given.get("jobs"), f"{path}.jobs"),
            duration_of(given.get("within", "1m"), f"{path}.within"),
        )
    rate = parse_number(fields.get("perHour", 0), "arrivals.perHour")
    if not rate and bursts is None:
        raise InputError("arrivals: expected perHour above 0, or bursts; got neither")
    return ArrivalProcess(rate, curve, bursts)


def _job(tree: Any, path: str) -> JobKind:
    known = ("name", "share", "namespace", "pods", "gang", "duration", "requests", "priority")
    fields = fields_of(tree, path, *known, "nodeSelector")
    requests = _mapping(fields.get("requests"), f"{path}.requests")
    duration = None
    if "duration" in fields:
        duration = parse_distribution(fields["duration"], f"{path}.duration", duration_of)
    priority = fields.get("priority")
    if priority is not None and (isinstance(priority, bool) or not isinstance(priority, int)):
        raise InputError(f"{path}.priority: expected a whole number; got {found(priority)}")
    return JobKind(
        _name(fields.get("name"), f"{path}.name"),
        {
            name: parse_distribution(each, f"{path}.requests.{name}", _quantity)
            for name, each in requests.items()
        },
        duration,
        _positive(parse_number, fields.get("share", 1), f"{path}.share"),
        _name(fields.get("namespace", "default"), f"{path}.namespace"),
        parse_distribution(fields.get("pods", 1), f"{path}.pods", _whole),
        flag_of(fields.get("gang", False), f"{path}.gang"),
        priority,
        _labels(fields.get("nodeSelector"), f"{path}.nodeSelector"),
    )


def _failure_rate(tree: Any, path: str) -> FailureRate | None:
    if tree is None:
        return None
    fields = fields_of(tree, path, "mtbf", "repair")
    return FailureRate(
        _positive(duration_of, fields.get("mtbf"), f"{path}.mtbf"),
        _positive(duration_of, fields.get("repair", "1h"), f"{path}.repair"),
    )


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    for name in mapping_of(value, path):
        if not is_qualified_name(str(name)):
            raise InputError(
                f"{path}: expected names such as cpu or example.com/gpu; got {found(name)}"
            )
    return mapping_of(value, path)


def _labels(value: Any, path: str) -> dict[str, str]:
    labels = _mapping(value, path)
    for name, text in labels.items():
        if not isinstance(text, str) or not is_label_value(text):
            raise InputError(f"{path}.{name}: expected the value of a label; got {found(text)}")
    return dict(labels)


def _name(value: Any, path: str) -> str:
    is_right = isinstance(value, str) and value.islower() and is_label_value(value)
    if not is_right or "_" in value or "." in value:
        raise InputError(
            f"{path}: expected a name of small letters, digits and -; got {found(value)}"
        )
    return str(value)


def _whole(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{path}: expected a whole number of 1 or more; got {found(value)}")
    return float(value)


def _quantity(value: Any, path: str) -> float:
    """A quantity in units: cores, bytes, pieces."""
    try:
        nano = -1 if isinstance(value, bool) or value is None else parse_quantity(str(value))
    except ValueError:
        nano = -1
    if nano < 0:
        raise InputError(f"{path}: expected a quantity such as 250m or 1.5Gi; got {found(value)}")
    return nano / 1e9


def _positive(parse: Callable[[Any, str], float], value: Any, path: str) -> float:
    number = parse(value, path)
    if not number > 0:
        raise InputError(f"{path}: expected a value above 0; got {found(value)}")
    return number
