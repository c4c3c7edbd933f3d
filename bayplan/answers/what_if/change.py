"""Change: a modification of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..stage import Stage


class ClusterChange(ABC):
    """One change; `text` is how a user would type it."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The change in a few words, such as `drain node-3`."""

    @abstractmethod
    def apply(self, stage: Stage) -> None:
        """Make the change; raises InputError when it names a missing object."""
