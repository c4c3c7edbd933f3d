"""Pool documents: our own kind NodePool (bayplan.dev/v1). docs/pools.md describes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from ..api.devices import ResourceSlice, ResourceSliceSpec
from ..api.own_documents import API_VERSION
from ..api.resources import PODS
from ..api.taints import Taint
from ..api.text.cron import parse_cron
from ..api.text.durations import parse_duration
from ..api.text.name_faults import subdomain_faults
from ..api.wire.decode import decode_object
from ..config.decode import Duration, decode
from ..config.problems import Literally, Problems
from ..errors import DecodeError, one_of
from .amounts_text import check_labels, check_taints, read_amounts
from .instance_types import InstanceTable, InstanceType, read_price, read_rate
from .node_types import (
    CAPACITY_TYPE,
    DEFAULT_BOOT_S,
    DEFAULT_PODS,
    ON_DEMAND,
    POOL_LABEL,
    SPOT,
    NodeType,
)
from .pools import (
    CONSOLIDATION_POLICIES,
    GROUP_OPTIONS,
    REASONS,
    WHEN_UNDERUTILIZED,
    NodeBudget,
    NodePool,
)

NEVER = "Never"


class BudgetFile(msgspec.Struct, frozen=True, rename="camel"):
    """A disruption budget."""

    nodes: Any = "10%"
    reasons: tuple[str, ...] = ()
    schedule: str = ""
    duration: Duration | None = None


class DisruptionFile(msgspec.Struct, frozen=True, rename="camel"):
    """Times when nodes may be removed; Karpenter's fields."""

    consolidation_policy: str = WHEN_UNDERUTILIZED
    consolidate_after: str = "0s"
    budgets: tuple[BudgetFile, ...] | None = None


def read_disruption(file: DisruptionFile, path: str, problems: Problems) -> dict[str, Any]:
    """The fields of a pool about the removal of nodes."""
    if file.consolidation_policy not in CONSOLIDATION_POLICIES:
        expected = one_of(CONSOLIDATION_POLICIES)
        problems.add(f"{path}.consolidationPolicy", expected, file.consolidation_policy)
    found: dict[str, Any] = {
        "consolidation_policy": file.consolidation_policy,
        "consolidate_after_s": read_limit(
            file.consolidate_after, f"{path}.consolidateAfter", problems
        ),
    }
    if file.budgets is not None:
        found["budgets"] = tuple(
            _budget(budget, f"{path}.budgets[{i}]", problems)
            for i, budget in enumerate(file.budgets)
        )
    return found


def read_limit(text: str, path: str, problems: Problems) -> float | None:
    """A duration in seconds; None for `Never`."""
    if text == NEVER:
        return None
    seconds = parse_duration(text)
    if seconds is None:
        problems.add(path, "a duration such as 30s, 720h or Never", text)
    return seconds


def _budget(file: BudgetFile, path: str, problems: Problems) -> NodeBudget:
    nodes = str(file.nodes)
    share = nodes.removesuffix("%")
    is_number = share.isascii() and share.isdigit() and not isinstance(file.nodes, bool)
    if not is_number or (nodes.endswith("%") and int(share) > 100):
        problems.add(f"{path}.nodes", "a number of nodes, or a share such as 10%", file.nodes)
        nodes = "0"
    for i, reason in enumerate(file.reasons):
        if reason not in REASONS:
            problems.add(f"{path}.reasons[{i}]", one_of(REASONS), reason)
    if bool(file.schedule) != (file.duration is not None):
        missing = "duration" if file.schedule else "schedule"
        problems.add(f"{path}.{missing}", "schedule and duration together", Literally("one"))
    if file.schedule:
        try:
            parse_cron(file.schedule)
        except ValueError:
            problems.add(f"{path}.schedule", "a schedule in the notation of cron", file.schedule)
    return NodeBudget(nodes, file.reasons, file.schedule, file.duration)


KIND = "NodePool"


class DevicesFile(msgspec.Struct, frozen=True, rename="camel"):
    """Devices that one driver publishes: a part of a ResourceSlice."""

    driver: str = ""
    devices: tuple[Any, ...] = ()
    shared_counters: tuple[Any, ...] = ()


class NodeTypeFile(msgspec.Struct, frozen=True, rename="camel"):
    """One node type."""

    name: str = ""
    capacity: dict[str, Any] = {}
    allocatable: dict[str, Any] | None = None
    overhead: dict[str, Any] | None = None
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] | None = None
    price: Any = None
    spot: bool | None = None
    boot_time: Duration | None = None
    interruption_rate: Any = None
    devices: tuple[DevicesFile, ...] = ()
    csi_limits: dict[str, int] = {}


