"""Clusters by name: `up --detach`, `down` and `clusters`, and entries that killed processes leave."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from bayplan.cli.commands import up
from bayplan.cli.commands.clusters import (
    ClusterEntry,
    claim,
    find_entry,
    folder_of,
    process_start,
    remove_entry,
    running_clusters,
    write_entry,
)
from bayplan.errors import InputError

TIMEOUT_S = 120


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def bayplan(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bayplan.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)


def test_a_cluster_goes_on_until_down_ends_it() -> None:
    options = ["--nodes", "2", "--like", "cpu=4,memory=16Gi", "--kubernetes-version", "1.34"]
    started = bayplan("up", "--detach", "--no-page", *options)
    try:
        assert (started.returncode, started.stderr.count("Serving https://127.0.0.1:")) == (0, 1)
        assert " with 2 nodes, Kubernetes v1.34.11. " in started.stderr
        kubeconfig = Path(started.stdout.strip().removeprefix("export KUBECONFIG="))
        (listed,) = json.loads(bayplan("clusters", "-o", "json").stdout)["items"]
        server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        assert (listed["name"], listed["nodes"], listed["server"]) == ("bayplan", 2, server)
        again = bayplan("up", "--detach")
        assert again.returncode == 2
        assert 'expected a name that no running cluster has; got "bayplan"' in again.stderr
    finally:
        ended = bayplan("down")

    assert (ended.returncode, ended.stderr) == (0, "bayplan: ended\n")
    assert not kubeconfig.exists()
    assert process_start(listed["pid"]) == ""
    assert bayplan("down").returncode == 2


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("kind: Nothing\napiVersion: v1\n")

    result = bayplan("up", "--detach", "--name", "other", "-f", str(wrong))

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f'error: {wrong}: document 1: no matches for kind "Nothing" in version "v1"\n'
    )
    assert running_clusters() == []


@pytest.mark.parametrize("detach", [False, True], ids=["up", "up in the background"])
def test_a_signal_before_the_cluster_serves_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detach: bool
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    command = [sys.executable, "-m", "bayplan.cli.main", "up", "-f", "-", *["--detach"] * detach]

    with subprocess.Popen(command, stdin=subprocess.PIPE) as waiting:  # for the end of its input
        while find_entry("bayplan") is None:
            assert waiting.poll() is None
        waiting.send_signal(signal.SIGTERM)
        status = waiting.wait(TIMEOUT_S)
        server = find_entry("bayplan")
        while server is not None and server.is_running():
            server = find_entry("bayplan")

    assert status == 130
    assert list(temporary.iterdir()) == []
    assert not folder_of("bayplan").exists()


def test_a_signal_whose_exception_is_lost_ends_the_process_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(up, "INTERRUPT_AGAIN_S", 0.01)
    before = signal.getsignal(signal.SIGALRM)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        with suppress(KeyboardInterrupt):  # as a compiled module does during an import
            up.interrupt(signal.SIGTERM, None)

        assert signal.getsignal(signal.SIGALRM) is up.interrupt
        assert signal.sigtimedwait({signal.SIGALRM}, TIMEOUT_S) is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})


def test_what_a_killed_process_left_is_recognised() -> None:
    entry = claim("web", next_free=False)
    dead = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    killed = replace(entry, pid=dead.pid, process_started=process_start(dead.pid))
    write_entry(killed)
    running = [each.name for each in running_clusters()]
    dead.send_signal(signal.SIGKILL)
    dead.communicate()

    assert running == ["web"]
    assert running_clusters() == []
    assert claim("web", next_free=False).pid == os.getpid(), "the name is free again"


def test_a_process_with_the_number_of_a_killed_one_is_another() -> None:
    write_entry(ClusterEntry("web", os.getpid(), "an earlier time"))

    assert running_clusters() == []


def test_down_removes_what_a_killed_process_left() -> None:
    write_entry(ClusterEntry("web", os.getpid(), "an earlier time"))

    result = bayplan("down", "web")

    assert result.returncode == 0
    assert "its process has ended before" in result.stderr
    assert find_entry("web") is None


def test_names_that_are_taken() -> None:
    first = claim("web", next_free=False)

    assert claim("web", next_free=True).name == "web-2"
    with pytest.raises(InputError, match=f"process {os.getpid()}"):
        claim("web", next_free=False)
    remove_entry(first)
    assert claim("web", next_free=False).name == "web"


def test_an_entry_is_for_its_owner_only() -> None:
    entry = claim("web", next_free=False)

    assert (folder_of(entry.name) / "cluster.json").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("name", ["", "Web", "-a", "a/b", "..", "a" * 64])
def test_names_that_are_refused(name: str) -> None:
    result = bayplan("up", "--name", name)

    assert result.returncode == 2
    assert result.stderr.startswith("error: --name: expected at most 63 lower case letters")


def test_the_state_folder_cannot_be_written(home: Path) -> None:
    (home / "bayplan").write_text("a file")

    result = bayplan("up", "--detach")

    assert result.returncode == 2
    assert "expected a folder to write, which XDG_STATE_HOME can set" in result.stderr
