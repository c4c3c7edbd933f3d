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
from ..api.text.name_faults import key_faults, value_faults
from ..errors import one_of
from ..releases.feature_gates import DEFAULT_GATES
from .gates import SCORING_GATE, FeatureGates
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
from .problems import Literally, Problem, ProblemKind, Problems, Upstream, show, supported

WHEN_UNSATISFIABLE = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
NOT_SORTED = "values must be sorted in increasing order"
LABEL_KEY = "a label key such as example.com/name"


def validate_args(
    args: Args, path: str, problems: Problems, gates: FeatureGates = DEFAULT_GATES
) -> None:
    """Record the faults in the arguments of one plugin, which are at `path` of the file."""
    if isinstance(args, VolumeBindingArgs) and gates.enabled(SCORING_GATE):
        _shape(args.shape or (), f"{path}.shape", problems)
        args = structs.replace(args, shape=None)
    start = len(problems)
    if isinstance(args, NodeResourcesFitArgs) and not gates.release.fit_strategy_is_strict:
        _node_resources_fit(args, path, problems, is_strict=False)
    elif (validate := _VALIDATORS.get(type(args))) is not None:
        validate(args, path, problems)
    if gates.release.faults_name_fields:
        problems[start:] = [_naming_field(problem) for problem in problems[start:]]


def _naming_field(problem: Problem) -> Problem:
    """The problem as v1.33 words it."""
    if problem.details != (NOT_SORTED,):
        return problem
    return structs.replace(problem, details=(f"utilization {NOT_SORTED}",))


def seconds(value: float) -> Literally:
    """Return a duration as shown in a message."""
    return Literally(format_go_duration(value))


