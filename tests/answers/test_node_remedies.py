"""Counterfactuals of pods that a node's name, labels or features keep away from it."""

from typing import Any

import pytest

from bayplan.answers import find_counterfactual
from bayplan.answers.remedies.node import labels_meeting
from bayplan.api.selectors import Requirement
from tests.answers.changed_cluster import REQUIRED, ZONE, check, make_view, web_pod, zone_node

TERMS = f"/spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms"


def asking(*terms: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod that requires a node of one of these terms."""
    return web_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*terms]}}}, **spec)


def labelled(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": [*conditions]}


def named(operator: str, name: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    """A term for nodes of this name, or of any other, that meet the conditions."""
    field = {"key": "metadata.name", "operator": operator, "values": [name]}
    return {"matchFields": [field]} | (labelled(*conditions) if conditions else {})


def one(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": [*values]} if values else {})


HDD = zone_node(labels={"disk": "hdd"})
GOOD_ZONE = one(ZONE, "In", "a")


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param(
            [zone_node(), zone_node("m"), web_pod(node="m")],
            [("replace Pod/p /spec/nodeName", "n", "ask for node n")],
            id="the name of another node",
        ),
        pytest.param(
            [zone_node(), asking(labelled(one("disk", "In", "ssd", "nvme"), GOOD_ZONE))],
            [("add Node/n /metadata/labels/disk", "ssd", "label node n with disk=ssd")],
            id="one of several values, the first of which is enough",
        ),
        pytest.param(
            [HDD, asking(labelled(one("disk", "In", "ssd")))],
            [("replace Node/n /metadata/labels/disk", "ssd", "label node n with disk=ssd")],
            id="another value than the node has",
        ),
        pytest.param(
            [HDD, asking(labelled(one("disk", "NotIn", "hdd")))],
            [("remove Node/n /metadata/labels/disk", None, "remove label disk from node n")],
            id="a value that the node must not have",
        ),
        pytest.param(
            [HDD, asking(labelled(one("disk", "DoesNotExist")))],
            [("remove Node/n /metadata/labels/disk", None, "remove label disk from node n")],
            id="a label that the node must not have",
        ),
        pytest.param(
            [zone_node(), asking(labelled(one("gpu", "Exists")))],
            [("add Node/n /metadata/labels/gpu", "true", "label node n with gpu=true")],
            id="a label of any value",
        ),
        pytest.param(
            [zone_node(labels={"cores": "2"}), asking(labelled(one("cores", "Gt", "4")))],
            [("replace Node/n /metadata/labels/cores", "5", "label node n with cores=5")],
            id="a number that is too small",
        ),
        pytest.param(
            [zone_node(labels={"age": "9"}), asking(labelled(one("age", "Lt", "4")))],
            [("replace Node/n /metadata/labels/age", "3", "label node n with age=3")],
            id="a number that is too large",
        ),
        pytest.param(
            [zone_node(), asking(labelled(one(ZONE, "In", "b")))],
            [
                (
                    f"add Pod/p {TERMS}/0/matchExpressions/0/values/-",
                    "a",
                    f"let the node affinity allow {ZONE}=a",
                )
            ],
            id="the affinity allows one more zone, the node does not move",
        ),
        pytest.param(
            [
                zone_node(),
                asking(
                    labelled(one(ZONE, "In", "b"), one("disk", "In", "ssd")),
                    labelled(one(ZONE, "In", "b"), one("disk", "In", "nvme")),
                    named("In", "m"),
                ),
            ],
            [
                (
                    f"replace Pod/p {TERMS}/2/matchFields/0/values",
                    ["n"],
                    "let the node affinity name n",
                )
            ],
            id="the term with the fewest conditions unmet names the node",
        ),
        pytest.param(
            [zone_node(), asking(named("NotIn", "n", GOOD_ZONE))],
            [
                (
                    f"remove Pod/p {TERMS}/0/matchFields/0",
                    None,
                    "drop the condition on metadata.name from the node affinity",
                )
            ],
            id="the node is no longer left out by name",
        ),
        pytest.param(
            [zone_node(), asking(named("NotIn", "n"))],
            [
                (
                    f"remove Pod/p /spec/affinity/nodeAffinity/{REQUIRED}",
                    None,
                    "drop the required node affinity",
                )
            ],
            id="a term of one condition cannot lose it",
        ),
        pytest.param(
            [
                zone_node(),
                asking(labelled(one("disk", "In", "ssd"), one("disk", "In", "nvme"), GOOD_ZONE)),
            ],
            [
                (
                    f"remove Pod/p {TERMS}/0/matchExpressions/{i}",
                    None,
                    "drop the condition on disk from the node affinity",
                )
                for i in (1, 0)
            ],
            id="conditions that no label can meet together",
        ),
        pytest.param(
            [
                HDD,
                asking(
                    labelled(one("disk", "In", "ssd"), GOOD_ZONE), nodeSelector={"disk": "nvme"}
                ),
            ],
            [
                ("replace Pod/p /spec/nodeSelector/disk", "hdd", "select disk=hdd instead of nvme"),
                (
                    f"add Pod/p {TERMS}/0/matchExpressions/0/values/-",
                    "hdd",
                    "let the node affinity allow disk=hdd",
                ),
            ],
            id="a selector and an affinity that contradict each other",
        ),
        pytest.param(
            [
                zone_node(),
                asking(named("NotIn", "n"), nodeSelector={ZONE: "a", "disk": "ssd"}),
            ],
            [
                (
                    f"remove Pod/p /spec/affinity/nodeAffinity/{REQUIRED}",
                    None,
                    "drop the required node affinity",
                ),
                ("remove Pod/p /spec/nodeSelector/disk", None, "no longer select disk=ssd"),
            ],
            id="what the node meets stays in the selector",
        ),
        pytest.param(
            [zone_node(), web_pod(hostNetwork=True, hostUsers=False)],
            [
                (
                    "add Node/n /status/declaredFeatures/-",
                    "UserNamespacesHostNetworkSupport",
                    "feature UserNamespacesHostNetworkSupport on node n",
                )
            ],
            id="only the feature that the pod uses",
        ),
    ],
)
def test_the_reported_change(
    manifests: list[dict[str, Any]], expected: list[tuple[str, Any, str]]
) -> None:
    view, pod = make_view(*manifests)

    found = find_counterfactual(view, pod, "n")

    told = [
        (f"{c.kind} {c.object.kind}/{c.object.name} {c.path}", c.to, c.text) for c in found.changes
    ]
    assert told == expected
    check(found, manifests, pod)


@pytest.mark.parametrize(
    ("requirements", "changes"),
    [
        pytest.param([("a", "In", "1")], {}, id="nothing to change where all are met"),
        pytest.param(
            [("b", "In", "2"), ("a", "DoesNotExist")], {"b": "2", "a": None}, id="several labels"
        ),
        pytest.param([("b", "In", "2"), ("b", "NotIn", "2")], None, id="a contradiction"),
        pytest.param([("b", "NotIn", "2"), ("b", "Exists")], {"b": "true"}, id="no contradiction"),
        pytest.param([("b", "In")], None, id="one of no values"),
        pytest.param([("b", "Gt")], None, id="more than no number"),
        pytest.param([("b", "Gt", str(2**63 - 1))], None, id="more than the largest number"),
        pytest.param([("b", "Near", "1")], None, id="an operator that does not exist"),
    ],
)
def test_labels_that_meet_requirements(
    requirements: list[tuple[str, ...]], changes: dict[str, str | None] | None
) -> None:
    wanted = [
        Requirement(key=key, operator=operator, values=tuple(values))
        for key, operator, *values in requirements
    ]

    assert labels_meeting(wanted, {"a": "1"}) == changes
