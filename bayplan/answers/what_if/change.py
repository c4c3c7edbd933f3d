"""Change: something that is done to a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..stage import Stage


class ClusterChange(ABC):
    """One change. It says in `text` what it is, as one would type it."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The change in a few words, such as `drain node-3`."""

    @abstractmethod
    def apply(self, stage: Stage) -> None:
        """Make the change; InputError when it names what is not there."""
