"""kube-scheduler's wording of each problem with plugin arguments."""

from typing import Any

import pytest

from tests.config.upstream_words import NAME_RULE, RANGE, Error, errors_of

ARGS = "profiles[0].pluginConfig[0].args"


def one_args(plugin: str, **args: Any) -> dict[str, Any]:
    return {"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}


def constraint(**fields: Any) -> dict[str, Any]:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    return one_args(
        "PodTopologySpread", defaultConstraints=[{**base, **fields}], defaultingType="List"
    )


def requirement(
    key: str, operator: str, *values: str, where: str = "matchExpressions"
) -> dict[str, Any]:
    term = {where: [{"key": key, "operator": operator, "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return one_args("NodeAffinity", addedAffinity=added)


_TERM = f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
_FIRST = f"{ARGS}.defaultConstraints[0]"
_ZERO = "cannot be zero at the same time as"
ARGUMENTS: list[tuple[str, dict[str, Any], list[Error]]] = [
    (
        "preemption: both zero",
        one_args("DefaultPreemption", minCandidateNodesPercentage=0, minCandidateNodesAbsolute=0),
        [
            (
                f"{ARGS}.minCandidateNodesAbsolute",
                "Invalid",
                f"{_ZERO} minCandidateNodesPercentage",
                "0",
            ),
            (
                f"{ARGS}.minCandidateNodesPercentage",
                "Invalid",
                f"{_ZERO} minCandidateNodesAbsolute",
                "0",
            ),
        ],
    ),
    (
        "preemption: a negative number",
        one_args("DefaultPreemption", minCandidateNodesAbsolute=-1),
        [(f"{ARGS}.minCandidateNodesAbsolute", "Invalid", "not in valid range [0, inf)", "-1")],
    ),
    (
        "preemption: a share above all",
        one_args("DefaultPreemption", minCandidateNodesPercentage=101),
        [(f"{ARGS}.minCandidateNodesPercentage", "Invalid", RANGE, "101")],
    ),
    (
        "affinity: a negative weight",
        one_args("InterPodAffinity", hardPodAffinityWeight=-1),
        [(f"{ARGS}.hardPodAffinityWeight", "Invalid", RANGE, "-1")],
    ),
    (
        "balance: a weight and a name twice",
        one_args(
            "NodeResourcesBalancedAllocation",
            resources=[{"name": "cpu", "weight": 2}, {"name": "cpu"}],
        ),
        [
            (f"{ARGS}.resources[0].weight", "Invalid", "must be 1", "2"),
            (f"{ARGS}.resources[1].name", "Duplicate", "", '"cpu"'),
        ],
    ),
    (
        "volumes: a negative timeout",
        one_args("VolumeBinding", bindTimeoutSeconds=-1),
        [
            (
                f"{ARGS}.bindTimeoutSeconds",
                "Invalid",
                "invalid BindTimeoutSeconds, should not be a negative value",
                "-1",
            )
        ],
    ),
    (
        "devices: timeouts",
        one_args("DynamicResources", filterTimeout="-1s", bindingTimeout="999ms"),
        [
            (f"{ARGS}.bindingTimeout", "Invalid", "must be at least 1 second", '"999ms"'),
            (f"{ARGS}.filterTimeout", "Invalid", "must be zero or positive", '"-1s"'),
        ],
    ),
    (
        "spread: another defaulting",
        one_args("PodTopologySpread", defaultingType="Best"),
        [
            (
                f"{ARGS}.defaultingType",
                "NotSupported",
                'supported values: "System", "List"',
                '"Best"',
            )
        ],
    ),
    (
        "spread: no skew",
        constraint(maxSkew=0),
        [(f"{_FIRST}.maxSkew", "Invalid", "not in valid range (0, inf)", "0")],
    ),
    (
        "spread: no key",
        constraint(topologyKey=""),
        [(f"{_FIRST}.topologyKey", "Required", "can not be empty", None)],
    ),
    (
        "spread: a bad key",
        constraint(topologyKey="not valid!"),
        [(f"{_FIRST}.topologyKey", "Invalid", NAME_RULE, '"not valid!"')],
    ),
    (
        "spread: no action",
        constraint(whenUnsatisfiable=""),
        [(f"{_FIRST}.whenUnsatisfiable", "Required", "can not be empty", None)],
    ),
    (
        "spread: another action",
        constraint(whenUnsatisfiable="Maybe"),
        [
            (
                f"{_FIRST}.whenUnsatisfiable",
                "NotSupported",
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
                '"Maybe"',
            )
        ],
    ),
    (
        "spread: a selector",
        constraint(labelSelector={}),
        [
            (
                f"{_FIRST}.labelSelector",
                "Forbidden",
                "constraint must not define a selector, as they deduced for each pod",
                None,
            )
        ],
    ),
    (
        "added affinity: another operator",
        requirement("a", "Between", "1"),
        [
            (
                f"{_TERM}.matchExpressions[0].operator",
                "NotSupported",
                'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
                '"Between"',
            )
        ],
    ),
    (
        "added affinity: an empty key",
        requirement("", "Exists"),
        [
            (
                f"{_TERM}.matchExpressions[0].key",
                "Invalid",
                f"name part must be non-empty; {NAME_RULE}",
                '""',
            )
        ],
    ),
    (
        "added affinity: no number",
        requirement("a", "Gt", "x"),
        [
            (
                f"{_TERM}.matchExpressions[0].values[0]",
                "Invalid",
                "for 'Gt', 'Lt' operators, the value must be an integer",
                '"x"',
            )
        ],
    ),
    (
        "added affinity: a field that exists",
        requirement("metadata.name", "Exists", where="matchFields"),
        [
            (
                f"{_TERM}.matchFields[0].operator",
                "NotSupported",
                'supported values: "In", "NotIn"',
                '"Exists"',
            )
        ],
    ),
    (
        "fit: nothing is said before the plugin is made",
        one_args("NodeResourcesFit", ignoredResources=["-"]),
        [],
    ),
]


@pytest.mark.parametrize(
    ("data", "errors"),
    [pytest.param(data, errors, id=name) for name, data, errors in ARGUMENTS],
)
def test_the_words(data: dict[str, Any], errors: list[Error]) -> None:
    assert errors_of(data) == errors
