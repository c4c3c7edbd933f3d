"""`bayplan plan` with a user's plugin, on a terminal, and with Ctrl-C in the middle of the search."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.sim.bench.plan_workloads import web_pools, web_workload

PLUGIN = """\
from bayplan.framework import SUCCESS, FilterPlugin, unschedulable


class OneOfATeam(FilterPlugin):
    name = "OneOfATeam"

    def filter_node(self, state, pod, node):
        teams = {other.labels.get("team") for other in node.pods}
        if pod.labels.get("team") in teams:
            return unschedulable("node(s) had a pod of the team")
        return SUCCESS
"""


def write_files(folder: Path, team_pods: int) -> list[str]:
    pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"a-{i}", "labels": {"team": "a"}},
            "spec": pod,
        }
        for i in range(team_pods)
    ]
    types = [{"name": "large", "capacity": {"cpu": 8, "memory": "16Gi"}, "price": 0.36}]
    pool = {
        "apiVersion": "bayplan.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "p"},
        "spec": {"nodeTypes": types},
    }
    (folder / "workload.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": pods})
    )
    (folder / "pools.json").write_text(json.dumps(pool))
    (folder / "one_of_a_team.py").write_text(PLUGIN)
    return ["-f", str(folder / "workload.json"), "--pools", str(folder / "pools.json")]


def test_a_plugin_that_keeps_pods_of_a_team_apart_changes_the_plan(tmp_path: Path) -> None:
    files = write_files(tmp_path, 3)
    plugins = ["--plugins", str(tmp_path / "one_of_a_team.py")]
    nodes = tmp_path / "nodes.yaml"

    def ask(*args: str) -> dict[str, object]:
        result = CliRunner().invoke(app, [*args, "-o", "json"])
        assert result.exit_code == 0, result.output
        found: dict[str, object] = json.loads(result.stdout)
        return found

    without = ask("plan", *files, "--time-limit", "5s")
    with_plugin = ask("plan", *files, "--time-limit", "5s", *plugins, "--to", str(nodes))

    assert (without["nodes"], with_plugin["nodes"]) == (1, 3)
    placed = ask("simulate", "-f", str(nodes), *files[:2], *plugins)
    assert placed["summary"]["placed"] == 3  # type: ignore[index]


def test_ctrl_c_ends_the_search_with_the_best_plan_and_the_bar_shows_price_and_bound(
    tmp_path: Path,
) -> None:
    workload, pools = tmp_path / "workload.json", tmp_path / "pools.json"
    items = list(web_workload(0, 40, 400))
    workload.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    pools.write_text(json.dumps(web_pools()))
    command = ["plan", "-f", str(workload), "--pools", str(pools), "--time-limit", "10m"]
    ours, theirs = pty.openpty()
    with (tmp_path / "plan.json").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "bayplan", *command, "-o", "json"],
            stdout=out,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
        )
    os.close(theirs)
    shown = b""
    while b"per hour" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # the other side is closed; until then unread output blocks the process
        while os.read(ours, 4096):
            pass
    os.close(ours)

    assert process.wait() == 0
    found = json.loads((tmp_path / "plan.json").read_bytes())
    assert b"bound" in shown
    assert found["interrupted"]
    assert found["pods"] > 400
    assert 0 < found["bound"] <= found["price"]
