"""Command time: the processor time that the command has taken."""

from __future__ import annotations

import time

is_whole_process = False
"""True if the process runs the command and nothing else; then its start counts for a time limit, too."""


def spent_s() -> float:
    """Processor time since the start of the process; 0 if it runs more than the command."""
    return time.process_time() if is_whole_process else 0.0
