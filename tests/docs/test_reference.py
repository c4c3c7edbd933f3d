"""Reference pages name the fields of output documents, annotations, labels and resources in the code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

ROOT = Path(__file__).parents[2]
MANIFESTS = ["-f", "examples/cluster.yaml", "-f", "examples/workload.yaml"]
USAGE = ["-f", "examples/usage/cluster.yaml", "--usage", "examples/usage/use.csv"]
EVERYWHERE = {"apiVersion", "kind"}
PLAN = ["-f", "examples/plan/workload.yaml", "--pools", "examples/plan/pools.yaml"]
TYPES = ["--instance-types", "examples/plan/instance-types.csv"]
MAPS = {"waitsFor", "typicalPod", "schedulers"}
"""Fields whose keys are names of plugins or resources."""


def words_of(page: str, heading: str = "") -> set[str]:
    """The words in code of a page, or of one of its sections."""
    text = (ROOT / "docs" / page).read_text()
    if heading:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    code = re.findall(r"```\w*\n(.*?)^```", text, re.M | re.S) + re.findall(r"`([^`\n]+)`", text)
    return {word for part in code for word in re.findall(r"[\w./-]+", part)}


def fields_of(document: dict[str, Any]) -> set[str]:
    """The fields at the top of a document, and those of the objects below it."""
    found = set(document)
    for name, value in document.items():
        for item in value if isinstance(value, list) else [value]:
            found |= set(item) if isinstance(item, dict) and name not in MAPS else set()
    return found - EVERYWHERE


@pytest.mark.parametrize(
    ("heading", "command"),
    [
        ("Simulate", ["simulate", *MANIFESTS]),
        ("Explain", ["explain", "edge-proxy", *MANIFESTS]),
        ("What-if", ["what-if", "drain", "worker-b2", *MANIFESTS]),
        ("Capacity", ["capacity", *MANIFESTS, "--pod", "examples/capacity/api.yaml"]),
        ("Rightsizing", ["what-if", "rightsize", *USAGE]),
        ("Compare", ["compare", *MANIFESTS, "--config", "examples/compare/most-allocated.yaml"]),
        ("Sweep", ["sweep", "examples/sweep/sweep.yaml", "--to", "{folder}/x.csv"]),
        ("Rebalance", ["rebalance", *MANIFESTS, "--objective", "pack"]),
        ("Plan", ["plan", *PLAN, *TYPES, "--time-limit", "1s"]),
        ("Pools", ["pools", "check", PLAN[-1], *TYPES]),
        ("Replay", ["replay", "examples/recording/run.jsonl.gz"]),
        ("Replay", ["replay", "examples/recording/run.jsonl.gz", "--follow", "own"]),
        ("Doctor", ["doctor", "-f", "examples/cluster.yaml"]),
        ("Shadow", ["replay", "examples/recording/run.jsonl.gz", "--judge"]),
    ],
)
def test_every_field_of_a_document_is_described(
    heading: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = [word.format(folder=tmp_path) for word in command]

    document = json.loads(CliRunner().invoke(app, [*words, "-o", "json"]).stdout)

    assert fields_of(document) - words_of("output.md", heading) == set()


def test_every_annotation_label_and_resource_is_described() -> None:
    used = {
        name
        for path in (ROOT / "bayplan").rglob("*.py")
        for name in re.findall(r'"(bayplan\.dev/[a-z-]+)"', path.read_text())
    }

    assert len(used) > 5
    assert used - words_of("annotations.md") == set()
