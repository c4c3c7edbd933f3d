"""PreFilter, Filter and PostFilter: the effect of each status."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.framework import (
    CLUSTER,
    NODE_OBJECT,
    NODE_ROW,
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    Status,
    failure,
    unresolvable,
    unschedulable,
    wait,
)
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.interface import Scope
from bayplan.framework.status import pending
from bayplan.runtime import Filtering, PluginRunError
from bayplan.table import ALL
from bayplan.testing.builders import Nominations, make_node, make_pod, make_table

pytestmark = pytest.mark.usefixtures("plugins_are_in_tree")

NODES = [make_node(name) for name in "abc"]
BOOM = RuntimeError("boom")
Answer = TypeVar("Answer")


def answer(said: Answer | Exception) -> Answer:
    if isinstance(said, Exception):
        raise said
    return said


def pre_filter(name: str, said: Any, called: list[str] | None = None) -> PreFilterPlugin:
    class Said(PreFilterPlugin):
        def pre_filter(self, state: CycleState, pod: Pod, table: Any) -> Any:
            if called is not None:
                called.append(name)
            return answer(said)

    Said.name = name
    return Said()


def filter_by(
    name: str, judge: Callable[[NodeInfo], Status | Exception], scope: Scope = CLUSTER
) -> FilterPlugin:
    class Judge(FilterPlugin):
        def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
            return answer(judge(node))

    Judge.name, Judge.scope = name, scope
    return Judge()


def post_filter(name: str, wish: PostFilterResult, said: Any, called: list[str]) -> Any:
    class Post(PostFilterPlugin):
        def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Any:
            called.append(name)
            return wish, answer(said)

    Post.name = name
    return Post()


def make_filtering(
    pre: Any = (), filters: Any = (), post: Any = (), nominated: Any = None
) -> Filtering:
    return Filtering(pre, filters, post, Nominations(nominated or {}))


def narrow(*names: str) -> PreFilterResult:
    return PreFilterResult(frozenset(names))


# PreFilter


def test_pre_filter_skip_leaves_the_plugin_out() -> None:
    state = CycleState()
    filtering = make_filtering([pre_filter("A", SKIP), pre_filter("B", SUCCESS)])

    result = filtering.run_pre_filters(state, make_pod(), make_table(*NODES))

    assert result.status.is_success
    assert result.node_names is None
    assert state.skip_filter == {"A"}


def test_pre_filter_unschedulable_goes_on_and_the_last_one_counts() -> None:
    called: list[str] = []
    state = CycleState()
    said = [("A", unschedulable("one")), ("B", unschedulable("two")), ("C", SKIP)]
    filtering = make_filtering([pre_filter(name, status, called) for name, status in said])

    result = filtering.run_pre_filters(state, make_pod(), make_table(*NODES))

    assert result.status == Status(Code.Unschedulable, ("two",), "B")
    assert called == ["A", "B", "C"]
    assert state.skip_filter == {"C"}


def test_pre_filter_unresolvable_stops_at_once() -> None:
    called: list[str] = []
    state = CycleState()
    said = [("A", SKIP), ("B", unresolvable("never")), ("C", SUCCESS)]
    filtering = make_filtering([pre_filter(name, status, called) for name, status in said])

    result = filtering.run_pre_filters(state, make_pod(), make_table(*NODES))

    assert result.status == Status(Code.UnschedulableAndUnresolvable, ("never",), "B")
    assert called == ["A", "B"]
    assert state.skip_filter == {"A"}, "kept also when the phase fails"


def test_pre_filter_narrowing_is_intersected() -> None:
    said = [("A", narrow("a", "b")), ("B", SUCCESS), ("C", narrow("b", "c", "not-there"))]
    filtering = make_filtering([pre_filter(name, what) for name, what in said])

    result = filtering.run_pre_filters(CycleState(), make_pod(), make_table(*NODES))

    assert result.status.is_success
    assert result.node_names == frozenset({"b"})
    assert result.narrowed_by == {"A", "C"}


@pytest.mark.parametrize(
    ("said", "text", "reached"),
    [
        pytest.param(
            [("B", narrow())], "node(s) didn't satisfy plugin B", ["B"], id="one plugin alone"
        ),
        pytest.param(
            [("B", narrow("a")), ("A", narrow("b")), ("C", SUCCESS)],
            "node(s) didn't satisfy plugin(s) [A B] simultaneously",
            ["B", "A"],
            id="two plugins between them, names sorted",
        ),
    ],
)
def test_pre_filter_that_leaves_no_node_stops(
    said: list[Any], text: str, reached: list[str]
) -> None:
    called: list[str] = []
    filtering = make_filtering([pre_filter(name, what, called) for name, what in said])

    result = filtering.run_pre_filters(CycleState(), make_pod(), make_table(*NODES))

    assert result.status == unresolvable(text)
    assert called == reached


@pytest.mark.parametrize(
    ("said", "text"),
    [
        pytest.param(pending("later"), "later", id="pending has no meaning here"),
        pytest.param(failure("broken"), "broken", id="an error"),
        pytest.param(wait("a bit"), "a bit", id="wait"),
        pytest.param(BOOM, "boom", id="it raises"),
        pytest.param(KeyError("not found"), "not found", id="state that was not written"),
        pytest.param(RuntimeError(), "RuntimeError", id="it raises without a word"),
    ],
)
def test_pre_filter_anything_else_is_an_error_of_the_plugin(said: Any, text: str) -> None:
    filtering = make_filtering([pre_filter("A", said)])

    with pytest.raises(PluginRunError) as failed:
        filtering.run_pre_filters(CycleState(), make_pod(), make_table(*NODES))

    assert failed.value.status == Status(
        Code.Error, (f'running PreFilter plugin "A": {text}',), "A"
    )


# Filter


def refuse(*names: str, status: Any = None) -> Callable[[NodeInfo], Any]:
    refusal = unschedulable("no") if status is None else status
    return lambda node: refusal if node.name in names else SUCCESS


def feasible(filtering: Filtering, state: CycleState | None = None) -> str:
    table = make_table(*NODES)
    rows = filtering.run_filters(state or CycleState(), make_pod(), table, ALL)
    return "".join(table.names[row] for row in table.numbers(rows))


@pytest.mark.parametrize("scope", [CLUSTER, NODE_ROW, NODE_OBJECT])
def test_filter_a_node_must_please_all(scope: Scope) -> None:
    filters = [filter_by("A", refuse("a"), scope), filter_by("B", refuse("c"))]

    assert feasible(make_filtering(filters=filters)) == "b"


def test_filter_of_skipped_plugins_is_not_asked() -> None:
    state = CycleState()
    state.skip_filter.add("A")
    filters = [filter_by("A", refuse("a", status=BOOM)), filter_by("B", refuse("c"))]

    assert feasible(make_filtering(filters=filters), state) == "ab"


def test_filter_pending_is_a_refusal() -> None:
    assert (
        feasible(make_filtering(filters=[filter_by("A", refuse("b", status=pending("x")))])) == "ac"
    )


@pytest.mark.parametrize("scope", [CLUSTER, NODE_ROW, NODE_OBJECT])
@pytest.mark.parametrize(
    ("said", "text"),
    [
        pytest.param(failure("broken"), "broken", id="an error"),
        pytest.param(SKIP, "", id="skip"),
        pytest.param(wait("a bit"), "a bit", id="wait"),
        pytest.param(BOOM, "boom", id="it raises"),
    ],
)
def test_filter_error_on_one_node_ends_the_attempt(scope: Scope, said: Any, text: str) -> None:
    filtering = make_filtering(filters=[filter_by("A", refuse("b", status=said), scope)])

    with pytest.raises(PluginRunError) as failed:
        feasible(filtering)

    assert failed.value.status == Status(Code.Error, (f'running "A" filter plugin: {text}',), "A")
    with pytest.raises(PluginRunError):  # and again: no partial result was cached
        feasible(filtering)


def test_filter_of_some_rows_leaves_the_others_alone() -> None:
    table = make_table(*NODES)
    filtering = make_filtering(filters=[filter_by("A", refuse("a", status=BOOM), NODE_ROW)])

    rows = filtering.run_filters(CycleState(), make_pod(), table, np.array([1, 2]))

    assert table.numbers(rows).tolist() == [1, 2]


def test_diagnose_notes_the_first_refusal_of_each_node() -> None:
    table, state = make_table(*NODES), CycleState()
    filters = [
        filter_by("A", refuse("a", status=unschedulable("first"))),
        filter_by("B", refuse("a", "b", status=unresolvable("second"))),
    ]
    diagnosis = Diagnosis(table, node_count=3)

    make_filtering(filters=filters).diagnose(state, make_pod(), table, ALL, diagnosis)

    assert [diagnosis.status_of(row) for row in range(3)] == [
        Status(Code.Unschedulable, ("first",), "A"),
        Status(Code.UnschedulableAndUnresolvable, ("second",), "B"),
        SUCCESS,
    ]


def test_filter_node_stops_at_the_first_refusal() -> None:
    table = make_table(*NODES)
    filters = [
        filter_by("A", refuse("a", status=unschedulable("first"))),
        filter_by("B", refuse("a", status=BOOM)),
    ]

    status = make_filtering(filters=filters).filter_node(CycleState(), make_pod(), table.node_at(0))

    assert status == Status(Code.Unschedulable, ("first",), "A")


# Nominated pods


class Seen(PreFilterPlugin, PreFilterExtensions, FilterPlugin):
    """Refuses a node by the names of the pods on it, and notes its calls."""

    name = "Seen"

    def __init__(self, refused: Callable[[set[str]], bool] = lambda names: False) -> None:
        self.refused = refused
        self.asked: list[set[str]] = []
        self.told: list[str] = []

    def pre_filter(self, state: CycleState, pod: Pod, table: Any) -> Status:
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        assert added.uid in {other.uid for other in node.pods}, "the node has the pod already"
        self.told.append(added.name)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        names = {other.name for other in node.pods}
        self.asked.append(names)
        return unschedulable("seen") if self.refused(names) else SUCCESS


THERE = make_pod("there", node_name="a")
POD = make_pod("pod", priority=5)


def judge(plugin: Seen, *nominated: Pod, pod: Pod = POD) -> Status:
    table = make_table(*NODES, pods=[THERE])
    filtering = make_filtering([plugin], [plugin], nominated={"a": nominated})
    status = filtering.filter_with_nominated(CycleState(), pod, table.node_at(0))
    assert table.pod_count.tolist() == [1, 0, 0], "the table is not touched"
    return status


@pytest.mark.parametrize(
    ("rival", "passes"),
    [
        pytest.param(make_pod("rival", priority=6), 2, id="higher priority: both passes"),
        pytest.param(make_pod("rival", priority=5), 2, id="equal priority: both passes"),
        pytest.param(make_pod("rival", priority=4), 1, id="lower priority: not considered"),
        pytest.param(make_pod("pod", priority=9), 1, id="the pod itself: not considered"),
    ],
)
def test_nominated_pods_of_equal_or_higher_priority_are_put_on_the_node(
    rival: Pod, passes: int
) -> None:
    plugin = Seen()

    assert judge(plugin, rival).is_success
    assert plugin.asked == [{"there", "rival"}, {"there"}][-passes:]
    assert plugin.told == ["rival"][: passes - 1]


@pytest.mark.parametrize(
    ("refused", "fits"),
    [
        pytest.param(lambda names: False, True, id="both passes succeed"),
        pytest.param(lambda names: "rival" in names, False, id="not with the nominated pod"),
        pytest.param(lambda names: "rival" not in names, False, id="not without it"),
    ],
)
def test_both_passes_must_succeed(refused: Callable[[set[str]], bool], fits: bool) -> None:
    assert judge(Seen(refused), make_pod("rival", priority=6)).is_success == fits


def test_filter_nominated_judges_only_nodes_with_nominated_pods() -> None:
    table = make_table(*NODES)
    plugin = Seen(lambda names: "rival" in names)
    nominated = {"b": [make_pod("rival", priority=9)], "gone": [make_pod("other", priority=9)]}
    diagnosis = Diagnosis(table, node_count=3)

    filtering = make_filtering([plugin], [plugin], nominated=nominated)
    found = filtering.filter_nominated(CycleState(), POD, table, ALL, diagnosis)

    assert table.numbers(found).tolist() == [0, 2]
    assert diagnosis.alone == {1: Status(Code.Unschedulable, ("seen",), "Seen")}


def test_an_add_pod_that_fails_is_an_error_of_the_plugin() -> None:
    class Failing(Seen):
        name = "Failing"

        def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
            return unschedulable("cannot")

    with pytest.raises(PluginRunError) as failed:
        judge(Failing(), make_pod("rival", priority=6))

    assert str(failed.value) == 'running AddPod on PreFilter plugin "Failing": cannot'


# PostFilter

KEEP, CLEAR = PostFilterResult(), PostFilterResult("")
TO_A, TO_B = PostFilterResult("a"), PostFilterResult("b")


@pytest.mark.parametrize(
    ("chain", "result", "status", "called"),
    [
        pytest.param(
            [("A", TO_A, SUCCESS), ("B", TO_B, SUCCESS)],
            TO_A,
            SUCCESS,
            "A",
            id="success stops",
        ),
        pytest.param(
            [("A", KEEP, unschedulable("x")), ("B", TO_B, SUCCESS)],
            TO_B,
            SUCCESS,
            "AB",
            id="a refusal goes on",
        ),
        pytest.param(
            [("A", CLEAR, unresolvable("x")), ("B", TO_B, SUCCESS)],
            CLEAR,
            Status(Code.UnschedulableAndUnresolvable, ("x",), "A"),
            "A",
            id="unresolvable stops",
        ),
        pytest.param(
            [("A", CLEAR, failure("x")), ("B", TO_B, SUCCESS)],
            KEEP,
            Status(Code.Error, ("x",), "A"),
            "A",
            id="an error stops and wishes nothing",
        ),
        pytest.param(
            [("A", CLEAR, wait("x"))],
            KEEP,
            Status(Code.Error, ("x",), "A"),
            "A",
            id="a code without meaning here is an error",
        ),
        pytest.param(
            [("A", KEEP, unschedulable("x", "y")), ("B", CLEAR, pending("z"))],
            CLEAR,
            Status(Code.Unschedulable, ("x", "y", "z"), "A"),
            "AB",
            id="reasons are gathered, the first plugin is named",
        ),
        pytest.param(
            [("A", CLEAR, unschedulable("x")), ("B", KEEP, unschedulable("y"))],
            CLEAR,
            Status(Code.Unschedulable, ("x", "y"), "A"),
            "AB",
            id="a wish to keep does not override",
        ),
    ],
)
def test_post_filter_chain(
    chain: list[Any], result: PostFilterResult, status: Status, called: str
) -> None:
    asked: list[str] = []
    plugins = [post_filter(name, wish, said, asked) for name, wish, said in chain]
    table = make_table(*NODES)

    found = make_filtering(post=plugins).run_post_filters(CycleState(), POD, Diagnosis(table))

    assert found == (result, status)
    assert "".join(asked) == called


def test_post_filter_that_raises_is_named() -> None:
    plugins = [post_filter("A", KEEP, BOOM, [])]

    with pytest.raises(PluginRunError) as failed:
        make_filtering(post=plugins).run_post_filters(
            CycleState(), POD, Diagnosis(make_table(*NODES))
        )

    assert str(failed.value) == 'running PostFilter plugin "A": boom'