class PoolSpecFile(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a pool."""

    node_types: tuple[NodeTypeFile, ...] = ()
    instance_types: tuple[str, ...] = ()
    spot: bool = False
    minimum: int = 0
    maximum: int | None = None
    limits: dict[str, Any] = {}
    weight: int = 0
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] = ()
    boot_time: Duration | None = None
    interruption_rate: Any = None
    expire_after: str = NEVER
    disruption: DisruptionFile = DisruptionFile()
    autoscaling_options: dict[str, Any] = {}


class PoolMetadataFile(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a pool; fields that an API server adds have no effect."""

    name: str = ""
    namespace: str = ""
    labels: Any = None
    annotations: Any = None
    uid: Any = None
    resource_version: Any = None
    generation: Any = None
    creation_timestamp: Any = None
    managed_fields: Any = None
    owner_references: Any = None
    finalizers: Any = None


class PoolFile(msgspec.Struct, frozen=True, rename="camel"):
    """A document of kind NodePool."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: PoolMetadataFile = PoolMetadataFile()
    spec: PoolSpecFile = PoolSpecFile()


def read_pool_document(
    tree: Mapping[str, Any], table: InstanceTable, place: str, problems: Problems
) -> NodePool:
    """The pool of one document; problems are recorded with their paths."""
    file = decode(PoolFile, tree, "", problems)
    spec, name = file.spec, file.metadata.name
    check_pool_name(name, problems)
    check_labels(spec.labels, "spec.labels", problems)
    check_taints(spec.taints, "spec.taints", problems)
    check_taints(spec.startup_taints, "spec.startupTaints", problems)
    types = [
        *(
            _node_type(one, file, f"spec.nodeTypes[{i}]", problems)
            for i, one in enumerate(spec.node_types)
        ),
        *_listed_types(file, table, problems),
    ]
    _check_types(types, problems)
    _check_sizes(spec, problems)
    return NodePool(
        name,
        tuple(types),
        spec.minimum,
        spec.maximum,
        read_amounts(spec.limits, "spec.limits", problems),
        spec.weight,
        place=place,
        expire_after_s=read_limit(spec.expire_after, "spec.expireAfter", problems),
        group_options=dict(_group_options(spec.autoscaling_options, problems)),
        **read_disruption(spec.disruption, "spec.disruption", problems),
    )


def _group_options(given: Mapping[str, Any], problems: Problems) -> Iterator[tuple[str, float]]:
    """The options of Cluster Autoscaler for one group, as numbers and seconds."""
    for name, value in given.items():
        path, kind, text = f"spec.autoscalingOptions.{name}", GROUP_OPTIONS.get(name), str(value)
        found: float | None = None
        if kind is None:
            problems.add(path, one_of(tuple(GROUP_OPTIONS)), name)
            continue
        if kind == "duration":
            expected, found = "a duration such as 10m", parse_duration(text)
        elif kind == "boolean":
            expected = "true or false"
            found = {"true": 1.0, "false": 0.0}.get(text.lower())
        else:
            expected = "a share such as 0.5"
            found = float(text) if re.fullmatch(r"[0-9]*\.?[0-9]+", text) else None
        if found is None:
            problems.add(path, expected, value)
        else:
            yield name, found


def check_pool_name(name: str, problems: Problems) -> None:
    """Record a name that an API server would refuse."""
    if not name or subdomain_faults(name):
        problems.add("metadata.name", "a name of lower case letters, digits, - and .", name)


def _node_type(file: NodeTypeFile, pool: PoolFile, path: str, problems: Problems) -> NodeType:
    spec = pool.spec
    if not file.name:
        problems.add(f"{path}.name", "a name", "")
    capacity = read_amounts(file.capacity, f"{path}.capacity", problems)
    if not capacity.get("cpu") or not capacity.get("memory"):
        problems.add(f"{path}.capacity", "cpu and memory", file.capacity)
    capacity.setdefault(PODS, DEFAULT_PODS)
    check_labels(file.labels, f"{path}.labels", problems)
    check_taints(file.taints, f"{path}.taints", problems)
    is_spot = spec.spot if file.spot is None else file.spot
    rate = spec.interruption_rate if file.interruption_rate is None else file.interruption_rate
    rate_path = f"{path}.interruptionRate"
    boot_s = file.boot_time if file.boot_time is not None else spec.boot_time
    for driver, count in file.csi_limits.items():
        if count < 0:
            problems.add(f"{path}.csiLimits.{driver}", "0 or more volumes", count)
    return NodeType(
        file.name,
        capacity,
        _allocatable(file, capacity, path, problems),
        _pool_labels(pool, is_spot) | file.labels,
        spec.taints + file.taints,
        spec.startup_taints,
        (spec.zones if file.zones is None else file.zones) or ("",),
        read_price(file.price, f"{path}.price", problems),
        DEFAULT_BOOT_S if boot_s is None else boot_s,
        read_rate(0 if rate is None else rate, rate_path, problems),
        tuple(_slice(one, f"{path}.devices[{i}]", problems) for i, one in enumerate(file.devices)),
        dict(file.csi_limits),
    )


def _allocatable(
    file: NodeTypeFile, capacity: dict[str, int], path: str, problems: Problems
) -> dict[str, int]:
    """Amounts that pods can use: as written, or the capacity less the overhead."""
    if file.allocatable is not None and file.overhead is not None:
        problems.add(f"{path}.overhead", "allocatable or overhead", Literally("both"))
    if file.allocatable is not None:
        found = capacity | read_amounts(file.allocatable, f"{path}.allocatable", problems)
        for name, amount in found.items():
            if amount > capacity.get(name, 0):
                got = file.allocatable[name]
                problems.add(f"{path}.allocatable.{name}", "at most the capacity", got)
        return found
    overhead = read_amounts(file.overhead or {}, f"{path}.overhead", problems)
    for name, amount in overhead.items():
        if amount > capacity.get(name, 0):
            got = (file.overhead or {})[name]
            problems.add(f"{path}.overhead.{name}", "less than the capacity", got)
    return {name: max(amount - overhead.get(name, 0), 0) for name, amount in capacity.items()}


def _pool_labels(pool: PoolFile, is_spot: bool) -> dict[str, str]:
    capacity_type = {CAPACITY_TYPE: SPOT} if is_spot else {}
    return {POOL_LABEL: pool.metadata.name} | capacity_type | pool.spec.labels


def _slice(file: DevicesFile, path: str, problems: Problems) -> ResourceSliceSpec:
    """The devices as kube-apiserver would read them from a ResourceSlice."""
    spec = {
        "driver": file.driver,
        "nodeName": "node",
        "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
        "devices": list(file.devices),
        "sharedCounters": list(file.shared_counters) or None,
    }
    if not file.driver:
        problems.add(f"{path}.driver", "the name of a driver", "")
    tree = {
        "apiVersion": ResourceSlice.api_version,
        "kind": ResourceSlice.kind,
        "metadata": {"name": "devices"},
        "spec": spec,
    }
    try:
        found = decode_object(tree)
    except DecodeError as error:
        where = error.where.rpartition(": ")[2].removeprefix("spec.")
        expected, _, got = error.problem.removeprefix("expected ").partition("; got ")
        problems.add(f"{path}.{where}", expected, Literally(got or "another value"))
        return ResourceSliceSpec()
    assert isinstance(found, ResourceSlice), "the tree names the kind"
    return found.spec


def _listed_types(file: PoolFile, table: InstanceTable, problems: Problems) -> list[NodeType]:
    """The types of the instance table that the pool names, also by patterns such as `m5.*`."""
    spec, found = file.spec, []
    for i, pattern in enumerate(spec.instance_types):
        matches = [one for one in table.types.values() if fnmatchcase(one.name, pattern)]
        if not matches:
            known = f"a name in {table.source}" if table.source else "--instance-types CSV with it"
            problems.add(f"spec.instanceTypes[{i}]", known, pattern)
        found += [_from_table(one, file) for one in matches]
    if spec.spot and any(one.price is None for one in found):
        names = ", ".join(one.name for one in found if one.price is None)
        problems.add("spec.spot", "types with a spot_price", Literally(f"none of {names}"))
    return list({one.name: one for one in found}.values())


def _from_table(one: InstanceType, file: PoolFile) -> NodeType:
    spec = file.spec
    rate = spec.interruption_rate
    zones = tuple(zone for zone in one.zones if zone in spec.zones or not spec.zones)
    return NodeType(
        one.name,
        one.capacity,
        one.allocatable,
        one.known_labels() | _pool_labels(file, spec.spot),
        spec.taints,
        spec.startup_taints,
        zones or spec.zones or ("",),
        one.spot_price if spec.spot else one.price,
        one.boot_s if spec.boot_time is None else spec.boot_time,
        float(rate) if isinstance(rate, int | float) else one.interruption_rate,
    )


def _check_types(types: list[NodeType], problems: Problems) -> None:
    if not types and not problems:
        problems.add("spec.nodeTypes", "at least one node type", Literally("none"))
    seen: dict[tuple[str, str], NodeType] = {}
    for one in types:
        key = one.name, one.labels.get(CAPACITY_TYPE, ON_DEMAND)
        if one.name and seen.setdefault(key, one) is not one:
            problems.add("spec.nodeTypes", "each name once", one.name)


def _check_sizes(spec: PoolSpecFile, problems: Problems) -> None:
    if spec.minimum < 0:
        problems.add("spec.minimum", "0 or more nodes", spec.minimum)
    if spec.maximum is not None and spec.maximum < max(spec.minimum, 0):
        expected = (
            f"at least the minimum, {spec.minimum}" if spec.minimum > 0 else "0 or more nodes"
        )
        problems.add("spec.maximum", expected, spec.maximum)
    if not 0 <= spec.weight <= 100:
        problems.add("spec.weight", "a whole number from 0 to 100", spec.weight)
    if spec.interruption_rate is not None:
        read_rate(spec.interruption_rate, "spec.interruptionRate", problems)
