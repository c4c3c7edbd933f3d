"""Machine output: results for machines: JSON, YAML, and one line per pod.

The shape of JSON and YAML is that of `SimulationReport.to_dict`, with the remarks on what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .plain_data import print_json_document, print_yaml_document, with_remarks

if TYPE_CHECKING:
    from ...sim import SimulationReport


def print_json(report: SimulationReport, remarks: Sequence[str] = ()) -> None:
    """Print the report as JSON."""
    print_json_document(with_remarks(report.to_dict(), remarks))


def print_yaml(report: SimulationReport, remarks: Sequence[str] = ()) -> None:
    """Print the report as YAML."""
    print_yaml_document(with_remarks(report.to_dict(), remarks))


def print_names(report: SimulationReport) -> None:
    """Print `pod/<namespace>/<name> node/<node>` per pod; `-` stands for no node."""
    for result in report.pods:
        node = f"node/{result.attempt.node_name}" if result.is_placed else "-"
        print(f"pod/{result.pod.key} {node}")
