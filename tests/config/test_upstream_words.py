"""kube-scheduler's wording of each problem: field, type, detail and value."""

from typing import Any

import pytest

from tests.config.upstream_words import GROUP, NAME_RULE, RANGE, Error, errors_of

KEY_RULE = (
    NAME_RULE.replace("name part", "a valid label key")
    + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
PREFIX_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
    "'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{GROUP}")'


def election(**fields: Any) -> dict[str, Any]:
    return {"leaderElection": fields}


def managed(*names: str) -> dict[str, Any]:
    return {"extenders": [{"managedResources": [{"name": name} for name in names]}]}


SETTINGS: list[tuple[str, dict[str, Any], list[Error]]] = [
    (
        f"parallelism {value}",
        {"parallelism": value},
        [("parallelism", "Invalid", "should be an integer value greater than zero", str(value))],
    )
    for value in (0, -1)
]
SETTINGS += [
    (
        f"percentage {value}",
        {"percentageOfNodesToScore": value},
        [("percentageOfNodesToScore", "Invalid", "not in valid range [0-100]", str(value))],
    )
    for value in (-1, 101)
]
SETTINGS += [
    (
        f"percentage of a profile {value}",
        {"profiles": [{"percentageOfNodesToScore": value}]},
        [
            (
                "profiles[0].percentageOfNodesToScore",
                "Invalid",
                "not in valid range [0-100]",
                str(value),
            )
        ],
    )
    for value in (-1, 101)
]
SETTINGS += [
    (
        "no backoff",
        {"podInitialBackoffSeconds": 0},
        [("podInitialBackoffSeconds", "Invalid", "must be greater than 0", "0")],
    ),
    (
        "backoffs the wrong way round",
        {"podInitialBackoffSeconds": 9, "podMaxBackoffSeconds": 8},
        [
            (
                "podMaxBackoffSeconds",
                "Invalid",
                "must be greater than or equal to PodInitialBackoffSeconds",
                "8",
            )
        ],
    ),
    (
        "a negative burst",
        {"clientConnection": {"burst": -1}},
        [("clientConnection.burst", "Invalid", "must be non-negative", "-1")],
    ),
    (
        "the value of another field",
        election(leaseDuration="5s"),
        [
            (
                "leaderElection.leaseDuration",
                "Invalid",
                "must be greater than `RenewDeadline`",
                '"10s"',
            )
        ],
    ),
    (
        "a negative deadline",
        election(renewDeadline="-90s"),
        [("leaderElection.renewDeadline", "Invalid", "must be greater than zero", '"-1m30s"')],
    ),
    (
        "a negative period",
        election(retryPeriod="-1500ms"),
        [("leaderElection.retryPeriod", "Invalid", "must be greater than zero", '"-1.5s"')],
    ),
    (
        "another lock",
        election(resourceLock="endpoints"),
        [
            (
                "leaderElection.resourceLock",
                "Invalid",
                'resourceLock value must be "leases"',
                '"endpoints"',
            )
        ],
    ),
    ("no election, no rules", election(leaderElect=False, resourceLock="x", retryPeriod="-1s"), []),
]

