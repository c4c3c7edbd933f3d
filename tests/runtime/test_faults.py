"""Wrong answers at the extension points that a simulation of plain pods does not reach."""

import re
from typing import Any

import numpy as np
import pytest

from bayplan.framework import (
    SUCCESS,
    CycleState,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PostFilterPlugin,
    PostFilterResult,
    ReservePlugin,
)
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.faults import PluginFaultError, PluginFaults
from bayplan.framework.handle import Handle, NoNominations
from bayplan.framework.placement import Placement, PodGroupInfo
from bayplan.runtime import Filtering, PluginRunError
from bayplan.runtime.commit_plugins import Committing
from bayplan.runtime.profile import Placing
from bayplan.testing.builders import make_node, make_pod, make_table

TABLE = make_table(make_node("a"), make_node("b"))
POD = make_pod("p")
ROWS = np.arange(2, dtype=np.int64)
GROUP = PodGroupInfo("default", "g", [POD])
EVERYTHING = Placement("", ROWS)


def plugin(base: type, method: str, answer: Any) -> Any:
    def answered(self: Any, *given: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    extra = {"reserve": lambda self, *given: SUCCESS} if base is ReservePlugin else {}
    return type(
        "Zones", (base,), {"name": "Zones", "__module__": __name__, **extra, method: answered}
    )()


NUMBERS: Any = [0]


def check_fault(error: PluginRunError, method: str, expected: str) -> None:
    assert isinstance(error.status.error, PluginFaultError)
    assert re.search(rf"test_faults\.py:\d+: {method}: ", str(error))
    assert '"Zones"' in str(error)
    assert expected in str(error)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(None, "expected a list of Placements, or a Status; got None", id="nothing"),
        pytest.param(["a"], "expected a list of Placements; got 'a'", id="names"),
        pytest.param(
            [Placement("a", NUMBERS)], 'int64 as rows of Placement "a"', id="a list of rows"
        ),
        pytest.param([EVERYTHING, EVERYTHING], "that no other has; got ''", id="equal names"),
        pytest.param(
            [Placement("a", np.array([7]))], 'rows of the parent in Placement "a"', id="other rows"
        ),
        pytest.param(KeyError("rack"), "KeyError: 'rack'", id="it raises"),
    ],
)
def test_placements_that_are_none(answer: Any, expected: str) -> None:
    generator = plugin(PlacementGeneratePlugin, "generate_placements", answer)

    with pytest.raises(PluginRunError) as raised:
        Placing([generator], []).run_generate(CycleState(), GROUP, EVERYTHING)

    check_fault(raised.value, "generate_placements", expected)


@pytest.mark.parametrize(
    ("method", "answer", "expected"),
    [
        pytest.param("score_placement", None, "expected an int as score; got None", id="nothing"),
        pytest.param("score_placement", 0.5, "expected an int as score; got 0.5", id="a float"),
        pytest.param("score_placement", 101, "an invalid score 101", id="out of range"),
        pytest.param("score_placement", KeyError("x"), "KeyError: 'x'", id="it raises"),
        pytest.param(
            "normalize_placement_scores",
            [1],
            "expected an array of int64 with 1 score, one per placement; got a list",
            id="a list of scores",
        ),
    ],
)
def test_scores_of_placements_that_are_none(method: str, answer: Any, expected: str) -> None:
    scorer = plugin(PlacementScorePlugin, method, answer)
    if method != "score_placement":
        type(scorer).score_placement = lambda self, *given: 1

    with pytest.raises(PluginRunError) as raised:
        Placing([], [(scorer, 1)]).run_scores(CycleState(), GROUP, [None])  # type: ignore[list-item]

    check_fault(raised.value, method, expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            None, "expected a tuple of a PostFilterResult and a Status; got None", id="no"
        ),
        pytest.param(SUCCESS, "got a Status", id="a status alone"),
        pytest.param((PostFilterResult(), None), "got (a PostFilterResult, None)", id="half"),
        pytest.param(ValueError("x"), "ValueError: x", id="it raises"),
    ],
)
def test_a_post_filter_without_a_result(answer: Any, expected: str) -> None:
    filtering = Filtering(
        [], [], [plugin(PostFilterPlugin, "post_filter", answer)], NoNominations()
    )

    with pytest.raises(PluginRunError) as raised:
        filtering.run_post_filters(CycleState(), POD, Diagnosis(TABLE))

    check_fault(raised.value, "post_filter", expected)


def test_a_fault_in_unreserve_is_noted() -> None:
    faults = PluginFaults(fatal=True)
    reserve = plugin(ReservePlugin, "unreserve", ValueError("x"))
    committing = Committing([reserve], [], [], [], [], Handle(TABLE, faults=faults))

    (failure,) = committing.run_unreserve(CycleState(), POD, "a")

    check_fault(failure, "unreserve", "ValueError: x")
    with pytest.raises(PluginFaultError, match="ValueError: x"):
        faults.check()
