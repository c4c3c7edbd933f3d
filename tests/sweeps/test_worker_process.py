"""Worker process: runs come in as lines and results go out as lines, with nothing between them."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import msgspec
import pytest
import yaml

from bayplan.api.wire.whole import whole
from bayplan.sweeps import Sweep, worker_process
from bayplan.sweeps.document import parse_sweep
from bayplan.sweeps.sweep_run import SweepRun
from bayplan.sweeps.worker import RunResult
from bayplan.testing.builders import make_node, make_pod

LOUD = """
import os
from bayplan.framework import ScorePlugin

os.write(1, b"loud\\n")


class Loud(ScorePlugin):
    name = "Loud"

    def score_node(self, state, pod, node):
        return 0
"""


@pytest.fixture(autouse=True)
def ends(monkeypatch: pytest.MonkeyPatch) -> SimpleQueue[int]:
    """The exit statuses with which the process would have ended; it would have been that of the tests."""
    statuses: SimpleQueue[int] = SimpleQueue()
    monkeypatch.setattr("bayplan.sweeps.worker_process.os._exit", statuses.put)
    return statuses


@pytest.fixture
def run(tmp_path: Path) -> SweepRun:
    """A run of two pods on one node; its plugin writes to standard output when it is imported."""
    objects: list[Any] = [make_node("a"), make_pod("p", cpu="1"), make_pod("q", cpu="1")]
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump_all([whole(obj) for obj in objects]))
    (tmp_path / "loud.py").write_text(LOUD)
    tree = {
        "inputs": [{"name": "shop", "files": ["shop.yaml"]}],
        "configurations": [{"name": "loud", "plugins": ["loud.py"]}],
    }
    (found,) = Sweep(parse_sweep(tree, "sweep", tmp_path), None).runs
    return found


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Standard output and the handler of Ctrl-C are restored: the process changes both."""
    handler, output = signal.getsignal(signal.SIGINT), os.dup(1)
    yield
    os.dup2(output, 1)
    os.close(output)
    signal.signal(signal.SIGINT, handler)


def test_lines_are_passed_on_until_the_input_ends_and_the_process_with_it(
    ends: SimpleQueue[int],
) -> None:
    source, target = os.pipe()
    os.write(target, b"first\nsecond\n")
    os.close(target)
    lines: SimpleQueue[bytes] = SimpleQueue()

    with os.fdopen(source, "rb") as pipe:
        worker_process._read(pipe, lines)

    assert [lines.get_nowait(), lines.get_nowait()] == [b"first\n", b"second\n"]
    assert lines.empty()
    assert ends.get_nowait() == 0


@pytest.mark.filterwarnings("ignore:unclosed file")  # the end of the process would close it
@pytest.mark.usefixtures("descriptors")
def test_results_alone_are_written_until_their_reader_is_gone(
    run: SweepRun, monkeypatch: pytest.MonkeyPatch, ends: SimpleQueue[int]
) -> None:
    """The other side gives a run, reads its result, goes away, and gives one more, whose result it does not read."""
    input_end, giver = os.pipe()
    reader, output_end = os.pipe()
    received: SimpleQueue[bytes] = SimpleQueue()

    def give_and_go() -> None:
        os.write(giver, msgspec.json.encode(run) + b"\n")
        with os.fdopen(reader, "rb") as results:
            received.put(results.readline())
        os.write(giver, msgspec.json.encode(run) + b"\n")

    with os.fdopen(input_end) as source:
        monkeypatch.setattr(sys, "stdin", source)
        os.dup2(output_end, 1)
        os.close(output_end)
        other = Thread(target=give_and_go)
        other.start()
        worker_process.main()
        other.join()
        status = ends.get_nowait()
        handler = signal.getsignal(signal.SIGINT)
        os.close(giver)
        assert ends.get(timeout=30) == 0, "its input has ended as well"

    result = msgspec.json.decode(received.get_nowait(), type=RunResult)
    assert (result.id, result.error, result.measures["placed"]) == (run.id, "", 2)
    assert status == 0
    assert handler is signal.SIG_IGN, "Ctrl-C is for the process that gives out runs"
