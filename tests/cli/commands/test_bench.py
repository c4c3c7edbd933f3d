"""bayplan research bench: output, files and exit status."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bayplan.cli.main import app
from bayplan.sim.bench.cases import own_cases
from bayplan.sim.bench.measurements import PodRun, write_report
from bayplan.sim.bench.workload import Request, find_workload

WORKLOADS = """
- name: tiny
  summary: three pods
  workloadTemplate:
  - {opcode: createNodes, countParam: $initNodes}
  - {opcode: createPods, countParam: $measurePods, collectMetrics: true}
  workloads:
  - name: few
    threshold: 0.5
    params: {initNodes: 2, measurePods: 3}
"""


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(WORKLOADS)
    return path


def make_run(cost: float, nodes: int = 1000, threshold: float = 0.0) -> PodRun:
    return PodRun(
        workload="basic",
        nodes=nodes,
        pods=10,
        placed=10,
        rounds=10,
        seconds=1.0,
        pods_per_s=1e6 / cost,
        us_per_pod=cost,
        p50_us=cost,
        p99_us=cost,
        mib_per_10k_pods=17.0,
        peak_mib=80.0,
        threshold=threshold,
    )


def report(path: Path, *runs: PodRun) -> Path:
    write_report(path, runs)
    return path


def test_workloads_are_listed() -> None:
    result = bench("--list")

    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert names == [*(case.name for case in own_cases()), "load"]
    assert result.exit_code == 0


def test_a_file_of_ones_own_is_run(file: Path, tmp_path: Path) -> None:
    written = tmp_path / "out.json"

    result = bench("--file", file, "--nodes", 3, "--nodes", 4, "--json", written)

    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[:2] == ["tiny, 3 nodes (1 of 2)", "tiny, 4 nodes (2 of 2)"]
    lines = result.stdout.splitlines()
    heading = "workload nodes pods placed pods/s µs/pod p50 µs p99 µs MiB/10k pods"
    assert " ".join(lines[0].split()) == heading
    rows = [line.split()[:4] for line in lines[1:3]]
    assert rows == [["tiny", "3", "3", "3"], ["tiny", "4", "3", "3"]]
    assert lines[4].startswith("growth")
    assert "\x1b" not in result.stdout
    document = json.loads(written.read_text())
    assert document["kind"] == "BenchReport"
    assert [run["nodes"] for run in document["runs"]] == [3, 4]
    assert {"usPerPod", "p50Us", "p99Us", "mibPer10kPods"} <= document["runs"][0].keys()


def test_several_runs_show_their_spread(file: Path) -> None:
    result = bench("-f", file, "-w", "tiny", "--repeat", 2)

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].endswith("spread")
    assert result.stdout.splitlines()[1].endswith("%")


def test_load_is_measured() -> None:
    result = bench("-w", "load", "-n", 3, "-p", 20)

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split()[0] == "dump"
    assert result.stdout.splitlines()[1].split()[:3] == ["load", "3", "20"]


def test_what_is_slower_is_named(tmp_path: Path) -> None:
    before = report(tmp_path / "before.json", make_run(100.0), make_run(100.0, 5000))
    now = report(tmp_path / "now.json", make_run(104.0), make_run(130.0, 5000))

    result = bench("--from", now, "--compare", before)

    assert result.exit_code == 1
    assert "slower: basic, 5,000 nodes" in result.stderr
    assert "slower: basic, 1,000 nodes" not in result.stderr
    assert "+30%" in result.stdout


def test_nothing_is_slower_below_the_threshold(tmp_path: Path) -> None:
    before = report(tmp_path / "before.json", make_run(100.0))
    now = report(tmp_path / "now.json", make_run(130.0))

    assert bench("--from", now, "--compare", before, "--threshold", 40).exit_code == 0


def test_a_workload_below_its_own_threshold_is_named(tmp_path: Path) -> None:
    now = report(tmp_path / "now.json", make_run(1e6, threshold=270.0))

    result = bench("--from", now)

    assert result.exit_code == 1
    assert "below 270 pods/s: basic, 1,000 nodes" in result.stderr


def test_growth_is_drawn(tmp_path: Path) -> None:
    now = report(tmp_path / "now.json", make_run(100.0), make_run(150.0, 5000))

    result = bench("--from", now, "--svg", tmp_path / "a.svg")

    assert result.exit_code == 0, result.output
    assert "× µs/pod" in result.stdout
    assert result.stdout.splitlines()[-1].split()[1:4] == ["100.0", "150.0", "1.5"]
    assert (tmp_path / "a.svg").read_text().startswith("<svg")


def test_a_workload_has_the_gates_of_the_release() -> None:
    workload = find_workload(Request("basic", nodes=5, pods=5, kubernetes_version="1.35"))

    assert workload.feature_gates.release.version == "1.35"
    assert find_workload(Request("basic")).feature_gates.release.version == "1.36"


def test_gates_of_a_workload_that_the_release_merged_are_on_with_the_other_gate() -> None:
    groups = find_workload(Request("pod-groups", nodes=8, pods=16, kubernetes_version="1.37"))

    assert groups.feature_gates.settings == {"GenericWorkload": True}
    assert groups.feature_gates.enabled("GangScheduling")
    assert "GangScheduling" in find_workload(Request("pod-groups")).feature_gates.settings


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["-w", "x"], "--workload: expected one of affinity, ", id="a workload"),
        pytest.param(["-f", "no.yaml"], "no.yaml: expected a readable file", id="a file"),
        pytest.param(["-f", "bad.yaml"], "bad.yaml: [0]: expected a mapping; got 7", id="content"),
        pytest.param(["--compare", "no.json"], "no.json: expected a readable file", id="compare"),
        pytest.param(["--from", "bad.yaml"], "bad.yaml: expected a BenchReport", id="from"),
        pytest.param(["--json", "no/a.json"], "--json: no/a.json: expected a folder", id="json"),
        pytest.param(["--svg", "no/a.svg"], "--svg: no/a.svg: expected a folder", id="svg"),
        pytest.param(["--from", "one.json", "--svg", "a.svg"], "--svg: expected runs at", id="one"),
        pytest.param(["--from", "two.json", "--svg", "."], ".: expected a writable file", id="dir"),
        pytest.param(["--growth", "-n", "3"], "--growth: expected it without --nodes", id="growth"),
        pytest.param(
            ["-w", "load", "--kubernetes-version", "1.35"],
            "--kubernetes-version: expected it without --workload load; got both",
            id="a release of what has none",
        ),
        pytest.param(
            ["-w", "questions", "--kubernetes-version", "1.35"],
            "--kubernetes-version: expected workloads of pods or events; got questions",
            id="a release of commands",
        ),
        pytest.param(
            ["-f", "mine.yaml", "-w", "tiny/many"],
            '--workload: expected one of tiny/few; got "tiny/many"',
            id="a size",
        ),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("- 7")
    report(Path("one.json"), make_run(100.0))
    report(Path("two.json"), make_run(100.0), make_run(100.0, 5000))

    result = bench(*arguments)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_plugins_of_ones_own_run_too(file: Path, tmp_path: Path) -> None:
    plugin, written = tmp_path / "one_node.py", tmp_path / "out.json"
    plugin.write_text(
        "from bayplan.framework import SUCCESS, FilterPlugin, unresolvable\n"
        "class Nowhere(FilterPlugin):\n"
        "    name = 'Nowhere'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return unresolvable('not here')\n"
    )

    bench("--file", file, "--plugins", plugin, "--json", written)

    assert json.loads(written.read_text())["runs"][0]["placed"] == 0


def test_a_fault_of_a_plugin_ends_it_with_one_line(file: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "zones.py"
    plugin.write_text(
        "from bayplan.framework import FilterPlugin\n"
        "class Zones(FilterPlugin):\n"
        "    name = 'Zones'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return node.labels['zone']\n"
    )

    result = bench("--file", file, "--plugins", plugin)

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        f"error: running \"Zones\" filter plugin: {plugin}:5: filter_node: KeyError: 'zone'"
    )
    assert "Traceback" not in result.stderr


def test_the_time_to_load_a_dump_is_measured_without_plugins(tmp_path: Path) -> None:
    result = bench("--workload", "load", "--plugins", tmp_path / "any.py")

    assert result.exit_code == 2
    assert "--plugins: expected it without --workload load; got both" in result.stderr
