"""Describing: the nodes on which the engine calls a plugin, and ways to make it faster."""

from typing import Any

import pytest

from bayplan.framework import (
    CLUSTER,
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    FilterPlugin,
    PermitPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from bayplan.framework.interface import NOT_SETTLED
from bayplan.scheduler.catalog import describe_judging

SPEC = "declare `spec_key` if it depends on the spec alone"
SETTLED = "declare `settled` if the spec says that PreScore need not be called"


def answer(*args: Any) -> Any:
    raise AssertionError("describing calls no method")


@pytest.mark.parametrize(
    ("bases", "own", "how", "advice"),
    [
        pytest.param(
            (FilterPlugin,),
            {"scope": CLUSTER, "filter_node": answer},
            "all nodes, for every pod",
            "declare `scope` if the answer depends on less; implement `filter_rows`",
            id="a filter on one node that declares nothing",
        ),
        pytest.param(
            (FilterPlugin,),
            {"scope": NODE_OBJECT, "filter_rows": answer, "spec_key": answer},
            "nodes that changed",
            "",
            id="a filter that declares all it can",
        ),
        pytest.param(
            (ScorePlugin,),
            {"scope": NODE_OBJECT, "score_rows": answer, "normalize": answer},
            "nodes that changed",
            SPEC,
            id="a score that is normalised",
        ),
        pytest.param(
            (PreScorePlugin, ScorePlugin),
            {"scope": NODE_OBJECT, "score_rows": answer, "spec_key": answer},
            "all nodes, for every pod",
            SETTLED,
            id="a score after a PreScore that is called for every pod",
        ),
        pytest.param(
            (PreScorePlugin, FilterPlugin, ScorePlugin),
            {
                "scope": NODE_ROW,
                "score_rows": answer,
                "filter_rows": answer,
                "spec_key": answer,
            },
            "in Filter nodes that changed, or their pods; in Score all nodes, for every pod",
            SETTLED,
            id="a filter whose score comes after such a PreScore",
        ),
        pytest.param(
            (PreScorePlugin, ScorePlugin),
            {
                "scope": NODE_ROW,
                "score_rows": answer,
                "spec_key": answer,
                "settled": lambda self, spec: NOT_SETTLED,
            },
            "nodes that changed, or their pods",
            "",
            id="a score after a PreScore that is settled",
        ),
        pytest.param(
            (FilterPlugin,),
            {"scope": NODE_ROW, "filter_rows": answer, "spec_key": answer, "amount_rules": answer},
            "a rule on amounts, in the kernel",
            "",
            id="a filter by a rule",
        ),
        pytest.param(
            (FilterPlugin,),
            {"scope": GROUPS, "filter_node": answer},
            "one node of each group, for every pod",
            "",
            id="groups",
        ),
        pytest.param(
            (PermitPlugin,),
            {},
            "",
            "declare `settled` if the spec says that Permit need not be called",
            id="a plugin that judges no nodes",
        ),
    ],
)
def test_which_nodes_a_plugin_is_called_on(
    bases: tuple[type, ...], own: dict[str, Any], how: str, advice: str
) -> None:
    judging = describe_judging(type("Mine", bases, own))

    assert judging.how == how
    assert judging.advice == advice
