"""`bayplan research sweep`: output and exit status."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.sweeps import Sweep
from bayplan.sweeps.sweep import SweepResults

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "sweep" / "sweep.yaml")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sweep(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["sweep", *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def write(name: str, tree: Any) -> str:
    Path(name).write_text(json.dumps(tree))
    return name


def test_a_sweep_ends_with_a_table_and_a_file(tmp_path: Path) -> None:
    out, err = sweep(EXAMPLE, "--jobs", "2")

    lines = out.splitlines()
    assert lines[0].startswith(
        "INPUT  CONFIGURATION  weight.NodeResourcesFit  RUNS  pods placed ↑ "
    )
    assert lines[0].endswith(" spread of cpu  cpu fragmentation ↓")
    assert lines[2].startswith("shop   packed         1 ")
    assert "1 ±0*" in lines[2]
    assert lines[-1] == "9 of 9 runs done"
    assert err == "sweep.csv\n"
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 10
    again, _ = sweep(EXAMPLE)
    assert again.splitlines()[-1] == "9 of 9 runs done, 9 of them before"
    listed, _ = sweep(EXAMPLE, "--dry-run")
    assert listed.splitlines()[-1] == "9 runs, 0 to do"
    document = json.loads(sweep(EXAMPLE, "-o", "json")[0])
    assert (document["kind"], document["total"], document["reused"]) == ("SweepReport", 9, 9)


def test_releases_are_shown_and_an_unknown_one_is_a_warning() -> None:
    example = Path(EXAMPLE).parents[1]
    tree = {
        "apiVersion": "bayplan.dev/v1",
        "kind": "Sweep",
        "inputs": [{"name": "shop", "files": [str(example / "cluster.yaml")]}],
        "configurations": [{"name": "old", "kubernetesVersion": "1.20"}, {"name": "default"}],
    }

    out, err = sweep(write("sweep.json", tree), "--jobs", "1")
    head, first, second = out.splitlines()[:3]

    assert head.split()[:3] == ["INPUT", "CONFIGURATION", "RELEASE"]
    assert (first.split()[2], second.split()[2]) == ("v1.33.13", "v1.36.4")
    assert "warning: Kubernetes v1.20 is not known" in err


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    out, _ = sweep(EXAMPLE, "--dry-run")
    document = json.loads(sweep(EXAMPLE, "--dry-run", "-o", "json")[0])

    assert out.splitlines()[0].split()[:3] == ["RUN", "INPUT", "CONFIGURATION"]
    assert (document["kind"], document["missing"]) == ("SweepPlan", 9)
    assert {run["status"] for run in document["runs"]} == {"missing"}
    assert list(tmp_path.iterdir()) == []


def test_messages_of_ray_are_not_part_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Sweep.run

    def lose_a_machine(self: Sweep, **given: Any) -> SweepResults:
        print("(raylet) Raylet is terminated.")
        return run(self, jobs=1)

    monkeypatch.setattr(Sweep, "run", lose_a_machine)

    out, err = sweep(EXAMPLE, "-o", "json")

    assert json.loads(out)["done"] == 9
    assert "(raylet)" in err


def test_a_failed_run_is_shown_and_is_the_exit_status() -> None:
    Path("empty.yaml").write_text("# nothing\n")
    file = write("s.json", {"inputs": [{"files": ["empty.yaml"]}]})

    out, _ = sweep(file, code=1)

    assert "FAILED RUN" in out
    assert "empty.yaml: expected objects; got no document" in out
    assert out.splitlines()[-1] == "0 of 1 runs done, 1 failed"


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        pytest.param(["gone.yaml"], "gone.yaml: expected a readable file", id="no such file"),
        pytest.param([EXAMPLE, "--to", "x.txt"], "x.txt: expected a name that ends in", id="form"),
        pytest.param(
            [EXAMPLE, "--to", "gone/x.csv"], "gone/x.csv: expected a file in a folder", id="folder"
        ),
    ],
)
def test_wrong_input_is_one_line(args: list[str], fault: str) -> None:
    out, err = sweep(*args, code=2)

    assert out == ""
    assert err.startswith(f"error: {fault}")