PROFILES: list[tuple[str, dict[str, Any], list[Error]]] = [
    (
        "names missing",
        {"profiles": [{}, {"schedulerName": "a"}]},
        [("profiles[0].schedulerName", "Required", "", None)],
    ),
    (
        "one name twice",
        {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
        [("profiles[1].schedulerName", "Duplicate", "", "{}")],
    ),
    (
        "two queue sorts",
        {"profiles": [{"plugins": {"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}}]},
        [
            (
                "profiles[0].plugins.queueSort.Enabled",
                "Invalid",
                "only one queue sort plugin can be enabled",
                "2",
            )
        ],
    ),
    (
        "different queue sorts",
        {
            "profiles": [
                {"schedulerName": "a"},
                {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "B"}]}}},
            ]
        },
        [
            (
                "profiles[1].plugins.queueSort",
                "Invalid",
                "must be the same for all profiles",
                "{}",
            )
        ],
    ),
    (
        "arguments twice",
        {"profiles": [{"pluginConfig": [{"name": "Foo"}, {"name": "Foo"}]}]},
        [("profiles[0].pluginConfig[1]", "Duplicate", "", '"Foo"')],
    ),
    (
        "arguments twice, and wrong",
        {
            "profiles": [
                {
                    "pluginConfig": [
                        {"name": "InterPodAffinity"},
                        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}},
                    ]
                }
            ]
        },
        [
            ("profiles[0].pluginConfig[1]", "Duplicate", "", '"InterPodAffinity"'),
            (
                "profiles[0].pluginConfig[1].args.hardPodAffinityWeight",
                "Invalid",
                RANGE,
                "101",
            ),
        ],
    ),
]
PROFILES += [
    (
        f"{plugin} at {point}",
        {"profiles": [{"plugins": {point: {"enabled": [{"name": plugin}]}}}]},
        [(f"profiles[0].plugins.{point}.enabled[0]", "Invalid", REMOVED, f'"{plugin}"')],
    )
    for plugin, point in (
        ("EBSLimits", "filter"),
        ("GCEPDLimits", "preEnqueue"),
        ("AzureDiskLimits", "postBind"),
        ("CinderLimits", "score"),
    )
]
PROFILES += [
    (
        f"arguments of {plugin}",
        {"profiles": [{"pluginConfig": [{"name": plugin}]}]},
        [("profiles[0].pluginConfig[0]", "Invalid", REMOVED, f'"{plugin}"')],
    )
    for plugin in ("EBSLimits", "CinderLimits")
]

EXTENDERS: list[tuple[str, dict[str, Any], list[Error]]] = [
    (
        "a prioritizer without weight",
        {"extenders": [{"prioritizeVerb": "p", "weight": -2}]},
        [
            (
                "extenders[0].weight",
                "Invalid",
                "must have a positive weight applied to it",
                "-2",
            )
        ],
    ),
    (
        "three binders",
        {"extenders": [{"bindVerb": "b"}] * 3},
        [
            (
                "extenders",
                "Invalid",
                "only one extender can implement bind",
                '"found 3 extenders implementing bind"',
            )
        ],
    ),
]
_WHERE = "extenders[0].managedResources[0].name"
EXTENDERS += [
    (
        f"resource {name!r}",
        managed(name),
        sorted((_WHERE, "Invalid", detail, f'"{name}"') for detail in details),
    )
    for name, details in (
        ("", ["name part must be non-empty", NAME_RULE]),
        ("example.com/", ["name part must be non-empty", NAME_RULE]),
        ("a/b/c", [KEY_RULE]),
        ("/x", ["prefix part must be non-empty"]),
        ("Example.com/x", [PREFIX_RULE]),
        ("bad name", [NAME_RULE]),
        ("example.com/" + "x" * 64, ["name part must be no more than 63 bytes"]),
        ("cpu", ["is an invalid extended resource name"]),
        ("kubernetes.io/x", ["is an invalid extended resource name"]),
        ("requests.example.com/x", ["is an invalid extended resource name"]),
    )
]
EXTENDERS += [
    (
        "a resource twice",
        managed("example.com/a", "example.com/a"),
        [
            (
                "extenders[0].managedResources[1].name",
                "Invalid",
                "duplicate extender managed resource name",
                '"example.com/a"',
            )
        ],
    )
]


@pytest.mark.parametrize(
    ("data", "errors"),
    [
        pytest.param(data, errors, id=name)
        for name, data, errors in (*SETTINGS, *PROFILES, *EXTENDERS)
    ],
)
def test_the_words(data: dict[str, Any], errors: list[Error]) -> None:
    assert errors_of(data) == errors
