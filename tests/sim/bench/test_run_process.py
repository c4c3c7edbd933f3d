"""Processes: the result of a run in a separate process, and its errors."""

import os
import signal

import pytest

from bayplan.errors import BayplanError, InputError
from bayplan.sim.bench.measurement import in_own_process
from bayplan.sim.bench.measurements import PodRun
from bayplan.sim.bench.runs import run_request
from bayplan.sim.bench.workload import Request


def test_a_run_has_its_own_process() -> None:
    assert in_own_process(os.getpid) != os.getpid()


def test_errors_are_passed_to_the_parent() -> None:
    with pytest.raises(InputError, match=r'expected one of .*basic.*; got "basix"'):
        run_request(Request("basix"))


def test_a_killed_process_is_reported() -> None:
    with pytest.raises(BayplanError, match="bench: expected the process of the run to end"):
        in_own_process(signal.raise_signal, signal.SIGKILL)


def test_a_workload_is_run_and_the_best_taken() -> None:
    (measured,) = run_request(Request("basic", nodes=5, pods=10, clock="cpu"), repeat=2)

    assert isinstance(measured, PodRun)
    assert (measured.placed, measured.repeats, measured.clock) == (10, 2, "cpu")
