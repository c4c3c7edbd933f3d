"""Model: the document WorkloadModel, which describes nodes, jobs, their arrivals, and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...api.own_documents import API_VERSION
from ...api.text.durations import EXPECTED, parse_duration
from ...api.text.names import is_label_value, is_qualified_name
from ...api.text.quantity import parse_quantity
from ...errors import InputError
from ...manifests.sources import open_source
from ...manifests.timeline import found
from ...yaml_tree import YamlError, iter_trees
from .distributions import DrawnNumber, parse_distribution, parse_number
from .failures import FailureRate
from .processes import DAY_S, ArrivalProcess, Bursts, DayCurve

KIND = "WorkloadModel"
ONE = DrawnNumber("values", (1.0,))


class ModelNodes(msgspec.Struct, frozen=True):
    """Equal nodes, which are in the zones in turn."""

    count: int
    resources: Mapping[str, str]
    labels: Mapping[str, str] = {}
    zones: tuple[str, ...] = ()


class JobKind(msgspec.Struct, frozen=True):
    """Jobs that are drawn alike."""

    name: str
    requests: Mapping[str, DrawnNumber]
    """Of each pod: cpu in cores, memory in bytes, others in whole units."""
    duration: DrawnNumber | None = None
    """Seconds on the node; None means for ever."""
    share: float = 1.0
    """How frequent it is, as compared with other kinds."""
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
    """Of a node, and of a zone."""


def read_model(path: str | Path) -> WorkloadModel:
    """Read the one WorkloadModel in a file; raises InputError with file and field."""
    source = open_source(str(path))
    try:
        trees = [tree for tree in iter_trees(bytes(source.data[:])) if tree is not None]
    except YamlError as error:
        raise InputError(f"{source.name}: {error}") from None
    if len(trees) != 1:
        raise InputError(f"{source.name}: expected one document of kind {KIND}; got {len(trees)}")
    return parse_model(trees[0], source.name)


def parse_model(tree: Any, source: str) -> WorkloadModel:
    """The model in plain data."""
    try:
        return _model(tree)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _model(tree: Any) -> WorkloadModel:
    fields = _fields(
        tree, "", "apiVersion", "kind", "duration", "nodes", "arrivals", "jobs", "failures"
    )
    for name, expected in (("kind", KIND), ("apiVersion", API_VERSION)):
        if fields.get(name) != expected:
            raise InputError(f"{name}: expected {expected}; got {found(fields.get(name))}")
    failures = _fields(fields.get("failures", {}), "failures", "nodes", "zones")
    return WorkloadModel(
        _positive(_duration, fields.get("duration"), "duration"),
        tuple(_nodes(each, path) for path, each in _listed(fields.get("nodes"), "nodes")),
        _arrivals(fields.get("arrivals")),
        tuple(_job(each, path) for path, each in _listed(fields.get("jobs"), "jobs")),
        (
            _failure_rate(failures.get("nodes"), "failures.nodes"),
            _failure_rate(failures.get("zones"), "failures.zones"),
        ),
    )


def _nodes(tree: Any, path: str) -> ModelNodes:
    fields = _fields(tree, path, "count", "resources", "labels", "zones")
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
    fields = _fields(tree, "arrivals", "perHour", "diurnal", "bursts")
    curve = bursts = None
    if "diurnal" in fields:
        path = "arrivals.diurnal"
        given = _fields(fields["diurnal"], path, "swing", "peak", "period")
        swing = parse_number(given.get("swing"), f"{path}.swing")
        if swing > 1:
            raise InputError(f"{path}.swing: expected a number from 0 to 1; got {swing:g}")
        period_s = DAY_S
        if "period" in given:
            period_s = _positive(_duration, given["period"], f"{path}.period")
        curve = DayCurve(swing, _duration(given.get("peak", "0s"), f"{path}.peak"), period_s)
    if "bursts" in fields:
        path = "arrivals.bursts"
        given = _fields(fields["bursts"], path, "perHour", "jobs", "within")
        bursts = Bursts(
            _positive(parse_number, given.get("perHour"), f"{path}.perHour"),
            _positive(parse_number, given.get("jobs"), f"{path}.jobs"),
            _duration(given.get("within", "1m"), f"{path}.within"),
        )
    rate = parse_number(fields.get("perHour", 0), "arrivals.perHour")
    if not rate and bursts is None:
        raise InputError("arrivals: expected perHour above 0, or bursts; got neither")
    return ArrivalProcess(rate, curve, bursts)


def _job(tree: Any, path: str) -> JobKind:
    known = ("name", "share", "namespace", "pods", "gang", "duration", "requests", "priority")
    fields = _fields(tree, path, *known, "nodeSelector")
    requests = _mapping(fields.get("requests"), f"{path}.requests")
    duration = None
    if "duration" in fields:
        duration = parse_distribution(fields["duration"], f"{path}.duration", _duration)
    is_gang, priority = fields.get("gang", False), fields.get("priority")
    if not isinstance(is_gang, bool):
        raise InputError(f"{path}.gang: expected true or false; got {found(is_gang)}")
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
        is_gang,
        priority,
        _labels(fields.get("nodeSelector"), f"{path}.nodeSelector"),
    )


def _failure_rate(tree: Any, path: str) -> FailureRate | None:
    if tree is None:
        return None
    fields = _fields(tree, path, "mtbf", "repair")
    return FailureRate(
        _positive(_duration, fields.get("mtbf"), f"{path}.mtbf"),
        _positive(_duration, fields.get("repair", "1h"), f"{path}.repair"),
    )


def _fields(tree: Any, path: str, *names: str) -> Mapping[str, Any]:
    """An object that has no other fields."""
    where = f"{path}: " if path else ""
    if not isinstance(tree, Mapping):
        raise InputError(f"{where}expected an object with {', '.join(names)}; got {found(tree)}")
    for name in tree:
        if name not in names:
            inner = f"{path}.{name}" if path else str(name)
            raise InputError(f"{inner}: expected one of {', '.join(names)}")
    return tree


def _listed(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, list) or not value:
        raise InputError(f"{path}: expected a list with at least one entry; got {found(value)}")
    for i, entry in enumerate(value):
        yield f"{path}[{i}]", entry


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{path}: expected an object; got {found(value)}")
    for name in value:
        if not is_qualified_name(str(name)):
            raise InputError(
                f"{path}: expected names such as cpu or example.com/gpu; got {found(name)}"
            )
    return value


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


def _duration(value: Any, path: str) -> float:
    seconds = None if isinstance(value, bool) else parse_duration(str(value))
    if seconds is None:
        raise InputError(f"{path}: {EXPECTED}; got {found(value)}")
    return seconds


def _positive(parse: Callable[[Any, str], float], value: Any, path: str) -> float:
    number = parse(value, path)
    if not number > 0:
        raise InputError(f"{path}: expected a value above 0; got {found(value)}")
    return number
