"""A node and pods as files, and `bayplan simulate` on them."""

from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}


def write(name: str, *objects: dict[str, Any]) -> str:
    Path(name).write_text(yaml.safe_dump_all(objects))
    return name


def simulate(*args: str, code: int = 0, stdin: str | None = None) -> tuple[str, str]:
    """Run the command within this process; returns its output and its complaints."""
    result = CliRunner().invoke(app, ["simulate", *args], input=stdin)
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr
