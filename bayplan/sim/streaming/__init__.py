"""Streaming: simulations of traces that are longer than memory.

Contents: reading objects one after the other (`lines.py`), adding them at their times (`timed_objects.py`),
letting finished pods leave (`ended_pods.py`), results that are written as pods end and summed up on the way
(`stream_results.py`, `running_use.py`, `sketch.py`), and the simulation that does so (`streamed_simulation.py`).
Imports: what may enter sim. Never: a decision that an ordinary simulation would not make;
anything kept per pod that has ended. Callers: cli, and users' scripts.
"""

from .stream_report import StreamReport
from .stream_results import PodRow, read_lines, write_rows
from .streamed_simulation import StreamedSimulation

__all__ = ["PodRow", "StreamReport", "StreamedSimulation", "read_lines", "write_rows"]
