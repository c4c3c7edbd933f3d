"""The notebook "A scheduling paper in an afternoon" runs from top to bottom, and its statements hold."""

import json
from pathlib import Path
from typing import Any

import pytest

mpl = pytest.importorskip("matplotlib")
NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook" / "paper.ipynb"


@pytest.fixture(scope="module")
def ran() -> dict[str, Any]:
    """The names of the notebook after its last cell."""
    mpl.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"paper.ipynb {cell['id']}", "exec"), names)
    return names


def test_every_run_of_the_experiment_is_in_the_table(ran: dict[str, Any]) -> None:
    table = (ran["folder"] / "results.csv").read_text().splitlines()
    assert len(table) == 1 + 3 * 5
    assert len(ran["results"].to_frame()["run"].unique()) == 3 * 5


def test_both_policies_give_out_more_gpus_than_the_baseline(ran: dict[str, Any]) -> None:
    from bayplan.sim.measures import PairedDifference

    for name in ("FGD", "ours"):
        difference = PairedDifference.of(ran["metric"][name], ran["metric"]["random"])
        assert difference.is_significant
        assert difference.mean > 0.005


def test_the_pictures_are_there(ran: dict[str, Any]) -> None:
    assert {path.name for path in ran["folder"].glob("*.svg")} == {"allocation.svg", "arrivals.svg"}


def test_the_notebook_is_stored_without_results() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
