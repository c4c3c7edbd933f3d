"""Remedies for a pod on the page: the rows and words of `bayplan explain`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

from .chromium import Tab
from .test_page import ROW, ssd_node, web_pod

Open = Callable[..., Tab]


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """Three full nodes of another disk type, and a pod that requires an SSD."""
    nodes = [ssd_node(f"worker-{i}", cpu="4") for i in range(3)]
    for node in nodes:
        node["metadata"]["labels"]["disk"] = "hdd"
    running = [web_pod(f"runs-{i}", "3", f"worker-{i}") for i in range(3)]
    waits: dict[str, Any] = web_pod("waits", "2")
    waits["spec"]["nodeSelector"] = {"disk": "ssd"}
    path = tmp_path / "cluster.json"
    path.write_text("\n".join(f"---\n{json.dumps(obj)}" for obj in [*nodes, *running, waits]))
    return path


def test_a_remedy_is_named_once_for_the_nodes_that_need_it(
    manifests: Path, tmp_path: Path, open_page: Open
) -> None:
    page = tmp_path / "page.html"
    simulated = CliRunner().invoke(app, ["simulate", "-f", str(manifests), "--html", str(page)])
    explained = CliRunner().invoke(app, ["explain", "pod/waits", "-f", str(manifests)])
    tab = open_page(page)

    tab.click(ROW)

    assert simulated.exit_code == 1, simulated.output
    remedies = tab.text(".remedies")
    assert remedies.count("no longer select disk=ssd") == 1
    assert tab.run("[...document.querySelectorAll('.remedies tr')][0].cells[0].innerText") == (
        "worker-0\nworker-1\nworker-2"
    )
    for line in tab.texts(".remedies li"):
        assert " ".join(line.split()) in " ".join(explained.output.split())
    assert "evict default/runs-0" in remedies or "1 cpu more" in remedies
