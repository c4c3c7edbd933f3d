"""Workers of sweeps: plugins from modules, pods per node, a Ray that is gone, folders of killed processes."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from bayplan.api.wire.whole import whole
from bayplan.errors import InputError
from bayplan.sweeps import Sweep
from bayplan.sweeps.dispatch import CrewLostError
from bayplan.sweeps.document import parse_sweep
from bayplan.sweeps.on_ray import RayCrew
from bayplan.sweeps.worker import Worker
from bayplan.testing.builders import make_node, make_pod

PLUGIN = """
from bayplan.framework import ScorePlugin


class First(ScorePlugin):
    name = "First"

    def score_node(self, state, pod, node):
        return 100 if node.name == "a" else 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    objects: list[Any] = [make_node("a"), make_node("b")]
    objects += [make_pod(f"p{i}", cpu="1") for i in range(3)]
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump_all([whole(obj) for obj in objects]))
    (tmp_path / "chosen.py").write_text(PLUGIN)
    return tmp_path


@pytest.fixture
def sweep_tree() -> dict[str, Any]:
    """Plain data of a sweep with the files of `folder`: two runs."""
    tree: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    enabled = {"multiPoint": {"enabled": [{"name": "First", "weight": 50}]}}
    tree["profiles"] = [{"plugins": enabled}]
    chosen = {"name": "chosen", "plugins": ["chosen.py"], "config": tree}
    return {
        "inputs": [{"name": "shop", "files": ["shop.yaml"]}],
        "configurations": [{"name": "default"}, chosen],
    }


def make(folder: Path, tree: dict[str, Any], name: str = "") -> Sweep:
    return Sweep(parse_sweep(tree, "sweep", folder), folder / name if name else None)


def test_a_plugin_may_be_a_module_as_for_the_command(
    folder: Path, sweep_tree: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "sweep_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "chosen.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(folder))
    by_file = make(folder, sweep_tree).runs
    sweep_tree["configurations"][1]["plugins"] = ["sweep_package.chosen"]

    runs = make(folder, sweep_tree).runs
    found = [Worker().run(run) for run in runs]

    assert [run.id for run in runs] == [run.id for run in by_file], "the source is the same"
    assert [result.error for result in found] == ["", ""]
    assert [result.measures["emptyNodes"] for result in found] == [0, 1]
    (package / "chosen.py").write_text(PLUGIN + "\n")
    assert make(folder, sweep_tree).runs[1].id != runs[1].id
    assert "got other content" in Worker().run(runs[1]).error
    sweep_tree["configurations"][1]["plugins"] = ["sweep_package.missing"]
    with pytest.raises(
        InputError, match=r"configurations\[1\].plugins: sweep_package.missing: exp"
    ):
        make(folder, sweep_tree)


def test_nodes_of_a_trace_take_as_many_pods_as_the_input_says(folder: Path) -> None:
    (folder / "nodes.csv").write_text("name,cpu\na,8\n")
    (folder / "pods.csv").write_text("name,count,cpu\np,4,1\n")
    given = {"trace": "csv", "nodes": "nodes.csv", "pods": "pods.csv"}
    runs = [
        make(folder, {"inputs": [{**given, **more}]}).runs[0] for more in ({}, {"podsPerNode": 3})
    ]

    found = [Worker().run(run).measures["placed"] for run in runs]

    assert found == [4, 3]
    assert runs[0].id != runs[1].id


def test_a_sweep_that_loses_its_ray_says_how_to_go_on(
    folder: Path, sweep_tree: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    crew = object.__new__(RayCrew)
    monkeypatch.setattr(crew, "_head", f"127.0.0.1:{port}", raising=False)
    ray = SimpleNamespace(wait=lambda *_, **__: ([], []))
    monkeypatch.setattr(crew, "_ray", ray, raising=False)
    monkeypatch.setattr(crew, "_pending", {}, raising=False)
    monkeypatch.setattr("bayplan.sweeps.sweep.dispatch", lambda *_: crew.next_report())
    sweep = make(folder, sweep_tree, "results.csv")

    with pytest.raises(CrewLostError) as lost:
        sweep.run(jobs=1)

    assert "the head of the cluster at 127.0.0.1:" in str(lost.value)
    assert str(lost.value).endswith("results.csv: the same call again goes on from there")
    crew.close()


ENDLESS = """
import os
from bayplan.framework import ScorePlugin


class Endless(ScorePlugin):
    name = "Endless"

    def score_node(self, state, pod, node):
        self.pipe = open({pipe!r}, "w")
        print(os.getpid(), file=self.pipe, flush=True)
        while True:
            pass
"""


def test_a_worker_in_a_run_ends_with_the_process_that_gave_it_out(
    folder: Path, sweep_tree: dict[str, Any]
) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    (folder / "chosen.py").write_text(ENDLESS.replace("{pipe!r}", repr(str(pipe))))
    del sweep_tree["configurations"][0]
    del sweep_tree["configurations"][0]["config"]
    (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep_tree))
    command = (sys.executable, "-m", "bayplan", "sweep", str(folder / "sweep.yaml"), "--jobs", "1")
    giver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with pipe.open() as told:
        worker = int(told.readline())

        giver.terminate()
        giver.wait()

        # The worker has the only other end of the pipe: its end is that of the file.
        is_over, _, _ = select.select([told], [], [], 30)
        if not is_over:
            os.kill(worker, signal.SIGKILL)
        assert is_over
        assert told.read() == ""


def test_a_killed_process_leaves_no_folder(tmp_path: Path) -> None:
    code = """
import os, signal
from bayplan.sweeps.worker import GuardedFolder
folder = GuardedFolder("guarded-")
open(folder.name + "/file", "w").close()
print(folder.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        (sys.executable, "-c", code), env=environment, capture_output=True, text=True
    )
    folder = Path(done.stdout.strip())

    assert folder.parent == tmp_path
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not folder.exists()
