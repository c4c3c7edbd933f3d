"""Promises: shares of GPUs that no GPU has, and comparisons of schedulers that filter differently."""

from typing import Any

import pytest

from bayplan.answers.compare import compare
from bayplan.cli.render.compare_table import render_comparison
from bayplan.cli.render.consoles import stdout_console
from bayplan.config.load import parse_config
from bayplan.sim.measures.description import measure_of
from bayplan.sim.measures.promises import unassigned
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod

SHARES = "bayplan.dev/gpu-milli"


@pytest.mark.parametrize(
    ("gpus", "wanted", "lost"),
    [
        pytest.param(2, [600, 600], 0, id="one on each"),
        pytest.param(2, [600, 600, 600], 600, id="three of two thirds"),
        pytest.param(2, [600, 600, 600, 200], 600, id="small ones have room all the same"),
        pytest.param(2, [1000, 600, 400], 0, id="a whole one and two shares"),
        pytest.param(2, [2000], 0, id="both"),
        pytest.param(2, [600, 1000, 400], 0, id="in any order"),
        pytest.param(3, [2000, 700, 700], 700, id="several whole ones first"),
        pytest.param(2, [400, 400, 300, 300, 300, 300], 0, id="best fit misses it"),
        pytest.param(0, [], 0, id="nothing"),
    ],
)
def test_requests_that_no_assignment_has_room_for(gpus: int, wanted: list[int], lost: int) -> None:
    assert unassigned(gpus, wanted) == lost


def settings(*enabled: str) -> Settings:
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in enabled]}}
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    return Settings(parse_config(tree, "test"), seed=0)


def workload() -> list[Any]:
    nodes = [make_node(f"n{i}", cpu="8", extended={SHARES: 2000}) for i in range(2)]
    return [*nodes, *(make_pod(f"p{i}", requests={SHARES: 600}) for i in range(6))]


def test_a_scheduler_without_a_filter_per_gpu_is_not_said_to_be_better(
    capsys: pytest.CaptureFixture[str],
) -> None:
    schedulers = [("plain", Settings(seed=0)), ("shares", settings("GpuShare"))]

    found = compare(workload(), schedulers, seeds=3)

    plain, shares = ({n: m.mean for n, m in each.metrics.items()} for each in found.contenders)
    assert (plain["placed"], shares["placed"]) == (6, 4)
    assert (plain[f"{SHARES}Overpromised"], shares[f"{SHARES}Overpromised"]) == (0.3, 0)
    assert (plain[f"{SHARES}OverpromisedNodes"], shares[f"{SHARES}OverpromisedNodes"]) == (2, 0)
    assert plain[f"{SHARES}Delivered"] == pytest.approx(0.6)
    assert shares[f"{SHARES}Delivered"] == shares[f"{SHARES}Utilisation"] == 0.6
    differences = found.against_first(found.contenders[1])
    repeatable = {n: each for n, each in differences.items() if measure_of(n).is_repeatable}
    assert {n for n, each in repeatable.items() if each.is_significant} == {
        f"{SHARES}Overpromised",
        f"{SHARES}OverpromisedNodes",
    }
    assert (differences["placed"].mark, differences["cpuRequested"].mark) == ("†", "")
    assert found.better("placed") == ""
    assert found.better(f"{SHARES}Overpromised") == "shares"
    render_comparison(stdout_console(), found)
    shown = capsys.readouterr().out
    assert "4 ±0†" in shown
    assert "† shares filters nodes with GpuSharing: this measure does not mean the same" in shown


def test_policies_that_inherit_their_filter_are_compared() -> None:
    found = compare(workload(), [("a", settings("GpuShare")), ("b", settings("FGD"))], seeds=2)

    assert found.contenders[0].filters == found.contenders[1].filters
    assert "GpuSharing" in found.contenders[0].filters
    assert all(d.is_comparable for d in found.against_first(found.contenders[1]).values())
