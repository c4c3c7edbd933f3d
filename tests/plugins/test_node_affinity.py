"""NodeAffinity: nodeSelector, required and preferred terms, and those of the profile."""

from typing import Any

import pytest

from bayplan.api.pod import NodeAffinity as Affinity
from bayplan.api.pod import Pod
from bayplan.config.plugin_args import NodeAffinityArgs
from bayplan.framework import (
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    PreFilterResult,
    Status,
    unresolvable,
)
from bayplan.plugins.node_affinity import REASON, REASON_ADDED, REASON_CONFLICT, NodeAffinity
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance, check_rows_agree

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Term = dict[str, Any]

TABLE = make_table(
    make_node("a", labels={"disk": "ssd", "cores": "8"}),
    make_node("b", labels={"disk": "hdd", "cores": "16", "odd": "x"}),
    make_node("c", labels={"cores": "many"}),
)


def expressions(*triples: tuple[str, str, list[str]]) -> Term:
    return {"matchExpressions": [_requirement(*triple) for triple in triples]}


def fields(*triples: tuple[str, str, list[str]]) -> Term:
    return {"matchFields": [_requirement(*triple) for triple in triples]}


def _requirement(key: str, operator: str, values: list[str]) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": values}


def names(operator: str, *values: str) -> Term:
    return fields(("metadata.name", operator, list(values)))


def required(*terms: Term) -> dict[str, Any]:
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def preferred(*weighted: tuple[int, Term]) -> dict[str, Any]:
    return {PREFERRED: [{"weight": weight, "preference": term} for weight, term in weighted]}


def added(affinity: dict[str, Any]) -> NodeAffinity:
    """The plugin of a profile that adds `affinity` to every pod."""
    spec = make_pod(node_affinity=affinity).spec
    assert spec.affinity is not None
    args = NodeAffinityArgs(added_affinity=spec.affinity.node_affinity)
    return NodeAffinity.from_args(args, make_handle(TABLE))


def feasible(pod: Pod, plugin: NodeAffinity | None = None) -> str:
    """The names of the nodes that fit, in one word; every other node is refused as it should be."""
    verdict = (plugin or NodeAffinity()).filter_rows(CycleState(), pod, TABLE, ALL)
    for row in range(len(TABLE)):
        assert verdict.status(row).code in (Code.Success, Code.UnschedulableAndUnresolvable)
    return "".join(TABLE.names[row] for row in range(len(TABLE)) if verdict.feasible[row])


@pytest.mark.parametrize(
    ("term", "fits"),
    [
        pytest.param(expressions(("disk", "In", ["ssd"])), "a", id="In"),
        pytest.param(expressions(("disk", "In", ["ssd", "hdd"])), "ab", id="In with two values"),
        pytest.param(expressions(("disk", "NotIn", ["ssd"])), "bc", id="NotIn, also without key"),
        pytest.param(expressions(("disk", "Exists", [])), "ab", id="Exists"),
        pytest.param(expressions(("disk", "DoesNotExist", [])), "c", id="DoesNotExist"),
        pytest.param(expressions(("cores", "Gt", ["8"])), "b", id="Gt compares integers"),
        pytest.param(expressions(("cores", "Lt", ["9"])), "a", id="Lt, not as text"),
        pytest.param(expressions(("odd", "Gt", ["0"])), "", id="Gt on a text never holds"),
        pytest.param(expressions(("missing", "Lt", ["9"])), "", id="Lt on a missing key"),
        pytest.param(
            expressions(("disk", "Exists", []), ("cores", "Gt", ["8"])),
            "b",
            id="expressions of one term are ANDed",
        ),
        pytest.param(names("In", "b"), "b", id="the name of the node"),
        pytest.param(names("NotIn", "b"), "ac", id="any name but one"),
        pytest.param(names("In", "ghost"), "", id="the name of no node"),
        pytest.param(names("NotIn", "ghost"), "abc", id="not the name of no node"),
        pytest.param(
            {**expressions(("disk", "Exists", [])), **names("NotIn", "a")},
            "b",
            id="expressions and fields are ANDed",
        ),
        pytest.param(
            fields(("metadata.other", "In", ["x"])), "", id="another field is empty everywhere"
        ),
        pytest.param(
            fields(("metadata.other", "NotIn", ["x"])), "abc", id="another field is never x"
        ),
        pytest.param({}, "", id="the empty term matches nothing"),
    ],
)
def test_required_term(term: Term, fits: str) -> None:
    assert feasible(make_pod(node_affinity=required(term))) == fits


SSD = expressions(("disk", "In", ["ssd"]))
HDD = expressions(("disk", "In", ["hdd"]))


