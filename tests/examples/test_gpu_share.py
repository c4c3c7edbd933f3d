"""The example GpuShare: no GPU is allocated twice."""

import importlib.util
from collections import defaultdict
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from bayplan.config import load_config
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gpu-share"
GPU_MILLI = "bayplan.dev/gpu-milli"


def load_plugin() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_share", FOLDER / "gpu_share.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GpuShare


GpuShare = load_plugin()


@pytest.mark.parametrize(
    ("free", "wanted", "gpus"),
    [
        pytest.param((1000, 400, 500), 400, [1], id="a share goes where least is left"),
        pytest.param((600, 600), 1000, [], id="halves of two are no whole one"),
        pytest.param((1000, 999, 1000), 2000, [0, 2], id="whole ones must be empty"),
        pytest.param((1000,), 2000, [], id="there are too few"),
        pytest.param((), 300, [], id="there is none"),
    ],
)
def test_choose(free: tuple[int, ...], wanted: int, gpus: list[int]) -> None:
    assert GpuShare.choose(free, wanted) == gpus


def test_conformance() -> None:
    def pod(name: str, milli: int, **more: Any) -> Any:
        return make_pod(name, requests={GPU_MILLI: milli} if milli else {}, **more)

    table = make_table(
        make_node("two", extended={GPU_MILLI: 2000}),
        make_node("one", extended={GPU_MILLI: 1000}),
        make_node("none"),
        pods=[pod("a", 400, node_name="two"), pod("b", 700, node_name="two")],
    )
    check_conformance(GpuShare, [pod("x", 300), pod("y", 600), pod("z", 2000), pod("w", 0)], table)


@settings(max_examples=30)
@given(
    gpus=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    wanted=st.lists(
        st.one_of(st.integers(1, 999), st.sampled_from([0, 1000, 2000])), min_size=1, max_size=30
    ),
)
def test_no_gpu_is_allocated_twice(gpus: list[int], wanted: list[int]) -> None:
    nodes = [
        make_node(f"n{i}", cpu="64", extended={GPU_MILLI: count * 1000})
        for i, count in enumerate(gpus)
    ]
    pods = [make_pod(f"p{i}", requests={GPU_MILLI: milli}) for i, milli in enumerate(wanted)]
    simulation = Simulation(
        [*nodes, *pods],
        load_config(FOLDER / "config.yaml"),
        plugins=[str(FOLDER / "gpu_share.py")],
    )

    report = simulation.run()

    plugin = simulation.scheduler.profiles["default-scheduler"].plugins["GpuShare"]
    used: defaultdict[tuple[str, int], int] = defaultdict(int)
    for result in report.placed:
        milli = result.pod.requests.get(GPU_MILLI, 0)
        if milli:
            given_out = plugin.gpus_of[result.pod.uid]
            assert len(given_out) == max(milli // 1000, 1)
            for gpu in given_out:
                used[result.attempt.node_name, gpu] += min(milli, 1000)
    assert all(amount <= 1000 for amount in used.values())
    for result in report.pending:  # no pod that fits is left pending
        milli = result.pod.requests.get(GPU_MILLI, 0)
        for i, count in enumerate(gpus):
            free = tuple(1000 - used[f"n{i}", gpu] for gpu in range(count))
            assert not GpuShare.choose(free, milli)
