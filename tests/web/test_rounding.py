"""Shares are rounded in one way, by the commands and on the page."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import bayplan.web
from bayplan.cli.render.tables import percent

FORMAT = Path(bayplan.web.__file__).parent / "page" / "format.js"
SHARES = [
    (0, 4000),
    (1, 4000),
    (39, 4000),
    (40, 4000),
    (50, 4000),
    (29, 100),
    (57, 100),
    (115, 200),
    (1999, 2000),
    (2000, 2000),
    (2001, 2000),
    (7 * 2**30, 64 * 2**30),
    (64 * 2**40 - 1, 64 * 2**40),
]


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        pytest.param(0, 4, "0", id="nothing"),
        pytest.param(1, 4000, "<1", id="a little is not nothing"),
        pytest.param(999, 1000, "99", id="nearly all is not all"),
        pytest.param(115, 200, "57", id="a half is not rounded up"),
        pytest.param(9, 6, "150", id="more than there is"),
    ],
)
def test_shares_of_commands(part: int, whole: int, text: str) -> None:
    assert percent(part / whole) == text


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the page's script")
def test_the_page_rounds_as_the_commands_do() -> None:
    script = f"{FORMAT.read_text()}\nconst shares = {json.dumps(SHARES)};"
    script += "console.log(JSON.stringify(shares.map(([part, whole]) => percent(part / whole))));"

    shown = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)

    assert json.loads(shown.stdout) == [f"{percent(part / whole)}%" for part, whole in SHARES]
