"""Output: results for machines: JSON, YAML, and one line per pod.

The shape of JSON and YAML is that of `bayplan.sim.documents`.
"""

from __future__ import annotations

from ..sim import SimulationReport, to_document
from .documents import print_json_document, print_yaml_document


def print_json(report: SimulationReport) -> None:
    """Print the report as JSON."""
    print_json_document(to_document(report))


def print_yaml(report: SimulationReport) -> None:
    """Print the report as YAML."""
    print_yaml_document(to_document(report))


def print_names(report: SimulationReport) -> None:
    """Print `pod/<namespace>/<name> node/<node>` per pod; `-` stands for no node."""
    for result in report.pods:
        node = f"node/{result.attempt.node_name}" if result.is_placed else "-"
        print(f"pod/{result.pod.key} {node}")