@pytest.mark.parametrize(
    ("pod", "fits"),
    [
        pytest.param(make_pod(), "abc", id="no wishes"),
        pytest.param(make_pod(node_selector={}), "abc", id="an empty selector"),
        pytest.param(make_pod(node_selector={"disk": "ssd"}), "a", id="nodeSelector"),
        pytest.param(
            make_pod(node_selector={"disk": "hdd", "odd": "y"}), "", id="all labels must be equal"
        ),
        pytest.param(make_pod(node_affinity=required(SSD, HDD)), "ab", id="terms are ORed"),
        pytest.param(make_pod(node_affinity=required()), "", id="no terms match nothing"),
        pytest.param(
            make_pod(node_affinity=required(SSD, HDD), node_selector={"cores": "8"}),
            "a",
            id="nodeSelector and affinity are ANDed",
        ),
        pytest.param(
            make_pod(node_affinity=required({}, SSD)), "a", id="an empty term is left out"
        ),
        pytest.param(make_pod(node_affinity=preferred((9, HDD))), "abc", id="a wish is no rule"),
    ],
)
def test_filter(pod: Pod, fits: str) -> None:
    assert feasible(pod) == fits


@pytest.mark.parametrize(
    "term",
    [
        pytest.param(expressions(("cores", "Gt", ["x"])), id="Gt with a text"),
        pytest.param(expressions(("cores", "Lt", ["1", "2"])), id="Lt with two values"),
        pytest.param(expressions(("disk", "In", [])), id="In without values"),
        pytest.param(expressions(("disk", "Exists", ["ssd"])), id="Exists with a value"),
        pytest.param(expressions(("-bad-", "Exists", [])), id="an invalid key"),
        pytest.param(expressions(("disk", "NotIn", ["not a value"])), id="an invalid value"),
        pytest.param(names("In", "b", "c"), id="two names"),
        pytest.param(names("NotIn"), id="no names"),
    ],
)
def test_a_term_that_cannot_be_used_is_left_out(term: Term) -> None:
    assert feasible(make_pod(node_affinity=required(term))) == ""
    assert feasible(make_pod(node_affinity=required(term, SSD))) == "a"


def test_reasons_are_kube_schedulers() -> None:
    assert REASON == "node(s) didn't match Pod's node affinity/selector"
    assert REASON_ADDED == "node(s) didn't match scheduler-enforced node affinity"
    assert REASON_CONFLICT == "pod affinity terms conflict"


def only(*node_names: str) -> PreFilterResult:
    return PreFilterResult(frozenset(node_names))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), SKIP, id="no wishes"),
        pytest.param(make_pod(node_affinity=preferred((1, SSD))), SKIP, id="preferred terms only"),
        pytest.param(make_pod(node_selector={"disk": "ssd"}), SUCCESS, id="nodeSelector"),
        pytest.param(make_pod(node_affinity=required(SSD)), SUCCESS, id="labels do not narrow"),
        pytest.param(make_pod(node_affinity=required()), SUCCESS, id="no terms"),
        pytest.param(make_pod(node_affinity=required(names("In", "a"))), only("a"), id="a name"),
        pytest.param(
            make_pod(node_affinity=required(names("In", "a"), names("In", "b"))),
            only("a", "b"),
            id="the names of all terms together",
        ),
        pytest.param(
            make_pod(node_affinity=required(names("In", "a"), SSD)),
            SUCCESS,
            id="a term without a name: no narrowing",
        ),
        pytest.param(
            make_pod(node_affinity=required({**names("In", "a"), **SSD})),
            only("a"),
            id="a name next to labels",
        ),
        pytest.param(
            make_pod(node_affinity=required(names("NotIn", "a"))), SUCCESS, id="NotIn: no narrowing"
        ),
        pytest.param(
            make_pod(
                node_affinity=required(
                    fields(("metadata.name", "In", ["a"]), ("metadata.name", "In", ["b"]))
                )
            ),
            unresolvable(REASON_CONFLICT),
            id="two names in one term contradict each other",
        ),
        pytest.param(
            make_pod(
                node_affinity=required(
                    fields(("metadata.name", "In", ["a"]), ("metadata.name", "In", ["b"])),
                    names("In", "c"),
                )
            ),
            only("c"),
            id="a contradiction in one of two terms",
        ),
        pytest.param(
            make_pod(node_affinity=required(names("In", "ghost"))),
            only("ghost"),
            id="a name that no node has",
        ),
    ],
)
def test_pre_filter(pod: Pod, expected: Status | PreFilterResult) -> None:
    assert NodeAffinity().pre_filter(CycleState(), pod, TABLE) == expected


