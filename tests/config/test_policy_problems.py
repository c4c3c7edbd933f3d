"""Policies: rejected input and its messages."""

from typing import Any

import pytest

from bayplan.config.legacy.policy_plugins import PREDICATES, PRIORITIES
from bayplan.config.load import parse_config
from bayplan.errors import ConfigError

HEAD = {"kind": "Policy", "apiVersion": "v1"}
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def problems_of(**policy: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config({**HEAD, **policy}, "p")
    return [line.removeprefix("p: ") for line in str(caught.value).splitlines()]


def predicate(name: str, **argument: Any) -> dict[str, Any]:
    return {"name": name, "argument": argument}


def priority(name: str, weight: int, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, "argument": argument}


PROBLEMS = [
    pytest.param(
        {"hardPodAffinitySymmetricWeight": 101},
        "hardPodAffinitySymmetricWeight: expected a weight from 0 to 100; got 101",
        id="hard weight too large",
    ),
    pytest.param(
        {"hardPodAffinitySymmetricWeight": -1},
        "hardPodAffinitySymmetricWeight: expected a weight from 0 to 100; got -1",
        id="hard weight negative",
    ),
    *(
        pytest.param(
            {"priorities": [{"name": "NodeAffinityPriority", "weight": weight}]},
            f"priorities[0].weight: expected a weight from 1 to 2147483647; got {weight}",
            id=f"weight {weight}",
        )
        for weight in (0, -3, 2**31)
    ),
    pytest.param(
        {
            "priorities": [
                priority("a", 1, requestedToCapacityRatioArguments={"shape": SHAPE}),
                priority("b", 1, requestedToCapacityRatioArguments={"shape": SHAPE}),
            ]
        },
        'priorities[1].argument: expected one priority of this kind, and a is one; got "b"',
        id="two ratios",
    ),
    pytest.param(
        {
            "priorities": [
                priority("a", 1, labelPreference={"label": "x"}),
                priority("b", 2, labelPreference={"label": "y"}),
            ]
        },
        "priorities[1].weight: expected 1, which is the weight of a; got 2",
        id="label preferences of different weight",
    ),
    pytest.param(
        {
            "priorities": [
                priority("a", 1, serviceAntiAffinity={"label": "x"}),
                priority("b", 2, serviceAntiAffinity={"label": "y"}),
            ]
        },
        "priorities[1].weight: expected 1, which is the weight of a; got 2",
        id="service anti-affinities of different weight",
    ),
    pytest.param(
        {"priorities": [priority("a", 1, requestedToCapacityRatioArguments={})]},
        "priorities[0].argument.requestedToCapacityRatioArguments.shape: "
        "expected at least one point; got an empty list",
        id="a ratio without a shape",
    ),
    pytest.param(
        {
            "priorities": [
                priority("a", 1, labelPreference={}, serviceAntiAffinity={"label": "y"}),
            ]
        },
        "priorities[0].argument: expected exactly one of serviceAntiAffinity, labelPreference and "
        "requestedToCapacityRatioArguments; got a mapping",
        id="two arguments of a priority",
    ),
    pytest.param(
        {"predicates": [predicate("a", serviceAffinity={}, labelsPresence={})]},
        "predicates[0].argument: expected either serviceAffinity or labelsPresence; got a mapping",
        id="two arguments of a predicate",
    ),
    pytest.param(
        {"extenders": [{"prioritizeVerb": "p"}]},
        "extenders[0].weight: expected a weight above 0, since prioritizeVerb is set; got 0",
        id="an extender without weight",
    ),
    pytest.param(
        {"extenders": [{"bindVerb": "a"}, {"bindVerb": "b"}]},
        "extenders: expected at most one extender with a bindVerb; got 2 of them",
        id="two binders",
    ),
    pytest.param(
        {"extenders": [{"httpTimeout": "5s"}]},
        'extenders[0].httpTimeout: expected a whole number; got "5s"',
        id="a timeout as text",
    ),
    pytest.param(
        {"predicate": []},
        "predicate: expected predicates; got an unknown field",
        id="an unknown field",
    ),
    pytest.param(
        {
            "predicates": [
                predicate("a", labelsPresence={"labels": ["x"], "presence": True}),
                predicate("b", labelsPresence={"labels": ["x"], "presence": False}),
            ]
        },
        'predicates.presentLabels[0]: expected a label other than absentLabels[0]; got "x"',
        id="a label both needed and avoided",
    ),
]


@pytest.mark.parametrize(("policy", "problem"), PROBLEMS)
def test_invalid_policies_are_rejected(policy: dict[str, Any], problem: str) -> None:
    assert problems_of(**policy) == [problem]


@pytest.mark.parametrize("section", ["predicates", "priorities"])
def test_an_unknown_name_without_argument(section: str) -> None:
    (problem,) = problems_of(
        **{
            section: [{"name": "Best", "weight": 1}]
            if section == "priorities"
            else [{"name": "Best"}]
        }
    )

    assert problem.startswith(f"{section}[0].name: expected ")
    assert problem.endswith(', or an argument; got "Best"')
    known = PREDICATES if section == "predicates" else PRIORITIES
    assert all(name in problem for name in known)
