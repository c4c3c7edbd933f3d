"""Policy: the configuration format of kube-scheduler up to v1.22, and its algorithm providers.

Mirrors createFromConfig and createFromProvider of pkg/scheduler/factory.go and ValidatePolicy of
pkg/scheduler/apis/config/validation/validation.go, all of v1.20.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import field, structs

from ...choices import PROVIDER_NAMES
from ...errors import ConfigError, one_of
from ...releases.feature_gates import FeatureGates
from ..decode import Int32, Int64, decode
from ..defaults import default_plugin_config
from ..gates import DEFAULT_POD_TOPOLOGY_SPREAD, GateSettings
from ..generations import V1BETA1
from ..internal_form import Reading, gate_notes
from ..plugin_args import (
    InterPodAffinityArgs,
    NodeLabelArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    ServiceAffinityArgs,
    UtilizationShapePoint,
    fill_in,
)
from ..problems import Problem, Problems
from ..types import Extender, PluginRef, Plugins, PluginSet, Profile, SchedulerConfiguration
from ..validation import validate_config
from .older_plugins import CLUSTER_AUTOSCALER_PROVIDER, DEFAULT_PROVIDER, with_selector_spread
from .policy_plugins import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    EQUAL_PRIORITY,
    LABEL_PREDICATE,
    NODE_LABEL,
    PREDICATE_ALIASES,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
    RATIO,
    SERVICE_AFFINITY,
    SERVICE_PREDICATE,
    PolicyArgs,
    PolicyPlugins,
)

PROVIDERS = dict(zip(PROVIDER_NAMES, (DEFAULT_PROVIDER, CLUSTER_AUTOSCALER_PROVIDER), strict=True))
_MAX_WEIGHT = 2**31 - 1
API_VERSION = "v1"
KIND = "Policy"
CONFIG_MAP_KIND = "ConfigMap"
CONFIG_MAP_KEY = "policy.cfg"
_NANO = 10**9


class LabelsFile(msgspec.Struct, frozen=True, rename="camel"):
    """Labels that pods of one service must share."""

    labels: tuple[str, ...] = ()


class LabelsPresenceFile(msgspec.Struct, frozen=True, rename="camel"):
    """Labels a node must have, or must not have."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgumentFile(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a predicate: exactly one member."""

    service_affinity: LabelsFile | None = None
    labels_presence: LabelsPresenceFile | None = None


class PredicateFile(msgspec.Struct, frozen=True, rename="camel"):
    """A predicate, by its name from before plugins."""

    name: str = ""
    argument: PredicateArgumentFile | None = None


class ServiceAntiAffinityFile(msgspec.Struct, frozen=True, rename="camel"):
    """The label to spread the pods of a service over."""

    label: str = ""


class LabelPreferenceFile(msgspec.Struct, frozen=True, rename="camel"):
    """A preferred, or disliked, label."""

    label: str = ""
    presence: bool = False


class RatioFile(msgspec.Struct, frozen=True, rename="camel"):
    """The arguments of RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgumentFile(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a priority: exactly one member."""

    service_anti_affinity: ServiceAntiAffinityFile | None = None
    label_preference: LabelPreferenceFile | None = None
    requested_to_capacity_ratio_arguments: RatioFile | None = None


class PriorityFile(msgspec.Struct, frozen=True, rename="camel"):
    """A priority function, by its name from before plugins."""

    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgumentFile | None = None


class LegacyExtender(Extender, frozen=True, rename="camel"):
    """An extender, as it was written then; its field names are case-insensitive."""

    enable_https: bool = False
    http_timeout_s: Int64 = field(default=0, name="httpTimeout")

    def to_extender(self) -> Extender:
        """Returns the extender as the current format has it."""
        members = structs.asdict(self) | {"http_timeout_s": self.http_timeout_s / _NANO}
        return Extender(**members)


