"""ArgsValidation: the rules for the arguments of each plugin.

Mirrors pkg/scheduler/apis/config/validation/validation_pluginargs.go.
"""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from ..api.affinity import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    NodeAffinity,
    TopologySpreadConstraint,
)
from ..api.selectors import (
    FIELD_OPERATORS,
    NODE_OPERATORS,
    NodeSelectorTerm,
    Requirement,
    parse_integer,
)
from ..api.text.durations import format_go_duration
from ..api.text.name_faults import is_label_value, is_qualified_name
from ..errors import one_of
from ..releases.feature_gates import DEFAULT_GATES, FeatureGates
from .gates import SCORING_GATE
from .plugin_args import (
    DEFAULTING_TYPES,
    REQUESTED_TO_CAPACITY_RATIO,
    SCORING_STRATEGIES,
    SYSTEM_DEFAULTING,
    AllocatedArgs,
    Args,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeLabelArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from .problems import Literally, Problems, show

WHEN_UNSATISFIABLE = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
LABEL_KEY = "a label key such as example.com/name"


def validate_args(
    args: Args, path: str, problems: Problems, gates: FeatureGates = DEFAULT_GATES
) -> None:
    """Record the faults in the arguments of one plugin, which are at `path` of the file."""
    if isinstance(args, VolumeBindingArgs) and gates.enabled(SCORING_GATE):
        _shape(args.shape or (), f"{path}.shape", problems)
        args = structs.replace(args, shape=None)
    if isinstance(args, NodeResourcesFitArgs) and not gates.release.fit_strategy_is_strict:
        _node_resources_fit(args, path, problems, is_strict=False)
    elif (validate := _VALIDATORS.get(type(args))) is not None:
        validate(args, path, problems)


def seconds(value: float) -> Literally:
    """Return a duration as shown in a message."""
    return Literally(format_go_duration(value))


def _default_preemption(args: DefaultPreemptionArgs, path: str, problems: Problems) -> None:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = f"{path}.minCandidateNodesPercentage"
    absolute_path = f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        problems.add(percentage_path, "a percentage from 0 to 100", percentage)
    if absolute < 0:
        problems.add(absolute_path, "a number not below 0", absolute)
    if percentage == 0 and absolute == 0:
        problems.add(percentage_path, "more than 0 when minCandidateNodesAbsolute is 0", 0)
        problems.add(absolute_path, "more than 0 when minCandidateNodesPercentage is 0", 0)


def _inter_pod_affinity(args: InterPodAffinityArgs, path: str, problems: Problems) -> None:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        problems.add(f"{path}.hardPodAffinityWeight", "a weight from 0 to 100", weight)


def _node_affinity(args: NodeAffinityArgs, path: str, problems: Problems) -> None:
    affinity, path = args.added_affinity or NodeAffinity(), f"{path}.addedAffinity"
    if affinity.required is not None:
        terms = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for i, term in enumerate(affinity.required.node_selector_terms or ()):
            _node_selector_term(term, f"{terms}[{i}]", problems)
    terms = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    for i, preferred in enumerate(affinity.preferred):
        if preferred.weight != 0:  # a term without weight is never evaluated
            # The path leaves `preference` out, as that of kube-scheduler does.
            _node_selector_term(preferred.preference, f"{terms}[{i}]", problems)


def _node_selector_term(term: NodeSelectorTerm, path: str, problems: Problems) -> None:
    for i, requirement in enumerate(term.expressions):
        _label_requirement(requirement, f"{path}.matchExpressions[{i}]", problems)
    for i, requirement in enumerate(term.fields):
        _field_requirement(requirement, f"{path}.matchFields[{i}]", problems)


def _label_requirement(requirement: Requirement, path: str, problems: Problems) -> None:
    operator, values = requirement.operator, requirement.values or ()
    if operator not in NODE_OPERATORS:
        problems.add(f"{path}.operator", one_of(NODE_OPERATORS), operator)
        return
    if not is_qualified_name(requirement.key):
        problems.add(f"{path}.key", LABEL_KEY, requirement.key)
    _operator_values(operator, values, f"{path}.values", problems)
    for i, value in enumerate(values):
        if not is_label_value(value):
            # kube-scheduler's path names the key as well.
            problems.add(f"{path}.values[{i}][{requirement.key}]", "a label value", value)


def _operator_values(operator: str, values: tuple[str, ...], path: str, problems: Problems) -> None:
    """Record an operator with too many or too few values, or one it cannot compare."""
    if operator in ("In", "NotIn") and not values:
        problems.add(path, f"at least one value for operator {operator}", values)
    if operator in ("Exists", "DoesNotExist") and values:
        problems.add(path, f"no value for operator {operator}", values)
    if operator not in ("Gt", "Lt"):
        return
    if len(values) != 1:
        problems.add(path, f"one value for operator {operator}", values)
    for i, value in enumerate(values):
        if parse_integer(value) is None:
            problems.add(f"{path}[{i}]", f"a whole number for operator {operator}", value)


def _field_requirement(requirement: Requirement, path: str, problems: Problems) -> None:
    values = requirement.values or ()
    if requirement.operator not in FIELD_OPERATORS:
        problems.add(f"{path}.operator", one_of(FIELD_OPERATORS), requirement.operator)
    elif len(values) != 1:
        problems.add(f"{path}.values", "one value", values)


def _node_resources_fit(
    args: NodeResourcesFitArgs, path: str, problems: Problems, is_strict: bool = True
) -> None:
    for i, name in enumerate(args.ignored_resources):
        if not is_qualified_name(name):
            expected = "a resource name such as example.com/gpu"
            problems.add(f"{path}.ignoredResources[{i}]", expected, name)
    for i, group in enumerate(args.ignored_resource_groups):
        if "/" in group or not is_qualified_name(group):
            expected = "a resource group such as example.com, without /"
            problems.add(f"{path}.ignoredResourceGroups[{i}]", expected, group)
    _scoring_strategy(args.scoring_strategy, f"{path}.scoringStrategy", problems, is_strict)


def _scoring_strategy(
    strategy: ScoringStrategy, path: str, problems: Problems, is_strict: bool
) -> None:
    if strategy.type not in SCORING_STRATEGIES:
        problems.add(f"{path}.type", one_of(SCORING_STRATEGIES), strategy.type)
    _resource_weights(strategy.resources, f"{path}.resources", problems)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if not is_strict and ratio is not None:
        _shape(ratio.shape, f"{path}.shape", problems)
    elif strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            expected = f"a shape for type {REQUESTED_TO_CAPACITY_RATIO}"
            problems.add(ratio_path, expected, None)
        else:
            _shape(ratio.shape, f"{ratio_path}.shape", problems)
    elif ratio is not None:
        expected = f"nothing unless type is {REQUESTED_TO_CAPACITY_RATIO}"
        got = Literally(f"a shape for type {show(strategy.type)}")
        problems.add(ratio_path, expected, got)


def _resource_weights(resources: tuple[ResourceSpec, ...], path: str, problems: Problems) -> None:
    for i, spec in enumerate(resources):
        if not 0 < spec.weight <= 100:
            problems.add(f"{path}[{i}].weight", "a weight from 1 to 100", spec.weight)


def _allocated(args: AllocatedArgs, path: str, problems: Problems) -> None:
    _resource_weights(args.resources, f"{path}.resources", problems)


def _requested_to_capacity_ratio(
    args: RequestedToCapacityRatioArgs, path: str, problems: Problems
) -> None:
    _shape(args.shape, f"{path}.shape", problems)
    for i, spec in enumerate(args.resources):
        if spec.weight < 1:  # this plugin never had an upper limit
            where = f"{path}.resources[{i}].weight"
            problems.add(where, "a weight of at least 1", spec.weight)


def _node_label(args: NodeLabelArgs, path: str, problems: Problems) -> None:
    pairs = (
        ("presentLabels", args.present_labels, "absentLabels", args.absent_labels),
        (
            "presentLabelsPreference",
            args.present_labels_preference,
            "absentLabelsPreference",
            args.absent_labels_preference,
        ),
    )
    for present_name, present, absent_name, absent in pairs:
        position = {label: i for i, label in enumerate(present)}
        for i, label in enumerate(absent):
            if label in position:
                where = f"{path}.{present_name}[{position[label]}]"
                problems.add(where, f"a label other than {absent_name}[{i}]", label)


def _shape(shape: tuple[UtilizationShapePoint, ...], path: str, problems: Problems) -> None:
    if not shape:
        problems.add(path, "at least one point", shape)
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            expected = f"a utilization above that of the point before, {shape[i - 1].utilization}"
            problems.add(f"{path}[{i}].utilization", expected, shape[i].utilization)
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            expected = "a utilization from 0 to 100"
            problems.add(f"{path}[{i}].utilization", expected, point.utilization)
        if not 0 <= point.score <= 10:
            problems.add(f"{path}[{i}].score", "a score from 0 to 10", point.score)


def _balanced_allocation(
    args: NodeResourcesBalancedAllocationArgs, path: str, problems: Problems
) -> None:
    names = [spec.name for spec in args.resources]
    for i, spec in enumerate(args.resources):
        where = f"{path}.resources[{i}]"
        if spec.name in names[:i]:
            problems.add(f"{where}.name", "each resource once", spec.name)
        if spec.weight != 1:
            problems.add(f"{where}.weight", "1", spec.weight)


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str, problems: Problems) -> None:
    constraints, type_path = args.default_constraints, f"{path}.defaultingType"
    if args.defaulting_type not in DEFAULTING_TYPES:
        problems.add(type_path, one_of(DEFAULTING_TYPES), args.defaulting_type)
    elif args.defaulting_type == SYSTEM_DEFAULTING and constraints:
        problems.add(type_path, "List when there are defaultConstraints", args.defaulting_type)
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        where = f"{path}.defaultConstraints[{i}]"
        _default_constraint(constraint, where, problems)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            expected = "each pair of topologyKey and whenUnsatisfiable once"
            problems.add(where, expected, ", ".join(pair))
        seen.add(pair)