def test_added_affinity_comes_before_the_pods_own() -> None:
    plugin, pod = added(required(SSD)), make_pod(node_selector={"cores": "16"})

    assert plugin.pre_filter(CycleState(), make_pod(), TABLE) == SUCCESS
    verdict = plugin.filter_rows(CycleState(), pod, TABLE, ALL)

    assert [verdict.status(row) for row in range(3)] == [
        unresolvable(REASON),
        unresolvable(REASON_ADDED),
        unresolvable(REASON_ADDED),
    ]
    assert feasible(make_pod(), plugin) == "a"


@pytest.mark.parametrize(
    ("terms", "raw"),
    [
        pytest.param([(5, SSD)], [5, 0, 0], id="the weight where it matches"),
        pytest.param(
            [(5, SSD), (3, expressions(("cores", "Exists", [])))], [8, 3, 3], id="weights add up"
        ),
        pytest.param([(5, {})], [0, 0, 0], id="an empty term is ignored"),
        pytest.param([(0, SSD), (1, HDD)], [0, 1, 0], id="weight 0"),
        pytest.param([(2, names("In", "c"))], [0, 0, 2], id="by name"),
        pytest.param([(7, SSD), (7, SSD)], [14, 0, 0], id="the same term twice counts twice"),
    ],
)
def test_score(terms: list[tuple[int, Term]], raw: list[int]) -> None:
    plugin, state, pod = NodeAffinity(), CycleState(), make_pod(node_affinity=preferred(*terms))

    assert plugin.pre_score(state, pod, TABLE, ALL) == SUCCESS
    assert plugin.score_rows(state, pod, TABLE, ALL).tolist() == raw


def test_score_is_normalised_to_the_best_node() -> None:
    plugin = NodeAffinity()
    pod = make_pod(
        node_affinity=preferred((2, SSD), (1, HDD), (1, expressions(("cores", "Exists", []))))
    )

    raw = plugin.score_rows(CycleState(), pod, TABLE, ALL)

    assert plugin.normalize(raw).tolist() == [100, 66, 33]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="no affinity"),
        pytest.param(make_pod(node_selector={"disk": "ssd"}), id="nodeSelector only"),
        pytest.param(make_pod(node_affinity=required(SSD)), id="required terms only"),
    ],
)
def test_pre_score_skips_pods_without_preferences(pod: Pod) -> None:
    assert NodeAffinity().pre_score(CycleState(), pod, TABLE, ALL) == SKIP


def test_pre_score_fails_on_a_preference_that_cannot_be_used() -> None:
    bad = expressions(("cores", "Gt", ["x"]))
    pod = make_pod(node_affinity=preferred((1, SSD), (1, bad)))

    status = NodeAffinity().pre_score(CycleState(), pod, TABLE, ALL)

    assert status.code is Code.Error
    assert "preferred term 1" in status.message


def test_pre_score_does_not_look_at_a_preference_of_weight_0() -> None:
    bad = expressions(("cores", "Gt", ["x"]))
    pod = make_pod(node_affinity=preferred((0, bad), (1, SSD)))

    assert NodeAffinity().pre_score(CycleState(), pod, TABLE, ALL) == SUCCESS


def test_added_preferences_count_for_every_pod() -> None:
    plugin = added(preferred((4, HDD)))

    assert plugin.pre_score(CycleState(), make_pod(), TABLE, ALL) == SUCCESS
    assert plugin.score_rows(CycleState(), make_pod(), TABLE, ALL).tolist() == [0, 4, 0]
    pod = make_pod(node_affinity=preferred((3, SSD)))
    assert plugin.score_rows(CycleState(), pod, TABLE, ALL).tolist() == [3, 4, 0]
    check_rows_agree(plugin, pod, TABLE)


def test_no_args_add_nothing() -> None:
    for args in (None, NodeAffinityArgs(), NodeAffinityArgs(added_affinity=Affinity())):
        plugin = NodeAffinity.from_args(args, make_handle(TABLE))

        assert plugin.pre_filter(CycleState(), make_pod(), TABLE) == SKIP
        assert plugin.pre_score(CycleState(), make_pod(), TABLE, ALL) == SKIP


def test_conformance() -> None:
    pods = [
        make_pod("p"),
        make_pod("q", node_selector={"disk": "ssd"}),
        make_pod("r", node_affinity={**required(SSD, names("In", "b")), **preferred((2, HDD))}),
        make_pod("s", node_affinity=required(expressions(("cores", "Gt", ["9"])))),
    ]

    check_conformance(NodeAffinity, pods, TABLE)