def _default_preemption(args: DefaultPreemptionArgs, path: str, problems: Problems) -> None:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = f"{path}.minCandidateNodesPercentage"
    absolute_path = f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        expected = "a percentage from 0 to 100"
        problems.add(percentage_path, expected, percentage, upstream="not in valid range [0, 100]")
    if absolute < 0:
        expected = "a number not below 0"
        problems.add(absolute_path, expected, absolute, upstream="not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        both = "cannot be zero at the same time as"
        expected = "more than 0 when minCandidateNodesAbsolute is 0"
        upstream = f"{both} minCandidateNodesAbsolute"
        problems.add(percentage_path, expected, 0, upstream=upstream)
        expected = "more than 0 when minCandidateNodesPercentage is 0"
        upstream = f"{both} minCandidateNodesPercentage"
        problems.add(absolute_path, expected, 0, upstream=upstream)


def _inter_pod_affinity(args: InterPodAffinityArgs, path: str, problems: Problems) -> None:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        where, upstream = f"{path}.hardPodAffinityWeight", "not in valid range [0, 100]"
        problems.add(where, "a weight from 0 to 100", weight, upstream=upstream)


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
        _unsupported(f"{path}.operator", NODE_OPERATORS, operator, problems)
        return
    if faults := key_faults(requirement.key):
        problems.add(f"{path}.key", LABEL_KEY, requirement.key, upstream="; ".join(faults))
    _operator_values(operator, values, f"{path}.values", problems)
    for i, value in enumerate(values):
        if faults := value_faults(value):
            # kube-scheduler's path names the key as well.
            where = f"{path}.values[{i}][{requirement.key}]"
            problems.add(where, "a label value", value, upstream="; ".join(faults))


def _operator_values(operator: str, values: tuple[str, ...], path: str, problems: Problems) -> None:
    """Record an operator with too many or too few values, or one it cannot compare."""
    if operator in ("In", "NotIn") and not values:
        upstream = "for 'in', 'notin' operators, values set can't be empty"
        expected = f"at least one value for operator {operator}"
        problems.add(path, expected, values, upstream=upstream)
    if operator in ("Exists", "DoesNotExist") and values:
        upstream = "values set must be empty for exists and does not exist"
        problems.add(path, f"no value for operator {operator}", values, upstream=upstream)
    if operator not in ("Gt", "Lt"):
        return
    if len(values) != 1:
        upstream = "for 'Gt', 'Lt' operators, exactly one value is required"
        problems.add(path, f"one value for operator {operator}", values, upstream=upstream)
    for i, value in enumerate(values):
        if parse_integer(value) is None:
            expected = f"a whole number for operator {operator}"
            upstream = "for 'Gt', 'Lt' operators, the value must be an integer"
            problems.add(f"{path}[{i}]", expected, value, upstream=upstream)


def _field_requirement(requirement: Requirement, path: str, problems: Problems) -> None:
    values = requirement.values or ()
    if requirement.operator not in FIELD_OPERATORS:
        _unsupported(f"{path}.operator", FIELD_OPERATORS, requirement.operator, problems)
    elif len(values) != 1:
        problems.add(f"{path}.values", "one value", values, upstream="must have one element")


def _node_resources_fit(
    args: NodeResourcesFitArgs, path: str, problems: Problems, is_strict: bool = True
) -> None:
    for i, name in enumerate(args.ignored_resources):
        if faults := key_faults(name):
            where, expected = (
                f"{path}.ignoredResources[{i}]",
                "a resource name such as example.com/gpu",
            )
            problems.add(where, expected, name, upstream=Upstream(faults))
    for i, group in enumerate(args.ignored_resource_groups):
        slash = ("resource group name can't contain '/'",) if "/" in group else ()
        if faults := slash + key_faults(group):
            where = f"{path}.ignoredResourceGroups[{i}]"
            expected = "a resource group such as example.com, without /"
            problems.add(where, expected, group, upstream=Upstream(faults))
    _scoring_strategy(args.scoring_strategy, f"{path}.scoringStrategy", problems, is_strict)


def _scoring_strategy(
    strategy: ScoringStrategy, path: str, problems: Problems, is_strict: bool
) -> None:
    if strategy.type not in SCORING_STRATEGIES:
        _unsupported(f"{path}.type", SCORING_STRATEGIES, strategy.type, problems)
    _resource_weights(strategy.resources, f"{path}.resources", problems)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if not is_strict and ratio is not None:
        _shape(ratio.shape, f"{path}.shape", problems)
    elif strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            expected = f"a shape for type {REQUESTED_TO_CAPACITY_RATIO}"
            upstream = f"must be specified when type is {REQUESTED_TO_CAPACITY_RATIO}"
            problems.add(ratio_path, expected, None, ProblemKind.REQUIRED, upstream)
        else:
            _shape(ratio.shape, f"{ratio_path}.shape", problems)
    elif ratio is not None:
        expected = f"nothing unless type is {REQUESTED_TO_CAPACITY_RATIO}"
        got = Literally(f"a shape for type {show(strategy.type)}")
        upstream = f"must be nil when type is not {REQUESTED_TO_CAPACITY_RATIO}"
        problems.add(ratio_path, expected, got, ProblemKind.FORBIDDEN, upstream)


def _resource_weights(resources: tuple[ResourceSpec, ...], path: str, problems: Problems) -> None:
    for i, spec in enumerate(resources):
        if not 0 < spec.weight <= 100:
            where, expected = f"{path}[{i}].weight", "a weight from 1 to 100"
            upstream = f"resource weight of {spec.name} not in valid range (0, 100]"
            problems.add(where, expected, spec.weight, upstream=upstream)


def _allocated(args: AllocatedArgs, path: str, problems: Problems) -> None:
    _resource_weights(args.resources, f"{path}.resources", problems)


def _requested_to_capacity_ratio(
    args: RequestedToCapacityRatioArgs, path: str, problems: Problems
) -> None:
    _shape(args.shape, f"{path}.shape", problems)
    for i, spec in enumerate(args.resources):
        if spec.weight < 1:  # this plugin never had an upper limit
            where, upstream = f"{path}.resources[{i}].weight", f"resource weight of {spec.name}"
            upstream = f"{upstream} not in valid range [1, inf)"
            problems.add(where, "a weight of at least 1", spec.weight, upstream=upstream)


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
                where, other = f"{path}.{present_name}[{position[label]}]", f"{absent_name}[{i}]"
                expected, upstream = f"a label other than {other}", f"conflict with {path}.{other}"
                problems.add(where, expected, label, upstream=upstream)


def _shape(shape: tuple[UtilizationShapePoint, ...], path: str, problems: Problems) -> None:
    if not shape:
        upstream = "at least one point must be specified"
        problems.add(path, "at least one point", shape, ProblemKind.REQUIRED, upstream)
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            expected = f"a utilization above that of the point before, {shape[i - 1].utilization}"
            upstream, got = NOT_SORTED, shape[i].utilization
            problems.add(f"{path}[{i}].utilization", expected, got, upstream=upstream)
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            expected = "a utilization from 0 to 100"
            where, upstream = f"{path}[{i}].utilization", "not in valid range [0, 100]"
            problems.add(where, expected, point.utilization, upstream=upstream)
        if not 0 <= point.score <= 10:
            where, upstream = f"{path}[{i}].score", "not in valid range [0, 10]"
            problems.add(where, "a score from 0 to 10", point.score, upstream=upstream)


def _balanced_allocation(
    args: NodeResourcesBalancedAllocationArgs, path: str, problems: Problems
) -> None:
    names = [spec.name for spec in args.resources]
    for i, spec in enumerate(args.resources):
        where = f"{path}.resources[{i}]"
        if spec.name in names[:i]:
            expected = "each resource once"
            problems.add(f"{where}.name", expected, spec.name, ProblemKind.DUPLICATE)
        if spec.weight != 1:
            problems.add(f"{where}.weight", "1", spec.weight, upstream="must be 1")


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str, problems: Problems) -> None:
    constraints, type_path = args.default_constraints, f"{path}.defaultingType"
    if args.defaulting_type not in DEFAULTING_TYPES:
        _unsupported(type_path, DEFAULTING_TYPES, args.defaulting_type, problems)
    elif args.defaulting_type == SYSTEM_DEFAULTING and constraints:
        expected, upstream = (
            "List when there are defaultConstraints",
            "when .defaultConstraints are not empty",
        )
        problems.add(type_path, expected, args.defaulting_type, upstream=upstream)
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        where = f"{path}.defaultConstraints[{i}]"
        _default_constraint(constraint, where, problems)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            expected = "each pair of topologyKey and whenUnsatisfiable once"
            words = Upstream(("",), f"{{{pair[0]}, {pair[1]}}}")
            problems.add(where, expected, ", ".join(pair), ProblemKind.DUPLICATE, words)
        seen.add(pair)


