"""docs/autoscaling.md: the launch day is run, and has the figures that the page shows."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "autoscaling.md").read_text()
DAY = PAGE.split("\n## A launch day")[1].split("\n## ")[0]
COMMAND, SHOWN = re.findall(r"^```\n(.*?)^```", DAY, re.M | re.S)


def printed(monkeypatch: pytest.MonkeyPatch, *more: str) -> list[str]:
    """The lines that the command of the page prints, with single spaces."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, [*COMMAND.removeprefix("bayplan ").split(), *more])
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_the_launch_day_has_the_figures_that_the_page_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = printed(monkeypatch)

    for line in filter(None, SHOWN.splitlines()):
        assert " ".join(line.split()) in lines
    waiting = re.search(r"(\d+) pods wait for one boot time", DAY)
    assert waiting is not None
    assert any(line.startswith(f"pending pods {waiting[1]} 9h ") for line in lines)


def test_the_other_autoscaler_costs_what_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = re.search(r"its day costs ([\d.]+)", DAY)

    assert cost is not None
    lines = printed(monkeypatch, "--autoscaler", "cluster-autoscaler")
    assert any(line.startswith(f"cost {cost[1]},") for line in lines)
