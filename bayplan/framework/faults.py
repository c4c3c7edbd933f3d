"""Faults: errors in the code of a plugin, and their effects besides the pod that they fail."""

from __future__ import annotations

import logging

from ..errors import PluginError

log = logging.getLogger(__name__)

FAULT = "PluginFault"
"""Stands for the plugin in a pod's rejectors: only a change of the pod itself requeues it."""
MAX_NOTED = 1000


class PluginFaultError(PluginError):
    """A plugin raised, or gave an answer of the wrong type or shape; one line with file, line and method."""


class PluginFaults:
    """The faults of a scheduler's plugins. Each is logged once, or ends the run if they are `fatal`."""

    def __init__(self, fatal: bool = False) -> None:
        self._is_fatal = fatal
        self._noted: set[str] = set()
        self.first: PluginFaultError | None = None

    def note(self, error: BaseException | None) -> None:
        """Record that a step failed with `error`; errors that are no faults are ignored."""
        if not isinstance(error, PluginFaultError):
            return
        self.first = self.first or error
        text = str(error)
        if not self._is_fatal and text not in self._noted and len(self._noted) < MAX_NOTED:
            self._noted.add(text)
            log.error("%s", text)

    def check(self) -> None:
        """Raise the first fault if faults are fatal."""
        if self._is_fatal and self.first is not None:
            raise self.first
