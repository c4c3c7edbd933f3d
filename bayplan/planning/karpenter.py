"""Karpenter: NodePools of karpenter.sh/v1, matched against a table of instance types.

The table stands for the offer of the cloud provider. A type of the pool is an instance type with a capacity type whose
labels meet all requirements. Parts that are not modelled are in the notes of the pool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any, TypeAlias

import msgspec

from ..api.node import ZONE
from ..api.taints import Taint
from ..config.decode import decode
from ..config.problems import Literally, Problems
from ..errors import one_of
from .amounts_text import check_labels, check_taints, read_amounts
from .instance_types import EKS, KARPENTER_AWS, InstanceTable, InstanceType, is_provider_key
from .node_types import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    PLATFORM,
    POOL_LABEL,
    SPOT,
    NodeType,
)
from .pool_documents import (
    NEVER,
    DisruptionFile,
    PoolMetadataFile,
    check_pool_name,
    read_disruption,
    read_limit,
)
from .pools import NodePool

KARPENTER_GROUP = "karpenter.sh/"
KARPENTER_V1 = f"{KARPENTER_GROUP}v1"
NODE_POOL_LABEL = "karpenter.sh/nodepool"
DEFAULT_EXPIRY = "720h"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_BOUNDS = ("Gt", "Lt", "Gte", "Lte")
_NEED_A_LABEL = ("In", "Exists", *_BOUNDS)
MAX_CHOICES = 64
"""Combinations of label values at most, of a pool whose requirements leave several open."""


class RequirementFile(msgspec.Struct, frozen=True, rename="camel"):
    """A condition on the labels of a node."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    min_values: int | None = None

    def __str__(self) -> str:
        return f"{self.key} {self.operator} {', '.join(self.values)}".rstrip()

    def is_met(self, value: str | None) -> bool:
        """Whether a label with this value, or none, meets it."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if value is None or not value.isascii() or not value.isdigit():
            return False
        number, bound = int(value), int(self.values[0])
        return {
            "Gt": number > bound,
            "Lt": number < bound,
            "Gte": number >= bound,
            "Lte": number <= bound,
        }[self.operator]


class TemplateMetadataFile(msgspec.Struct, frozen=True, rename="camel"):
    """The labels of new nodes; the only annotation with an effect is not modelled."""

    labels: dict[str, str] = {}
    annotations: Any = None


class TemplateSpecFile(msgspec.Struct, frozen=True, rename="camel"):
    """Properties of new nodes."""

    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requirements: tuple[RequirementFile, ...] = ()
    node_class_ref: Any = None
    expire_after: str = DEFAULT_EXPIRY
    termination_grace_period: Any = None


class NodeTemplateFile(msgspec.Struct, frozen=True, rename="camel"):
    """Metadata and spec of new nodes."""

    metadata: TemplateMetadataFile = TemplateMetadataFile()
    spec: TemplateSpecFile = TemplateSpecFile()


class KarpenterSpecFile(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a Karpenter pool."""

    template: NodeTemplateFile = NodeTemplateFile()
    disruption: DisruptionFile = DisruptionFile()
    limits: dict[str, Any] = {}
    weight: int = 0
    replicas: int | None = None


class KarpenterPoolFile(msgspec.Struct, frozen=True, rename="camel"):
    """A NodePool of Karpenter."""

    api_version: str = KARPENTER_V1
    kind: str = "NodePool"
    metadata: PoolMetadataFile = PoolMetadataFile()
    spec: KarpenterSpecFile = KarpenterSpecFile()
    status: Any = None


NamedValues: TypeAlias = Mapping[str, Collection[str]]
"""By label key: the values that pods name in their node selectors and affinity."""


def read_karpenter_pool(
    tree: Mapping[str, Any],
    table: InstanceTable,
    named: NamedValues,
    place: str,
    problems: Problems,
) -> NodePool:
    """The pool of one document; problems are recorded with their paths.

    A label that only requirements have gets each value that they list, or that pods name.
    """
    file = decode(KarpenterPoolFile, tree, "", problems)
    spec, template = file.spec, file.spec.template
    check_pool_name(file.metadata.name, problems)
    path = "spec.template"
    check_labels(template.metadata.labels, f"{path}.metadata.labels", problems)
    check_taints(template.spec.taints, f"{path}.spec.taints", problems)
    check_taints(template.spec.startup_taints, f"{path}.spec.startupTaints", problems)
    limits = dict(spec.limits)
    nodes = limits.pop("nodes", None)
    if nodes is not None and (not str(nodes).isascii() or not str(nodes).isdigit()):
        problems.add("spec.limits.nodes", "a number of nodes", nodes)
        nodes = None
    is_right = _check_requirements(template.spec.requirements, problems)
    types = list(_matching_types(file, table, named)) if is_right else []
    if is_right and not types:
        if table.types:
            got = Literally(f"none in {table.source} that meets all{_unmet(file, table)}")
        else:
            got = Literally("no table; give it with --instance-types CSV")
        problems.add("spec.template.spec.requirements", "an instance type that meets them", got)
    return NodePool(
        file.metadata.name,
        tuple(types),
        spec.replicas or 0,
        spec.replicas if spec.replicas is not None else None if nodes is None else int(nodes),
        read_amounts(limits, "spec.limits", problems),
        spec.weight,
        expire_after_s=read_limit(
            template.spec.expire_after or NEVER, f"{path}.spec.expireAfter", problems
        ),
        place=place,
        notes=tuple(_not_modelled(file, table, named)),
        **read_disruption(spec.disruption, "spec.disruption", problems),
    )


