"""Measures of a run: at the end, over time, and as frames; every name is described."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayplan.api.dra import ResourceClaim
from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError, PluginError
from bayplan.framework import ScorePlugin
from bayplan.sim import Simulation, SimulationReport
from bayplan.sim.measures import MeasureUnit, NodeAmounts, RequestMix, fragmentation, measure_of
from bayplan.sim.measures.description import MEASURES, RESOURCE_MEASURES
from bayplan.sim.measures.device_use import DriverDevices, count_devices
from bayplan.table import NodeTable
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import DRIVER, claiming, make_class, make_slice, make_template

GPU = "nvidia.com/gpu"
SHARES = "bayplan.dev/gpu-milli"
DOCS = Path(__file__).parents[3] / "docs" / "measures.md"


def lasts(seconds: int) -> dict[str, str]:
    return {"bayplan.dev/duration": f"{seconds}s"}


def run(*objects: Any) -> SimulationReport:
    return Simulation(objects, seed=0).run()


def gpu_pod(name: str, gpus: int, **fields: Any) -> Any:
    return make_pod(name, cpu="1", requests={GPU: str(gpus)}, **fields)


def test_every_resource_is_measured() -> None:
    nodes = [make_node(name, cpu="8", extended={GPU: 4}) for name in "ab"]
    report = run(*nodes, gpu_pod("p", 3), gpu_pod("q", 3), gpu_pod("r", 3))

    found = report.measures()

    assert (found["placed"], found["pending"], found["nodesUsed"]) == (2, 1, 2)
    assert found[f"{GPU}Allocated"] == 6
    assert found[f"{GPU}Utilisation"] == 6 / 8
    assert found[f"{GPU}Requested"] == 9 / 8
    assert found[f"{GPU}Fragmentation"] == 1, (
        "one GPU is left on each node, and all pods want three"
    )
    assert found[f"{GPU}Usable"] == 0
    assert found["cpuFragmentation"] == 1, "no task fits, for want of GPUs"
    assert found["emptyNodes"] == 0


class Halves(ScorePlugin):
    """Says that the two GPUs of each node are both half free."""

    name = "Halves"

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0

    def free_parts(self, table: NodeTable) -> dict[str, Any]:
        return {SHARES: np.full((len(table.live), 2), 500) * (table.live > 0)[:, None]}


class TooFew(Halves):
    """Leaves out rows."""

    def free_parts(self, table: NodeTable) -> dict[str, Any]:
        return {SHARES: np.zeros((1, 2))}


def test_plugins_say_what_is_free_of_each_gpu() -> None:
    nodes = [make_node(name, extended={SHARES: 2000}) for name in "abc"]
    pods = [make_pod("whole", requests={SHARES: 1000})]

    without = Simulation([*nodes, *pods]).run().measures()
    found = Simulation([*nodes, *pods], plugins=[Halves]).run().measures()

    assert without[f"{SHARES}Fragmentation"] == 0
    assert found[f"{SHARES}Fragmentation"] == 1, "a whole GPU is wanted, and all are half free"


def test_an_account_without_all_rows_is_an_error() -> None:
    with pytest.raises(
        PluginError, match=r"Halves: free_parts: bayplan.dev/gpu-milli: expected an"
    ):
        Simulation([make_node("a"), make_node("b")], plugins=[TooFew]).run()


def test_devices_are_counted_by_driver() -> None:
    objects = [
        make_node("n"),
        make_class("gpu"),
        make_slice("old", "x0", node="n", generation=0),
        make_slice("s", "d0", "d1", "d2", "d3", node="n"),
        make_template("one"),
        *(claiming(template="one", name=f"p{i}") for i in range(3)),
    ]

    found = run(*objects).measures()

    assert found[f"{DRIVER}/devicesAllocated"] == 3
    assert found[f"{DRIVER}/devicesUtilisation"] == 0.75
    assert measure_of(f"{DRIVER}/devicesUtilisation").title == f"{DRIVER}/devices in use"
    assert found["deviceClass/gpu/devicesAllocated"] == 3
    assert "deviceClass/gpu/devicesUtilisation" not in found


def test_devices_of_an_alternative_count_for_its_class() -> None:
    spec = {
        "requests": [
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "big", "deviceClassName": "big"},
                    {"name": "small", "deviceClassName": "small"},
                ],
            }
        ]
    }
    results = [{"request": "r/small", "driver": "d", "pool": "p", "device": "0"}]
    claim = decode_object(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": spec},
            "status": {"allocation": {"devices": {"results": results}}},
        }
    )
    assert isinstance(claim, ResourceClaim)

    assert count_devices([], [claim]) == {"deviceClass/small": DriverDevices(None, 1)}


def test_waiting_and_slowdown_are_distributions() -> None:
    node = make_node("a", cpu="1")
    report = run(node, *(make_pod(f"p{i}", cpu="1", annotations=lasts(10)) for i in range(3)))

    found = report.measures()

    assert found["p50Latency"] == pytest.approx(10, abs=1.5)
    assert found["maxLatency"] == pytest.approx(20, abs=3)
    assert found["p50Latency"] < found["p95Latency"] < found["p99Latency"] < found["maxLatency"]
    assert found["p50Slowdown"] == pytest.approx(2, abs=0.2)
    assert found["maxSlowdown"] == pytest.approx(3, abs=0.4)
    assert (found["nodesUsed"], found["peakNodesUsed"]) == (0, 1)
    assert found["cpuMeanUtilisation"] == pytest.approx(1, abs=0.1)
    assert (found["cpuUtilisation"], found["cpuPeakUtilisation"]) == (0, 1)
    assert found["cpuPeakRequested"] == 3


def test_the_end_of_the_series_is_the_measure_at_the_end() -> None:
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="3"), make_node("c", unschedulable=True)]
    pods = [make_pod(f"p{i}", cpu="1", annotations=lasts(30 * (i + 1))) for i in range(4)]
    report = run(*nodes, *pods, make_pod("stays", cpu="3"), make_pod("never", cpu="9"))

    found = report.measures()

    for series in report.measures_over_time():
        assert series.values[-1] == pytest.approx(found[series.name]), series.name
    mix = RequestMix.of(result.pod for result in report.pods)
    amounts = NodeAmounts.of_uses(report.nodes)
    assert found["cpuFragmentation"] == fragmentation(amounts, mix, "cpu")
    assert 0 < found["cpuFragmentation"] < 1


def test_frames() -> None:
    node = make_node("a", cpu="4", extended={GPU: 2})
    report = run(node, *(gpu_pod(f"p{i}", 1, annotations=lasts(60)) for i in range(3)))

    measures = report.to_frame("measures").set_index("name")
    use = report.to_frame("use", samples=4)
    arrivals = report.to_frame("arrivals")

    assert measures.loc["placed", "value"] == 3
    assert measures.loc["pending", "better"] == "lower"
    assert len(use) == 4
    assert use[f"{GPU}Utilisation"][0] == 1
    assert arrivals[f"{GPU}Requested"].tolist() == [0.5, 1.0, 1.5]
    assert arrivals[f"{GPU}Utilisation"].tolist() == [0.5, 1.0, 1.5], (
        "the third came after the first"
    )


def test_samples_are_at_least_one() -> None:
    with pytest.raises(InputError, match="samples: expected 1 or more; got 0"):
        run(make_node("a")).to_frame("use", samples=0)


def test_a_run_without_pods_or_time_has_measures() -> None:
    found = run(make_node("a")).measures()

    assert (found["placed"], found["cpuFragmentation"], found["emptyNodes"]) == (0, 0, 1)
    assert run(make_node("a")).measures_over_time() == []


@pytest.mark.parametrize("name", ["placed", "cpuUtilisation", f"{GPU}PeakRequested", "p95Slowdown"])
def test_measures_have_a_description(name: str) -> None:
    assert measure_of(name).name == name
    assert measure_of(name).doc


def test_the_longest_ending_counts() -> None:
    assert measure_of("cpuMeanUtilisation").title == "mean of cpu in use"
    assert measure_of(f"{GPU}Allocated").unit is MeasureUnit.AMOUNT
    assert not measure_of("secondsPerDecision").is_repeatable


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(InputError, match=r'expected the name of a measure .*; got "happiness"'):
        measure_of("happiness")


def test_the_page_describes_every_measure() -> None:
    text = DOCS.read_text()

    missing = [
        n
        for n in (*MEASURES, *(f"<resource>{e}" for e in RESOURCE_MEASURES))
        if f"`{n}`" not in text
    ]
    assert missing == []
