"""`bayplan compare`: output and exit status."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ["-f", "cluster.yaml", "-f", "workload.yaml"]
PACK = "compare/most-allocated.yaml"


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """File names are short, wherever the examples lie, and lines as long as they need to be."""
    monkeypatch.chdir(EXAMPLES)


def compare(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["compare", *args, *FILES])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def rows(out: str) -> dict[str, list[str]]:
    """The table of metrics by title."""
    head, *lines = out.split("\n\n")[0].splitlines()
    width = head.index("default") - 2 if "default" in head else 36
    return {line[:width].strip(" ↑↓"): line[width:].split() for line in lines}


def test_one_configuration_is_compared_with_the_default() -> None:
    out, err = compare("--config", PACK)

    assert err == ""
    assert out.startswith("METRIC ")
    assert "default" in out.splitlines()[0]
    metrics = rows(out)
    assert metrics["nodes left empty"] == ["0", "1"]
    assert "pods pending" not in metrics, "it is equal"
    assert "metrics are equal (--all shows them)" in out
    assert out.rstrip().endswith(" land elsewhere")


@pytest.mark.parametrize("option", [["--all"], ["-o", "wide"]], ids=" ".join)
def test_equal_metrics_are_shown_when_asked_for(option: list[str]) -> None:
    out, _ = compare("--config", PACK, *option)

    assert "pods pending" in rows(out)
    assert "metrics are equal" not in out


def test_a_configuration_and_itself_are_equal() -> None:
    out, _ = compare("--config", PACK, "--config", PACK, "--seeds", "2")

    assert out.rstrip().endswith("0 of 21 pods land elsewhere, 2 runs each")
    for values in rows(out).values():
        half = len(values) // 2
        assert values[:half] == values[half:]


def test_the_document_for_machines() -> None:
    out, _ = compare("--config", PACK, "-o", "json")

    document = json.loads(out)
    assert document["kind"] == "Comparison"
    assert [each["name"] for each in document["contenders"]] == ["default", PACK]
    names = [metric["name"] for metric in document["contenders"][0]["metrics"]]
    assert {"pending", "cpuSpread", "fragmentation", "meanLatency"} <= set(names)
    assert document["differences"][0]["nodes"]


def test_names_of_pods_that_land_elsewhere() -> None:
    out, _ = compare("--config", PACK, "-o", "name")

    assert all(line.startswith("pod/") and len(line.split()) == 3 for line in out.splitlines())


# Releases

RELEASES = ["--kubernetes-version", "1.36", "--kubernetes-version", "1.37"]
GROUPS = "GenericWorkload=true"


def compare_groups(*args: str) -> tuple[str, str]:
    """With the gangs of the examples, which end with pods that land elsewhere by ties."""
    files = ["-f", "gang/cluster.yaml", "-f", "gang/gangs.yaml"]
    result = CliRunner().invoke(app, ["compare", *args, *files, *RELEASES])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_changes_are_counted_over_the_seeds() -> None:
    out, _ = compare("--seeds", "3", "--kubernetes-version", "1.35", "--kubernetes-version", "1.36")

    lines = [line.split() for line in out.splitlines()]
    assert ["go", "elsewhere", "1", "of", "21", "1", "4.8%"] in lines
    assert ["because", "of", "balance_scores_change", "1", "1", "4.8%"] in lines


def test_each_release_has_feature_gates_of_its_own() -> None:
    out, err = compare_groups(
        "--feature-gates", f"{GROUPS},GangScheduling=true", "--feature-gates", GROUPS
    )

    assert "v1.36.4 to v1.37.0-rc.1, each pod in the same cluster" in out
    assert "because of groups_are_entries" in out
    assert "without a changed decision land elsewhere in the run" in out
    constraints = "note: scheduling constraints of PodGroup objects are ignored without "
    assert err == f"{constraints}--feature-gates=TopologyAwareWorkloadScheduling=true\n"


def test_groups_that_one_release_alone_places_together_are_left_out() -> None:
    out, err = compare_groups("--feature-gates", "", "--feature-gates", GROUPS)

    assert "each pod in the same cluster" not in out
    assert "left out: members of pod groups, 27 pods, which only v1.37.0-rc.1 places" in out
    assert err.count("note: ") == 2


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(
            [*RELEASES, *["--feature-gates", GROUPS] * 3],
            "--feature-gates: expected it once for all releases, or 2 times; got it 3 times",
            id="more gates than releases",
        ),
        pytest.param(
            ["--config", PACK, *["--feature-gates", GROUPS] * 2],
            "--feature-gates: expected it once; got it 2 times",
            id="gates twice",
        ),
        pytest.param(
            [*RELEASES, "--feature-gates", "GangScheduling=true,GenericWorkload=true"],
            "--feature-gates: unrecognized feature gate: GangScheduling; v1.37 does not have it",
            id="a gate that one release does not have",
        ),
        pytest.param([], "--config: expected at least one configuration", id="nothing to compare"),
        pytest.param(["--config", "absent.yaml"], "absent.yaml: ", id="no file"),
    ],
)
def test_wrong_input_is_one_line_and_the_status_is_2(args: list[str], problem: str) -> None:
    out, err = compare(*args, code=2)

    assert out == ""
    assert err.startswith(f"error: {problem}")
    assert err.count("\n") == 1


def test_refused_pods_and_remarks_are_printed(tmp_path: Path) -> None:
    quota = tmp_path / "quota.yaml"
    quota.write_text(
        'apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: shop}\nspec: {hard: {pods: "1"}}\n'
    )

    out, _ = compare("--config", PACK, "-f", str(quota))
    document, _ = compare("--config", PACK, "-f", str(quota), "-o", "json")

    refused = [line for line in out.splitlines() if line.startswith("refused: ")]
    assert refused
    assert all("exceeded quota: q" in line for line in refused)
    assert json.loads(document)["remarks"] == refused


def test_remarks_of_the_autoscaler_are_printed(tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text(
        "apiVersion: bayplan.dev/v1\nkind: NodePool\nmetadata: {name: p}\n"
        "spec: {nodeTypes: [{name: small, capacity: {cpu: 2, memory: 4Gi}, price: 1}]}\n"
    )
    huge = tmp_path / "huge.yaml"
    huge.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: huge}\nspec: {containers: [{name: c, image: x, "
        "resources: {requests: {cpu: 400}}}]}\n"
    )

    out, _ = compare("--config", PACK, "--pools", str(pools), "-f", str(huge))

    assert "pod default/huge: 1 fit no pool" in out
