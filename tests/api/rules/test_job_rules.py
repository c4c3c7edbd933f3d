"""Faults of Jobs and CronJobs, in the API server's words."""

from typing import Any

import pytest

from .faults import faults

CONTAINERS = [{"name": "c", "image": "i"}]
TEMPLATE = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
INDEXED = {"completionMode": "Indexed", "completions": 3}
ONE_OF = "OnExitCodes and OnPodConditions is"
POLICY = "spec.podFailurePolicy.rules[0]"
CODES = {"operator": "In", "values": [1]}


def failing(**rule: Any) -> dict[str, Any]:
    """A job with one rule for failures."""
    return {"podFailurePolicy": {"rules": [rule]}}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param(INDEXED, [], id="valid"),
        pytest.param(
            {"manualSelector": True},
            ["spec.selector: Required value"],
            id="a selector of its own that is missing",
        ),
        pytest.param(
            {"manualSelector": True, "selector": {"matchLabels": {"app": "web"}}},
            [
                "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`"
            ],
            id="a selector of its own that selects other pods",
        ),
        pytest.param(
            {"maxFailedIndexes": 1, **INDEXED},
            ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"],
            id="failed indexes without their limit",
        ),
        pytest.param(
            {"backoffLimitPerIndex": 1},
            ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
            id="a limit per index without indexes",
        ),
        pytest.param(
            {"completionMode": "Indexed"},
            ["spec.completions: Required value: when completion mode is Indexed"],
            id="indexes without a number",
        ),
        pytest.param(
            {**INDEXED, "parallelism": 100_001},
            [
                "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion "
                "mode is Indexed"
            ],
            id="too many at once",
        ),
        pytest.param(
            {**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 4},
            ["spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions"],
            id="more failures than indexes",
        ),
        pytest.param(
            {
                **INDEXED,
                "completions": 200_000,
                "backoffLimitPerIndex": 1,
                "maxFailedIndexes": 100_001,
            },
            [
                "spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000",
                "spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 10000 when completions "
                "are above 100000 and used with backoff limit per index",
            ],
            id="too many failures of many indexes",
        ),
        pytest.param(
            {**INDEXED, "completions": 200_000, "backoffLimitPerIndex": 1, "parallelism": 10_001},
            [
                "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are "
                "above 100000 and used with backoff limit per index",
            ],
            id="many indexes without a limit of failures",
        ),
        pytest.param(
            {"managedBy": ""}, ["spec.managedBy: Required value"], id="an empty controller"
        ),
        pytest.param(
            {"managedBy": "acme"},
            [
                'spec.managedBy: Invalid value: "acme": must be a domain-prefixed path (such as "acme.io/foo")'
            ],
            id="a controller without a domain",
        ),
        pytest.param(
            {"managedBy": "acme.io/" + "x" * 60},
            ["spec.managedBy: Too long: may not be more than 63 bytes"],
            id="a long controller",
        ),
        pytest.param(
            {"template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Always"}}},
            [
                'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
            ],
            id="pods that always restart",
        ),
        pytest.param(
            {
                "template": {"spec": {"containers": CONTAINERS, "restartPolicy": "OnFailure"}},
                **failing(action="Count", onExitCodes=CODES),
            },
            [
                'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when '
                "podFailurePolicy is specified"
            ],
            id="restarts with a policy for failures",
        ),
        pytest.param(
            failing(onExitCodes=CODES),
            [
                f'{POLICY}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'
            ],
            id="a rule without an action",
        ),
        pytest.param(
            failing(action="FailIndex", onExitCodes=CODES),
            [
                f'{POLICY}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set'
            ],
            id="a rule about indexes without their limit",
        ),
        pytest.param(
            failing(action="Stop", onExitCodes=CODES),
            [
                f'{POLICY}.action: Unsupported value: "Stop": supported values: "Count", "FailIndex", "FailJob", '
                '"Ignore"'
            ],
            id="an unknown action",
        ),
        pytest.param(
            failing(action="Count"),
            [f"{POLICY}: Invalid value: specifying one of {ONE_OF} required"],
            id="a rule about nothing",
        ),
        pytest.param(
            failing(
                action="Count",
                onExitCodes=CODES,
                onPodConditions=[{"type": "Ready", "status": "Maybe"}],
            ),
            [
                f'{POLICY}.onPodConditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", '
                '"Unknown"',
                f"{POLICY}: Invalid value: specifying both {ONE_OF} not supported",
            ],
            id="a rule about codes and conditions",
        ),
        pytest.param(
            failing(
                action="Count",
                onExitCodes={"operator": "In", "values": [3, 0, 3], "containerName": "x"},
            ),
            [
                f'{POLICY}.onExitCodes.containerName: Invalid value: "x": must be one of the container or '
                "initContainer names in the pod template",
                f"{POLICY}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
                f"{POLICY}.onExitCodes.values[2]: Duplicate value: 3",
                f"{POLICY}.onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
            ],
            id="codes that are wrong in every way",
        ),
        pytest.param(
            failing(action="Count", onExitCodes={"operator": "In"}),
            [f"{POLICY}.onExitCodes.values: Invalid value: []: at least one value is required"],
            id="no codes",
        ),
        pytest.param(
            {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            [
                'spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: '
                "requires indexed completion mode"
            ],
            id="a policy for success without indexes",
        ),
        pytest.param(
            {**INDEXED, "successPolicy": {"rules": []}},
            [
                "spec.successPolicy.rules: Required value: at least one rules must be specified when the "
                "successPolicy is specified"
            ],
            id="a policy for success without rules",
        ),
        pytest.param(
            {**INDEXED, "successPolicy": {"rules": [{}, {"succeededCount": 4}]}},
            [
                "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes "
                "must be specified",
                "spec.successPolicy.rules[1].succeededCount: Invalid value: 4: must be less than or equal to 3 (the "
                "number of specified completions)",
            ],
            id="rules for success of nothing, and of too many",
        ),
    ],
)
def test_jobs(spec: dict[str, Any], found: list[str]) -> None:
    assert faults("jobs.batch", spec={"template": TEMPLATE, **spec}) == found


