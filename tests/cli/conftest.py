"""Settings for the tests of commands."""

from pathlib import Path

import pytest

from bayplan.cli.render import consoles
from tests.rig.idle_api import api, kubeconfig

__all__ = ["api", "kubeconfig"]


@pytest.fixture(autouse=True)
def free_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are as long as they need to be, however wide the terminal is."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def terminal_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes last, as on a terminal; tests/cli/render/test_consoles.py has the order of a pipe."""
    monkeypatch.setattr(consoles, "answer_comes_first", lambda: False)


@pytest.fixture(autouse=True)
def no_cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kubeconfig is found: not that of the person who runs the tests, nor that of a pod."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp()))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; output is as wide as it likes."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