class PolicyFile(msgspec.Struct, frozen=True, rename="camel"):
    """The file. Absent predicates differ from an empty list of them."""

    api_version: str = API_VERSION
    kind: str = KIND
    predicates: tuple[PredicateFile, ...] | None = None
    priorities: tuple[PriorityFile, ...] | None = None
    extenders: tuple[LegacyExtender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


class ConfigMapFile(msgspec.Struct, frozen=True, rename="camel"):
    """A ConfigMap with a configuration."""

    api_version: str = API_VERSION
    kind: str = CONFIG_MAP_KIND
    metadata: Any = None
    data: dict[str, Any] = field(default_factory=dict)
    binary_data: Any = None
    immutable: Any = None


def provider_reading(name: str, feature_gates: GateSettings | None = None) -> Reading:
    """Returns the configuration of algorithm provider `name`; raises ConfigError if there is no
    such provider."""
    if name not in PROVIDERS:
        choices = one_of(PROVIDER_NAMES)
        raise ConfigError(f'algorithm provider: expected {choices}; got "{name}"')
    plugins = PROVIDERS[name]
    gates = FeatureGates.of(feature_gates)
    if not gates.enabled(DEFAULT_POD_TOPOLOGY_SPREAD):
        plugins = with_selector_spread(plugins)
    config = SchedulerConfiguration(profiles=(_profile(plugins, {}, gates),))
    return Reading(config, API_VERSION, notes=gate_notes(gates))


def read_policy(data: dict[str, Any], problems: Problems, gates: FeatureGates) -> Reading:
    """Return the configuration equivalent to a policy."""
    notes: list[str] = []
    file = decode(PolicyFile, _with_known_extender_fields(data, notes), "", problems)
    for name, expected in (("kind", "Policy"), ("apiVersion", "v1")):
        if data.get(name) not in (None, "", expected):
            problems.add(name, expected, data[name])
    reader = _PolicyReader(problems, notes)
    predicates = reader.predicates(file.predicates)
    priorities = reader.priorities(file.priorities)
    weight = file.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= 100:
        problems.add("hardPodAffinitySymmetricWeight", "a weight from 0 to 100", weight)
    elif weight:
        reader.args.inter_pod_affinity = InterPodAffinityArgs(hard_pod_affinity_weight=weight)
    plugins = PolicyPlugins(reader.args, gates)
    plugins.add_predicates(predicates)
    plugins.add_priorities(priorities)
    config = SchedulerConfiguration(
        profiles=(_profile(plugins.to_plugins(), dict(plugins.plugin_config), gates),),
        extenders=tuple(extender.to_extender() for extender in file.extenders),
        always_check_all_predicates=file.always_check_all_predicates,
    )
    _validate(config, reader, problems, gates)
    return Reading(config, API_VERSION, notes=(*notes, *gate_notes(gates)))


class _PolicyReader:
    """Collects the requirements of a policy's predicates and priorities."""

    def __init__(self, problems: Problems, notes: list[str]) -> None:
        self._problems = problems
        self._notes = notes
        self._custom: dict[str, PriorityFile] = {}
        self.args = PolicyArgs()
        self.ratio_path = "priorities"

    def predicates(self, files: tuple[PredicateFile, ...] | None) -> Iterable[str]:
        """Return the current names of the predicates."""
        if files is None:
            return DEFAULT_PREDICATES
        return [self._predicate(file, f"predicates[{i}]") for i, file in enumerate(files)]

    def priorities(self, files: tuple[PriorityFile, ...] | None) -> dict[str, int]:
        """Return the weights of the priorities by their current names."""
        if files is None:
            return DEFAULT_PRIORITIES
        weights: dict[str, int] = {}
        for i, file in enumerate(files):
            path = f"priorities[{i}]"
            self._check_priority(file, path)
            if file.name == EQUAL_PRIORITY:
                self._notes.append(f"{path}: left out; {EQUAL_PRIORITY} prefers no node")
                continue
            # If a priority occurs twice, the last weight counts.
            weights[self._priority(file, path)] = file.weight
        weights.pop("", None)
        return weights

    def _predicate(self, file: PredicateFile, path: str) -> str:
        argument = file.argument
        if argument is not None and len(_members(argument)) != 1:
            expected = "either serviceAffinity or labelsPresence"
            self._problems.add(f"{path}.argument", expected, argument)
        name = PREDICATE_ALIASES.get(file.name, file.name)
        if name in PREDICATES:  # a known name is used as it is, regardless of its argument
            self._note_argument(file.argument is not None, path)
            return name
        if argument is None or not _members(argument):
            self._unknown(file.name, tuple(PREDICATES), path)
            return ""
        if argument.service_affinity is not None:
            affinity = self.args.service_affinity or ServiceAffinityArgs()
            labels = affinity.affinity_labels + argument.service_affinity.labels
            self.args.service_affinity = structs.replace(affinity, affinity_labels=labels)
            name = SERVICE_PREDICATE
        if argument.labels_presence is not None:
            wanted = argument.labels_presence
            field = "present_labels" if wanted.presence else "absent_labels"
            self._append_node_labels(field, wanted.labels)
            name = LABEL_PREDICATE
        return name

    def _priority(self, file: PriorityFile, path: str) -> str:
        argument = file.argument
        name = PRIORITY_ALIASES.get(file.name, file.name)
        if name in PRIORITIES:
            self._note_argument(argument is not None, path)
            return name
        if argument is None or not _members(argument):
            self._unknown(file.name, tuple(PRIORITIES), path)
            return ""
        if argument.service_anti_affinity is not None:
            affinity = self.args.service_affinity or ServiceAffinityArgs()
            labels = (
                *affinity.anti_affinity_labels_preference,
                argument.service_anti_affinity.label,
            )
            self.args.service_affinity = structs.replace(
                affinity, anti_affinity_labels_preference=labels
            )
            name = SERVICE_AFFINITY
        if argument.label_preference is not None:
            wanted = argument.label_preference
            kind = "present" if wanted.presence else "absent"
            self._append_node_labels(f"{kind}_labels_preference", (wanted.label,))
            name = NODE_LABEL
        if argument.requested_to_capacity_ratio_arguments is not None:
            ratio = argument.requested_to_capacity_ratio_arguments
            args = fill_in(RequestedToCapacityRatioArgs(ratio.shape, ratio.resources))
            assert isinstance(args, RequestedToCapacityRatioArgs), "fill_in keeps the type"
            self.args.ratio = args
            self.ratio_path = f"{path}.argument.requestedToCapacityRatioArguments"
            name = RATIO
        return name

    def _check_priority(self, file: PriorityFile, path: str) -> None:
        """Record invalid weights, and custom priorities that contradict each other."""
        if not 0 < file.weight <= _MAX_WEIGHT:
            self._problems.add(f"{path}.weight", f"a weight from 1 to {_MAX_WEIGHT}", file.weight)
        if file.argument is None:
            return
        members = _members(file.argument)
        if len(members) != 1:
            expected = "exactly one of serviceAntiAffinity, labelPreference and "
            expected += "requestedToCapacityRatioArguments"
            self._problems.add(f"{path}.argument", expected, file.argument)
            return
        other = self._custom.setdefault(members[0], file)
        if other is file:
            return
        if members[0] == "requested_to_capacity_ratio_arguments":
            expected = f"one priority of this kind, and {other.name} is one"
            self._problems.add(f"{path}.argument", expected, file.name)
        elif other.weight != file.weight:
            expected = f"{other.weight}, which is the weight of {other.name}"
            self._problems.add(f"{path}.weight", expected, file.weight)

    def _append_node_labels(self, field: str, labels: tuple[str, ...]) -> None:
        args = self.args.node_label or NodeLabelArgs()
        self.args.node_label = structs.replace(args, **{field: getattr(args, field) + labels})

    def _note_argument(self, is_given: bool, path: str) -> None:
        if is_given:
            note = "left out; a predicate or priority with a known name takes none"
            self._notes.append(f"{path}.argument: {note}")

    def _unknown(self, name: str, known: tuple[str, ...], path: str) -> None:
        expected = f"{one_of(tuple(sorted(known)))}, or an argument"
        self._problems.add(f"{path}.name", expected, name)


def _members(argument: Any) -> list[str]:
    """Return the members of an argument that are set."""
    return [name for name in argument.__struct_fields__ if getattr(argument, name) is not None]


def _profile(plugins: Plugins, given: dict[str, Any], gates: FeatureGates) -> Profile:
    """Return a profile with these plugins.

    VolumeRestrictions had no preFilter in v1.20. Its current filter needs one, so one adds the
    other.
    """
    listed = {ref.name for ref in plugins.pre_filter.enabled}
    if "VolumeRestrictions" in {ref.name for ref in plugins.filter.enabled} - listed:
        pre_filters = (*plugins.pre_filter.enabled, PluginRef("VolumeRestrictions"))
        plugins = structs.replace(plugins, pre_filter=PluginSet(pre_filters))
    args = default_plugin_config(plugins, given, V1BETA1.args_types, gates)
    return Profile(plugins=plugins, plugin_config=args)


def _validate(
    config: SchedulerConfiguration, reader: _PolicyReader, problems: Problems, gates: FeatureGates
) -> None:
    """Record the faults of the configuration under the paths of the policy."""
    paths = {
        f"profiles[0].pluginConfig.{RATIO}.args": reader.ratio_path,
        f"profiles[0].pluginConfig.{NODE_LABEL}.args": "predicates",
    }
    where = {
        ("profiles[0]", name): f"profiles[0].pluginConfig.{name}" for name in (RATIO, NODE_LABEL)
    }
    known = Problems(problems)
    for problem in validate_config(config, where, frozenset(), gates=gates):
        path = problem.path
        for inner, outer in paths.items():
            path = path.replace(inner, outer)
        if not known.cover(path):
            problems.append(Problem(path, problem.expected, problem.got))


def _with_known_extender_fields(data: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return the policy with the fields of extenders in our spelling; upstream ignored case and
    unknown fields there."""
    extenders = data.get("extenders")
    if not isinstance(extenders, list):
        return data
    known = {name.lower(): name for name in LegacyExtender.__struct_encode_fields__}
    spelled = []
    for i, extender in enumerate(extenders):
        if not isinstance(extender, dict):
            spelled.append(extender)
            continue
        unknown = [name for name in extender if str(name).lower() not in known]
        notes += [f"extenders[{i}].{name}: left out; there is no such field" for name in unknown]
        spelled.append(
            {known[n.lower()]: value for n, value in extender.items() if n not in unknown}
        )
    return {**data, "extenders": spelled}