def _default_constraint(
    constraint: TopologySpreadConstraint, path: str, problems: Problems
) -> None:
    if constraint.max_skew <= 0:
        upstream = "not in valid range (0, inf)"
        skew = constraint.max_skew
        problems.add(f"{path}.maxSkew", "a number above 0", skew, upstream=upstream)
    key, key_path, empty = constraint.topology_key, f"{path}.topologyKey", "can not be empty"
    if not key:
        problems.add(key_path, LABEL_KEY, None, ProblemKind.REQUIRED, empty)
    elif faults := key_faults(key):
        problems.add(key_path, LABEL_KEY, key, upstream=Upstream(faults))
    action, action_path = constraint.when_unsatisfiable, f"{path}.whenUnsatisfiable"
    if not action:
        expected = one_of(WHEN_UNSATISFIABLE)
        problems.add(action_path, expected, None, ProblemKind.REQUIRED, empty)
    elif action not in WHEN_UNSATISFIABLE:
        _unsupported(action_path, WHEN_UNSATISFIABLE, action, problems)
    if constraint.label_selector is not None:
        expected = "nothing, since each pod brings its own selector"
        got = Literally("a selector")
        upstream = "constraint must not define a selector, as they deduced for each pod"
        problems.add(f"{path}.labelSelector", expected, got, ProblemKind.FORBIDDEN, upstream)


def _volume_binding(args: VolumeBindingArgs, path: str, problems: Problems) -> None:
    timeout = args.bind_timeout_seconds
    if timeout < 0:
        upstream = "invalid BindTimeoutSeconds, should not be a negative value"
        where = f"{path}.bindTimeoutSeconds"
        problems.add(where, "a number not below 0", timeout, upstream=upstream)
    if args.shape is not None:
        expected = "nothing while feature gate StorageCapacityScoring is off"
        upstream = (
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        )
        problems.add(f"{path}.shape", expected, args.shape, upstream=upstream)


def _dynamic_resources(args: DynamicResourcesArgs, path: str, problems: Problems) -> None:
    if args.filter_timeout_s is not None and args.filter_timeout_s < 0:
        got = seconds(args.filter_timeout_s)
        where, upstream = f"{path}.filterTimeout", "must be zero or positive"
        problems.add(where, "a duration not below 0s", got, upstream=upstream)
    if args.binding_timeout_s is not None and args.binding_timeout_s < 1:
        got = seconds(args.binding_timeout_s)
        where, upstream = f"{path}.bindingTimeout", "must be at least 1 second"
        problems.add(where, "a duration of at least 1s", got, upstream=upstream)


def _unsupported(path: str, choices: tuple[str, ...], got: str, problems: Problems) -> None:
    problems.add(path, one_of(choices), got, ProblemKind.UNSUPPORTED, supported(choices))


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
