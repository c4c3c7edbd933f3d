"""How `bayplan run` ends: signals, threads of plugins that block, and its state on request before it is ready."""

import asyncio
import logging
import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.commands import run as module
from bayplan.cli.main import app


class EndedError(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def statuses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The statuses with which the process would have ended at once."""
    found: list[int] = []

    def end(code: int) -> None:
        found.append(code)
        raise EndedError

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    return found


def test_ending_at_once_has_the_given_status(statuses: list[int]) -> None:
    with pytest.raises(EndedError):
        module.end_at_once(3)

    assert statuses == [3]


def test_the_first_signal_is_an_event_and_the_second_ends_the_process(
    statuses: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[Any] = []

    async def send() -> bool:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context.get("exception")))
        told = module.on_signals(loop)
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(10):
                await told.wait()
            assert statuses == []
            os.kill(os.getpid(), signal.SIGINT)
            async with asyncio.timeout(10):
                while not errors:
                    await asyncio.sleep(0)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        return told.is_set()

    assert asyncio.run(send())
    assert statuses == [module.SECOND_SIGNAL]
    assert [type(error) for error in errors] == [EndedError]
    assert "second signal: ending at once" in caplog.text


@pytest.mark.parametrize(
    ("name", "blocks", "expected"),
    [
        pytest.param("plugin-0", True, True, id="a plugin that still blocks"),
        pytest.param("plugin-0", False, False, id="a plugin that ends in time"),
        pytest.param("other", True, False, id="a thread that is no plugin's"),
    ],
)
def test_a_plugin_that_blocks_its_thread_is_noticed(
    name: str, blocks: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENDING_S", 0.01 if blocks else 10)
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name=name, daemon=True)
    thread.start()
    if not blocks:
        done.set()
    try:
        assert module.has_blocked_plugins() is expected
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("scheduler", [None, object()], ids=["not built yet", "not ready yet"])
def test_a_request_for_the_state_before_the_cluster_is_known_says_so(
    scheduler: object, caplog: pytest.LogCaptureFixture
) -> None:
    driver: Any = SimpleNamespace(scheduler=scheduler, is_ready=lambda: False)

    with caplog.at_level(logging.INFO):
        asyncio.run(module.show_state(driver))

    assert "SIGUSR2: the cluster is not known yet" in caplog.text


def test_the_status_of_the_scheduler_is_that_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lose(flags: Any) -> int:
        return module.LOST_LEASE

    monkeypatch.setattr(module, "serve", lose)

    result = CliRunner().invoke(app, ["run", "--secure-port=0"])

    assert result.exit_code == module.LOST_LEASE


def test_a_command_with_a_plugin_that_blocks_ends_without_it(
    statuses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(flags: Any) -> int:
        return 0

    monkeypatch.setattr(module, "serve", stop)
    monkeypatch.setattr(module, "has_blocked_plugins", lambda: True)

    CliRunner().invoke(app, ["run", "--secure-port=0"])

    assert statuses == [0]
