"""Vary: values reach arguments, weights and fields of a configuration, and the given one is not changed."""

from typing import Any

import pytest

from bayplan.config.load import parse_config
from bayplan.errors import InputError
from bayplan.scheduler.catalog import effective_plugins
from bayplan.sweeps.expansion import varied

TWO = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "one",
            "pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 3}}],
        },
        {
            "schedulerName": "two",
            "plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 7}]}},
        },
    ],
}


def test_arguments_are_set_in_every_profile() -> None:
    found = varied(TWO, {"args.InterPodAffinity.hardPodAffinityWeight": 5})

    assert found is not None
    assert [profile["pluginConfig"] for profile in found["profiles"]] == [
        [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}}]
    ] * 2
    assert TWO["profiles"][0]["pluginConfig"][0]["args"] == {"hardPodAffinityWeight": 3}  # type: ignore[index]


def test_nested_arguments_are_made() -> None:
    found = varied(None, {"args.NodeResourcesFit.scoringStrategy.type": "MostAllocated"})

    assert found is not None
    (entry,) = found["profiles"][0]["pluginConfig"]
    assert entry["args"] == {"scoringStrategy": {"type": "MostAllocated"}}
    parse_config(found)


@pytest.mark.parametrize("tree", [pytest.param(None, id="defaults"), pytest.param(TWO, id="two")])
def test_a_weight_counts_in_every_profile(tree: Any) -> None:
    found = varied(tree, {"weight.NodeResourcesFit": 42})

    for points in effective_plugins(parse_config(found)):
        assert {r.name: r.weight for r in points["score"]}["NodeResourcesFit"] == 42


def test_other_paths_are_fields() -> None:
    found = varied(TWO, {"parallelism": 3, "profiles[1].percentageOfNodesToScore": 50})

    assert found is not None
    assert found["parallelism"] == 3
    assert found["profiles"][1]["percentageOfNodesToScore"] == 50


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("profiles[2].schedulerName", id="no such profile"),
        pytest.param("kind.name", id="below a text"),
        pytest.param("a..b", id="an empty step"),
        pytest.param("args", id="no plugin"),
        pytest.param("weight.A.b", id="too long"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(path: str) -> None:
    with pytest.raises(InputError) as caught:
        varied(TWO, {path: 1})

    assert str(caught.value).startswith(f"{path}: expected")
