"""Streaming: simulations of traces that are longer than memory.

Contents: the simulation, in which objects come at their times and finished pods leave (`streamed_simulation.py`);
results that are written as pods end (`stream_results.py`) and summed up on the way (`running_use.py`,
`stream_report.py`).
Imports: what may enter sim. Never: a decision that an ordinary simulation would not make;
anything kept per pod that has ended. Callers: cli, and users' scripts.
"""

from .stream_report import StreamReport
from .stream_results import PodRow, read_lines, write_rows
from .streamed_simulation import StreamedSimulation

__all__ = ["PodRow", "StreamReport", "StreamedSimulation", "read_lines", "write_rows"]