def _default_constraint(
    constraint: TopologySpreadConstraint, path: str, problems: Problems
) -> None:
    if constraint.max_skew <= 0:
        problems.add(f"{path}.maxSkew", "a number above 0", constraint.max_skew)
    key, key_path = constraint.topology_key, f"{path}.topologyKey"
    if not key:
        problems.add(key_path, LABEL_KEY, None)
    elif not is_qualified_name(key):
        problems.add(key_path, LABEL_KEY, key)
    action, action_path = constraint.when_unsatisfiable, f"{path}.whenUnsatisfiable"
    if not action:
        problems.add(action_path, one_of(WHEN_UNSATISFIABLE), None)
    elif action not in WHEN_UNSATISFIABLE:
        problems.add(action_path, one_of(WHEN_UNSATISFIABLE), action)
    if constraint.label_selector is not None:
        expected = "nothing, since each pod brings its own selector"
        got = Literally("a selector")
        problems.add(f"{path}.labelSelector", expected, got)


def _volume_binding(args: VolumeBindingArgs, path: str, problems: Problems) -> None:
    timeout = args.bind_timeout_seconds
    if timeout < 0:
        problems.add(f"{path}.bindTimeoutSeconds", "a number not below 0", timeout)
    if args.shape is not None:
        expected = "nothing while feature gate StorageCapacityScoring is off"
        problems.add(f"{path}.shape", expected, args.shape)


def _dynamic_resources(args: DynamicResourcesArgs, path: str, problems: Problems) -> None:
    if args.filter_timeout_s is not None and args.filter_timeout_s < 0:
        got = seconds(args.filter_timeout_s)
        problems.add(f"{path}.filterTimeout", "a duration not below 0s", got)
    if args.binding_timeout_s is not None and args.binding_timeout_s < 1:
        got = seconds(args.binding_timeout_s)
        problems.add(f"{path}.bindingTimeout", "a duration of at least 1s", got)


_VALIDATORS: dict[type[Args], Callable[[Any, str, Problems], None]] = {
    DefaultPreemptionArgs: _default_preemption,
    DynamicResourcesArgs: _dynamic_resources,
    InterPodAffinityArgs: _inter_pod_affinity,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesBalancedAllocationArgs: _balanced_allocation,
    NodeResourcesFitArgs: _node_resources_fit,
    NodeLabelArgs: _node_label,
    AllocatedArgs: _allocated,
    PodTopologySpreadArgs: _pod_topology_spread,
    RequestedToCapacityRatioArgs: _requested_to_capacity_ratio,
    VolumeBindingArgs: _volume_binding,
}
