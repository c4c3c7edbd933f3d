"""Processes: what a run in a process of its own returns, and what is said when it cannot."""

import os
import signal

import pytest

from bayplan.errors import BayplanError, InputError
from bayplan.sim.bench import PodRun, Request, run_request
from bayplan.sim.bench.processes import in_own_process


def test_a_run_has_a_process_of_its_own() -> None:
    assert in_own_process(os.getpid) != os.getpid()


def test_what_goes_wrong_there_is_said_here() -> None:
    with pytest.raises(InputError, match=r'expected one of .*basic.*; got "basix"'):
        run_request(Request("basix"))


def test_a_process_that_is_killed_is_named() -> None:
    with pytest.raises(BayplanError, match="bench: expected the process of the run to end"):
        in_own_process(signal.raise_signal, signal.SIGKILL)


def test_a_workload_is_run_and_the_best_taken() -> None:
    (measured,) = run_request(Request("basic", nodes=5, pods=10, clock="cpu"), repeat=2)

    assert isinstance(measured, PodRun)
    assert (measured.placed, measured.repeats, measured.clock) == (10, 2, "cpu")
