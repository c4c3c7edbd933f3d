"""The answer comes first where output goes to a pipe, and last on a terminal."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.cli.render import consoles

ROOT = Path(__file__).parents[3]
CLUSTER = [
    *("-f", str(ROOT / "examples/cluster.yaml")),
    *("-f", str(ROOT / "examples/workload.yaml")),
]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        pytest.param(["simulate"], "19 of 21 pods placed, 2 pending", id="simulate"),
        pytest.param(["what-if", "cordon", "worker-a1"], "nothing changes", id="what-if"),
        pytest.param(["rebalance", "--max-moves", "1"], "no move helps: ", id="rebalance"),
    ],
)
def test_the_answer_is_the_first_line_of_a_pipe(
    command: list[str], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consoles, "answer_comes_first", lambda: True)

    lines = CliRunner().invoke(app, [*command, *CLUSTER]).stdout.splitlines()

    assert lines[0].startswith(answer)
    assert lines[-1], "no blank line is left at the end"
    assert consoles.ANSWER not in "".join(lines)


def test_the_answer_is_the_last_line_otherwise() -> None:
    lines = CliRunner().invoke(app, ["simulate", *CLUSTER]).stdout.splitlines()

    assert lines[-1].startswith("19 of 21 pods placed, 2 pending")