def _check_requirements(requirements: tuple[RequirementFile, ...], problems: Problems) -> bool:
    before = len(problems)
    for i, one in enumerate(requirements):
        path = f"spec.template.spec.requirements[{i}]"
        if not one.key:
            problems.add(f"{path}.key", "a label key", one.key)
        if one.operator not in OPERATORS:
            problems.add(f"{path}.operator", one_of(OPERATORS), one.operator)
        elif one.operator in ("In", "NotIn") and not one.values:
            problems.add(f"{path}.values", "at least one value", one.values)
        elif one.operator in ("Exists", "DoesNotExist") and one.values:
            problems.add(f"{path}.values", f"no values with {one.operator}", one.values)
        elif one.operator in _BOUNDS and not (
            len(one.values) == 1 and one.values[0].isascii() and one.values[0].isdigit()
        ):
            problems.add(f"{path}.values", f"one whole number with {one.operator}", one.values)
    return len(problems) == before


def _matching_types(
    file: KarpenterPoolFile, table: InstanceTable, named: NamedValues
) -> Iterator[NodeType]:
    """The instance types with a capacity type that meet all requirements, in the zones that do."""
    for one, labels, price in _offers(file, table, named):
        zones = tuple(zone for zone in one.zones or ("",) if _meets(file, labels, zone))
        if zones:
            names = {NODE_POOL_LABEL: file.metadata.name, POOL_LABEL: file.metadata.name}
            yield _node_type(one, file, labels | names, zones, price)


def _offers(
    file: KarpenterPoolFile, table: InstanceTable, named: NamedValues
) -> Iterator[tuple[InstanceType, dict[str, str], float | None]]:
    """Each instance type on demand, and as spot if it can be had so, with the labels of its nodes and its price."""
    choices = [*_label_choices(file, table, named)]
    for one in table.types.values():
        offers = product(((ON_DEMAND, one.price), (SPOT, one.spot_price)), choices)
        for (capacity_type, price), chosen in offers:
            if price is None and capacity_type == SPOT:
                continue
            labels = {
                **PLATFORM,
                INSTANCE_TYPE: one.name,
                CAPACITY_TYPE: capacity_type,
                **one.known_labels(_label_domain(file)),
                **chosen,
                **file.spec.template.metadata.labels,
            }
            yield one, labels, price


def _unmet(file: KarpenterPoolFile, table: InstanceTable) -> str:
    """The requirements that no instance type meets, or those that the nearest type does not meet, as the end of a
    message.
    """
    requirements = file.spec.template.spec.requirements
    missed = {
        (one.name, labels[CAPACITY_TYPE]): [
            each for each in requirements if not _allows(each, one, labels)
        ]
        for one, labels, _ in _offers(file, table, {})
    }
    found = [each for each in requirements if all(each in unmet for unmet in missed.values())]
    if found:
        return f"; none meets {'; nor '.join(map(str, found))}"
    (name, capacity_type), unmet = min(missed.items(), key=lambda item: len(item[1]))
    rest = "; ".join(map(str, unmet)) or "that no zone of it meets each"
    return f"; {name} ({capacity_type}) meets all but {rest}"


def _allows(requirement: RequirementFile, one: InstanceType, labels: Mapping[str, str]) -> bool:
    """Whether a type meets a requirement, in one of its zones if it is on zones."""
    if requirement.key == ZONE and one.zones:
        return any(requirement.is_met(zone) for zone in one.zones)
    return requirement.is_met(labels.get(requirement.key))


def _meets(file: KarpenterPoolFile, labels: Mapping[str, str], zone: str) -> bool:
    known = {**labels, ZONE: zone} if zone else labels
    return all(one.is_met(known.get(one.key)) for one in file.spec.template.spec.requirements)


def _node_type(
    one: InstanceType,
    file: KarpenterPoolFile,
    labels: dict[str, str],
    zones: tuple[str, ...],
    price: float | None,
) -> NodeType:
    template = file.spec.template.spec
    return NodeType(
        one.name,
        one.capacity,
        one.allocatable,
        labels,
        template.taints,
        template.startup_taints,
        zones,
        price,
        one.boot_s,
        one.interruption_rate if labels[CAPACITY_TYPE] == SPOT else 0.0,
    )


def _known_keys(file: KarpenterPoolFile, table: InstanceTable) -> set[str]:
    """The keys of labels with a value for each type; the operating system is that of the pool."""
    keys = {ZONE, INSTANCE_TYPE, CAPACITY_TYPE, ARCH}
    domain = _label_domain(file)
    return keys.union(*(one.known_labels(domain) for one in table.types.values()))


