"""Instance types: a table of a cloud's types, with prices, as CSV.

Columns: name, cpu, memory, price, and optionally gpu (a number of nvidia.com/gpu), pods, zones (names with spaces
between them), spot_price, boot_time, interruption_rate; every other resource by its name, such as ephemeral-storage;
overhead_ and a resource, which is not allocatable. A column with a key of Kubernetes or a provider, such as
kubernetes.io/arch, or with label: before its key is a label. Any other column is refused. Lines that begin with # are
comments.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..api.resources import CPU, MEMORY, PODS, is_scalar
from ..api.text.durations import parse_duration
from ..config.problems import MAX_SHOWN, Literally, Problems
from ..errors import InputError
from ..manifests.sources import open_source
from .amounts_text import EPHEMERAL_STORAGE, check_labels, read_amount
from .node_types import ARCH, DEFAULT_BOOT_S, DEFAULT_PODS

GPU = "nvidia.com/gpu"
REQUIRED = ("name", "cpu", "memory", "price")
OPTIONAL = (
    "gpu",
    "pods",
    "zones",
    "spot_price",
    "boot_time",
    "interruption_rate",
)
OVERHEAD, LABEL = "overhead_", "label:"
LABEL_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "k8s.aws",
    "karpenter.sh",
    "bayplan.dev",
    "eks.amazonaws.com",
    "eksctl.io",
    "cloud.google.com",
    "azure.com",
)
"""Keys of these domains and of those below them are labels."""
_AWS_NAME = re.compile(
    r"(?P<family>(?P<category>[a-z]+)(?P<generation>\d+)[a-z0-9-]*)\.(?P<size>[\w-]+)"
)
_GRAVITON = re.compile(r"a1$|[a-z]+\d+[a-z]*g")
KARPENTER_AWS, EKS = "karpenter.k8s.aws", "eks.amazonaws.com"
"""Domains of labels of Karpenter's AWS provider, and of EKS Auto Mode."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One line of the table; amounts in the scheduler's units, prices per hour."""

    name: str
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    price: float | None
    spot_price: float | None = None
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    boot_s: float = DEFAULT_BOOT_S
    interruption_rate: float = 0.0

    def known_labels(self, domain: str = KARPENTER_AWS) -> dict[str, str]:
        """The labels of the table, and those of a provider on AWS that follow from name and size."""
        prefix = f"{domain}/instance-"
        found = {
            f"{prefix}cpu": str(self.capacity.get(CPU, 0) // 1000),
            f"{prefix}memory": str(self.capacity.get(MEMORY, 0) >> 20),
        }
        if GPU in self.capacity:
            found[f"{prefix}gpu-count"] = str(self.capacity[GPU])
        name = _AWS_NAME.fullmatch(self.name)
        if name is not None:
            found |= {f"{prefix}{part}": text for part, text in name.groupdict().items()}
            if _GRAVITON.match(name["family"]):
                found[ARCH] = "arm64"
        return found | dict(self.labels)


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """The types of a table by name, and the file that they are from."""

    types: Mapping[str, InstanceType] = field(default_factory=dict)
    source: str = ""

    def zones(self) -> tuple[str, ...]:
        """All zones that a type is in."""
        return tuple(dict.fromkeys(zone for one in self.types.values() for zone in one.zones))


NO_TABLE = InstanceTable()


def read_instance_table(path: str | Path) -> InstanceTable:
    """Read a table; raises InputError with a line for each problem."""
    source = open_source(str(path))
    try:
        text = bytes(source.data[:]).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source.name}: expected UTF-8 text; got {error.reason}") from None
    problems = Problems()
    types: dict[str, InstanceType] = {}
    for line, row in _rows(text, problems):
        found = _read_row(row, f"line {line}", problems)
        if found.name in types:
            problems.add(f"line {line}: name", "each name once", found.name)
        types[found.name] = found
    if not types and not problems:
        problems.add("", "a line for each instance type", Literally("none"))
    if problems:
        raise InputError("\n".join(f"{source.name}: {problem}" for problem in problems))
    return InstanceTable(types, source.name)


def _rows(text: str, problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines with their numbers, as cells by column."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    cells = list(csv.reader(line for _, line in lines))
    if not cells:
        return
    columns = [name.strip() for name in cells[0]]
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        where = f"line {lines[0][0]}"
        problems.add(
            where, f"columns {', '.join(REQUIRED)}", Literally(", ".join(columns)[:MAX_SHOWN])
        )
        return
    if _check_columns(columns, f"line {lines[0][0]}", problems):
        return
    for (number, _), row in zip(lines[1:], cells[1:], strict=False):
        if len(row) != len(columns):
            got = Literally(f"{len(row)} cells")
            problems.add(f"line {number}", f"{len(columns)} cells", got)
            continue
        yield number, {name: cell.strip() for name, cell in zip(columns, row, strict=True)}


def _check_columns(columns: Sequence[str], where: str, problems: Problems) -> bool:
    """Record columns that are neither known, nor a resource, nor a label, and those that occur twice."""
    before = len(problems)
    for i, name in enumerate(columns):
        path = f'{where}: column "{name}"'
        if name in columns[:i] or (name == "gpu" and GPU in columns):
            problems.add(path, "each column once", name)
        resource = name.removeprefix(OVERHEAD)
        is_overhead = resource != name and resource in (CPU, MEMORY, *columns)
        if name in (*REQUIRED, *OPTIONAL) or _label_key(name) or _is_resource(name):
            continue
        if not (is_overhead and (resource in (CPU, MEMORY) or _is_resource(resource))):
            expected = (
                "a resource such as ephemeral-storage or example.com/gpu, overhead_ and one that is a column, or a "
                "label such as kubernetes.io/arch or label:tier"
            )
            problems.add(path, expected, Literally("another column"))
    return len(problems) > before


def _is_resource(name: str) -> bool:
    """Whether a column has amounts of a resource besides cpu and memory."""
    return name == EPHEMERAL_STORAGE or (is_scalar(name) and not _label_key(name))


def _label_key(name: str) -> str:
    """The key of the label that a column is; empty if it is not a label."""
    if name.startswith(LABEL):
        return name.removeprefix(LABEL)
    return name if is_provider_key(name) else ""


def is_provider_key(name: str) -> bool:
    """Whether a key is of Kubernetes or a provider, which give it to nodes by their type."""
    domain, slash, _ = name.partition("/")
    is_label = any(domain == one or domain.endswith(f".{one}") for one in LABEL_DOMAINS)
    return bool(slash) and is_label


def _read_row(row: Mapping[str, str], where: str, problems: Problems) -> InstanceType:
    capacity = {
        CPU: _amount(CPU, row["cpu"], f"{where}: cpu", problems),
        MEMORY: _amount(MEMORY, row["memory"], f"{where}: memory", problems),
        PODS: _amount(PODS, row.get("pods") or str(DEFAULT_PODS), f"{where}: pods", problems),
    }
    gpus = read_amount(GPU, row.get("gpu") or "0", f"{where}: gpu", problems)
    if gpus:
        capacity[GPU] = gpus
    for name in filter(_is_resource, row):
        if row[name]:
            capacity[name] = _amount(name, row[name], f"{where}: {name}", problems)
    allocatable = dict(capacity)
    for name in capacity:
        column = f"{OVERHEAD}{name}"
        overhead = read_amount(name, row.get(column) or "0", f"{where}: {column}", problems)
        allocatable[name] = max(capacity[name] - overhead, 0)
    labels = {key: cell for name, cell in row.items() if cell and (key := _label_key(name))}
    check_labels(labels, where, problems)
    if not row["name"]:
        problems.add(f"{where}: name", "a name", "")
    return InstanceType(
        row["name"],
        capacity,
        allocatable,
        read_price(row["price"], f"{where}: price", problems),
        read_price(row.get("spot_price", ""), f"{where}: spot_price", problems),
        tuple(row.get("zones", "").replace(";", " ").replace("|", " ").split()),
        labels,
        _boot_time(row.get("boot_time", ""), f"{where}: boot_time", problems),
        read_rate(row.get("interruption_rate") or "0", f"{where}: interruption_rate", problems),
    )


def _amount(name: str, text: str, where: str, problems: Problems) -> int:
    amount = read_amount(name, text, where, problems)
    if name in (MEMORY, EPHEMERAL_STORAGE) and 0 < amount < 1 << 20:
        problems.add(where, "an amount with a unit, such as 16Gi", text)
    return amount


def read_price(value: object, where: str, problems: Problems) -> float | None:
    """A price per hour; None if there is none, or with a problem."""
    if value is None or value == "":
        return None
    price = _number(value)
    if price is None or not 0 < price < float("inf"):
        problems.add(where, "a price per hour above 0", value)
        return None
    return price


def read_rate(value: object, where: str, problems: Problems) -> float:
    """A number of interruptions per hour."""
    rate = _number(value)
    if rate is None or not 0 <= rate < float("inf"):
        problems.add(where, "interruptions per hour, 0 or more", value)
        return 0.0
    return rate


def _boot_time(text: str, where: str, problems: Problems) -> float:
    seconds = parse_duration(text) if text else DEFAULT_BOOT_S
    if seconds is None:
        problems.add(where, "a duration such as 90s", text)
        return DEFAULT_BOOT_S
    return seconds


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
