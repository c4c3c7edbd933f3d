"""Evidence options: where `shadow` and `replay --judge` write the objects of decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InputError
from .option_groups import option, option_group

if TYPE_CHECKING:
    from ...shadow.evidence import EvidenceFolder
    from ...sim.settings import Settings


@option_group
class EvidenceChoice:
    """The options of commands that judge decisions."""

    evidence: Path | None = option(
        "--evidence FOLDER",
        "Write the objects of each difference to a file here, for `bayplan explain -f`; at most 50 files.",
    )
    evidence_sampled: bool = option(
        "--evidence-sampled", "Write the objects of sampled decisions, too; at most 50 files more."
    )

    def check(self) -> None:
        """Raise InputError for an option without that which it belongs to."""
        if self.evidence_sampled and self.evidence is None:
            raise InputError("--evidence-sampled: expected --evidence FOLDER with it; got none")

    def folder(self, settings: Settings, version: str) -> EvidenceFolder | None:
        """The folder for evidence of a cluster of this version; None if none is given."""
        from ...shadow.evidence import EvidenceFolder

        if self.evidence is None:
            return None
        return EvidenceFolder(self.evidence, settings, version, takes_sampled=self.evidence_sampled)
