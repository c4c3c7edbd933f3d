"""Plugins of a test that count as part of the package: their errors have kube-scheduler's words and nothing more."""

import pytest

from bayplan.runtime import plugin_failures


@pytest.fixture(autouse=True)
def _plugins_are_in_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_failures, "is_in_tree", lambda plugin: True)