def test_the_last_pod_of_an_indexed_job_has_a_valid_name() -> None:
    name = "x" * 62
    last = f"{name}-2"

    found = faults("jobs.batch", metadata={"name": name}, spec={"template": TEMPLATE, **INDEXED})

    assert found == [
        f'metadata.name: Invalid value: "{name}": will not able to create pod with invalid DNS label: {last}'
    ]


TZ = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({"timeZone": "Europe/Berlin"}, [], id="valid"),
        pytest.param({"schedule": ""}, ["spec.schedule: Required value"], id="no schedule"),
        pytest.param(
            {"schedule": "TZ=UTC 0 * * * *"},
            [f'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": {TZ}'],
            id="a schedule with a time zone",
        ),
        pytest.param(
            {"timeZone": ""},
            ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
            id="an empty time zone",
        ),
        pytest.param(
            {"timeZone": "../Berlin"},
            ['spec.timeZone: Invalid value: "../Berlin": unknown time zone ../Berlin'],
            id="a time zone that is a path",
        ),
        pytest.param(
            {"timeZone": "Local"},
            [
                'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in '
                "https://www.iana.org/time-zones"
            ],
            id="the time zone of the machine",
        ),
        pytest.param(
            {"timeZone": "Europe/Atlantis"},
            ['spec.timeZone: Invalid value: "Europe/Atlantis": unknown time zone Europe/Atlantis'],
            id="an unknown time zone",
        ),
        pytest.param(
            {
                "jobTemplate": {
                    "spec": {"template": TEMPLATE, "selector": {}, "manualSelector": True}
                }
            },
            [
                "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
                'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
            ],
            id="a selector of its own",
        ),
        pytest.param(
            {"successfulJobsHistoryLimit": -1},
            [
                "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"
            ],
            id="a negative limit",
        ),
    ],
)
def test_cron_jobs(spec: dict[str, Any], found: list[str]) -> None:
    whole = {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}, **spec}

    assert faults("cronjobs.batch", spec=whole) == found


def test_the_name_of_a_cron_job_leaves_room_for_that_of_a_job() -> None:
    name = "x" * 53
    spec = {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}}

    assert faults("cronjobs.batch", metadata={"name": name}, spec=spec) == [
        f'metadata.name: Invalid value: "{name}": must be no more than 52 characters'
    ]
