"""`bayplan plan pools`: output and exit status."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

PLAN = Path(__file__).parents[3] / "examples" / "plan"


def pools(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["pools", "check", *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_the_types_as_a_table() -> None:
    files = [str(PLAN / name) for name in ("pools.yaml", "instance-types.csv")]

    out, _ = pools(files[0], "--instance-types", files[1])

    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["POOL", "NODES", "TYPE", "CPU", "MEMORY", "PODS", "PRICE", "SPOT", "ZONES"]
    zones = "us-east-1a,us-east-1b,us-east-1c"
    assert lines[1] == ["system", "1-6", "small", "1.93", "7.4Gi", "29", "0.096", zones]
    assert out.splitlines()[-1] == "3 pools, 14 node types"


def test_the_types_as_a_document() -> None:
    out, _ = pools(
        str(PLAN / "karpenter.yaml"),
        "--instance-types",
        str(PLAN / "instance-types.csv"),
        "-o",
        "json",
    )

    document = json.loads(out)
    assert (document["apiVersion"], document["kind"]) == ("bayplan.dev/v1", "NodePools")
    (pool,) = document["pools"]
    assert pool["limits"] == {"cpu": "200", "memory": "800Gi"}
    assert [one["name"] for one in pool["types"]][:2] == ["m5.xlarge", "m5.2xlarge"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("kind: [", "expected YAML", id="no YAML"),
        pytest.param("", "expected a NodePool", id="an empty file"),
        pytest.param("- 1", "kind: expected a NodePool", id="a list"),
    ],
)
def test_a_faulty_file_ends_with_2(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(content)

    out, err = pools(str(path), code=2)

    assert out == ""
    assert f"{path}: " in err
    assert message in err