def _label_domain(file: KarpenterPoolFile) -> str:
    node_class = file.spec.template.spec.node_class_ref
    is_auto_mode = isinstance(node_class, Mapping) and node_class.get("group") == EKS
    return EKS if is_auto_mode else KARPENTER_AWS


def _label_choices(
    file: KarpenterPoolFile, table: InstanceTable, named: NamedValues
) -> Iterator[dict[str, str]]:
    """The labels that a new node may have of those that only requirements have, in each combination."""
    values = {key: _values(file, key, named) for key in _open_keys(file, table)}
    for chosen in islice(product(*values.values()), MAX_CHOICES):
        yield dict(zip(values, chosen, strict=True))


def _open_keys(file: KarpenterPoolFile, table: InstanceTable) -> list[str]:
    """The keys of requirements for a label that neither the template nor an instance type has."""
    known = _known_keys(file, table) | file.spec.template.metadata.labels.keys()
    found = (
        one.key for one in file.spec.template.spec.requirements if one.operator in _NEED_A_LABEL
    )
    return [key for key in dict.fromkeys(found) if key not in known]


def _values(file: KarpenterPoolFile, key: str, named: NamedValues) -> list[str]:
    """The values of a label that meet its requirements: listed ones, or those of pods and, for other pods, a number."""
    requirements = [one for one in file.spec.template.spec.requirements if one.key == key]
    listed = next((one.values for one in requirements if one.operator == "In"), None)
    bounds = [int(one.values[0]) for one in requirements if one.operator in _BOUNDS]
    numbers = (str(bound + step) for bound in (*bounds, 0) for step in (0, 1, -1))
    number = next((text for text in numbers if _is_met(requirements, text)), "0")
    candidates = (*named.get(key, ()), number) if listed is None else listed
    return [value for value in dict.fromkeys(candidates) if _is_met(requirements, value)]


def _is_met(requirements: Sequence[RequirementFile], value: str) -> bool:
    return all(one.is_met(value) for one in requirements)


def _not_modelled(
    file: KarpenterPoolFile, table: InstanceTable, named: NamedValues
) -> Iterator[str]:
    template, open_keys = file.spec.template.spec, _open_keys(file, table)
    path = "spec.template.spec"
    for i, one in enumerate(template.requirements):
        where = f"{path}.requirements[{i}]"
        if one.min_values is not None:
            yield f"{where}.minValues: not modelled"
        if one.key not in open_keys or one.key in PLATFORM or one.operator not in _NEED_A_LABEL:
            continue
        if is_provider_key(one.key):
            yield f"{where}: the table of instance types has no {one.key}; each type is taken to meet it"
        elif one.operator != "In":
            yield (
                f"{where}: nodes get a value of {one.key} that a pod names; Karpenter invents one for other"
                " pods, which is a number here"
            )
    combinations = prod(len(_values(file, key, named)) for key in open_keys)
    if combinations > MAX_CHOICES:
        keys = ", ".join(open_keys)
        yield f"{path}.requirements: {MAX_CHOICES} of {combinations:,} combinations of {keys} are used"
    annotations = file.spec.template.metadata.annotations
    if isinstance(annotations, Mapping) and DO_NOT_DISRUPT in annotations:
        yield f"spec.template.metadata.annotations.{DO_NOT_DISRUPT}: not modelled"
    if template.node_class_ref is not None:
        yield f"{path}.nodeClassRef: not read; kubelet settings and disks are not modelled"
    if template.termination_grace_period is not None:
        yield f"{path}.terminationGracePeriod: not modelled"


def is_beside_pools(version: str, kind: str) -> bool:
    """True for objects that Karpenter reads with its NodePools: classes of nodes of a provider, and overlays."""
    group = version.partition("/")[0]
    is_class = kind.endswith("NodeClass") and (group == EKS or "karpenter" in group.split("."))
    return is_class or (group == KARPENTER_V1.partition("/")[0] and kind == "NodeOverlay")


def notes_beside_pools(tree: Mapping[str, Any]) -> Iterator[str]:
    """The parts of such an object that would change nodes or prices; the table of instance types stands for them."""
    metadata, spec = tree.get("metadata"), tree.get("spec")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    where = f"{tree['kind']} {name or '(no name)'}"
    kubelet = spec.get("kubelet") if isinstance(spec, Mapping) else None
    note = kubelet_note(kubelet, "spec.kubelet")
    if note:
        yield f"{where}: {note}"
    else:
        yield f"{where}: not modelled; the table of instance types has amounts and prices"


def kubelet_note(kubelet: Any, path: str) -> str:
    """The note on settings of the kubelet at `path`; empty if there are none."""
    if not isinstance(kubelet, Mapping) or not kubelet:
        return ""
    fields = ", ".join(f"{path}.{one}" for one in kubelet)
    return f"{fields}: not modelled; the table of instance types has pods and overhead"
