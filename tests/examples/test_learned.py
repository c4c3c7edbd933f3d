"""The example of a learned policy: a plugin like others; training writes its weights, and they are good."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayplan import simulate
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "learned"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_policy_keeps_the_rules_for_plugins() -> None:
    first = make_node("a", cpu="8", memory="32Gi", extended={"bayplan.dev/gpu-milli": 4000})
    table = make_table(first, make_node("b", cpu="4", memory="8Gi"))
    pods = [make_pod("x", cpu="1"), make_pod("y", cpu="2", memory="1Gi")]
    check_conformance(load("policy").Learned, pods, table)


@pytest.mark.parametrize("workers", ["none", ""], ids=["by the scheduler", "by arrays"])
def test_training_writes_weights_into_the_file_of_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    train = load("train")
    copy = tmp_path / "policy.py"
    copy.write_text((FOLDER / "policy.py").read_text())
    monkeypatch.setattr(train, "POLICY", copy)
    weights = train.train(generations=2, pairs=2, nodes=8, workers=workers)
    assert len(weights) == 30
    assert np.abs(weights).max() > 0
    train.write(weights)
    source: dict[str, Any] = {}
    exec(copy.read_text(), source)
    np.testing.assert_allclose(source["WEIGHTS"], weights, atol=0.0006)
    assert "class Learned" in copy.read_text()


def test_the_weights_in_the_file_beat_the_default_scheduler_on_the_other_trace() -> None:
    difference = load("train").compare(seeds=4, nodes=90)["default"]
    assert difference.is_significant
    assert difference.gain > 0


def test_arrays_fill_a_cluster_as_the_scheduler_does() -> None:
    train = load("train")
    weights = np.array(train.start_weights()).reshape(1, 3, -1)
    for trace in (train.training_trace, train.test_trace):
        pending = train.fill(weights, *train.draw_amounts(np.random.default_rng(4), trace, 30))
        cluster = train.draw(np.random.default_rng(4), trace, 30)
        report = simulate(cluster, config=train.CONFIG, plugins=[str(train.POLICY)], seed=0)
        assert report.measures()["pending"] == pytest.approx(pending[0], abs=2)


def test_the_traces_differ_and_a_workload_asks_for_all_of_a_resource() -> None:
    train = load("train")
    shapes = [set(trace()[1]) for trace in (train.training_trace, train.test_trace)]
    assert shapes[0] != shapes[1]
    for trace in (train.training_trace, train.test_trace):
        measures = simulate(train.draw(np.random.default_rng(0), trace, count=20)).measures()
        asked = [measures[f"{name}Requested"] for name in ("cpu", train.GPU)]
        assert 1.0 <= max(asked) < 1.2
