"""Counting instructions: in proportion to the work, and an error that names what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.instructions import HERE, main

LOOPS = """
import time
def loop(times):
    before = time.process_time_ns()
    for _ in range(times): pass
    return time.process_time_ns() - before
loop(1000)
print(loop(100_000), loop(200_000))
"""


def test_twice_the_work_is_twice_the_instructions() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE / "instruction_clock"),
        "BAYPLAN_COUNT_INSTRUCTIONS": "1",
    }

    done = subprocess.run(
        [sys.executable, "-c", LOOPS], env=environment, capture_output=True, text=True
    )

    if done.returncode and "expected a counter" in done.stderr:
        pytest.skip("this machine has no counter of instructions that may be read")
    once, twice = map(int, done.stdout.split())
    assert once > 100_000
    assert twice / once == pytest.approx(2, rel=0.05)


def test_a_folder_without_an_environment_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "-w", "basic"]) == 1
    assert f"{tmp_path}/.venv/bin/python: expected a Python; got none" in capsys.readouterr().err
