"""Answers of kube-scheduler about pods of the dumps, compared with ours, pod by pod."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan import Cluster, explain, simulate

from .material import CORPUS, SHARED

REFUSED = "Unschedulable"
DUMPS = [CORPUS / "dump.yaml.gz", SHARED / "dump-all.yaml.gz"]
MANIFESTS = [CORPUS / name for name in ("nodes.yaml", "platform.yaml", "shop.yaml")]


def recorded_messages(file: Path) -> dict[str, str]:
    """Messages of kube-scheduler about the pods of a dump that it found no node for, by key."""
    items = yaml.load(gzip.decompress(file.read_bytes()), yaml.CSafeLoader)["items"]
    return dict(_messages(items))


def _messages(items: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for item in items:
        if item["kind"] != "Pod" or item["spec"].get("nodeName"):
            continue
        for condition in item["status"].get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition.get("reason") == REFUSED:
                yield (
                    f"{item['metadata']['namespace']}/{item['metadata']['name']}",
                    condition["message"],
                )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "file", [pytest.param(file, id=file.parent.name + "/" + file.name) for file in DUMPS]
)
def test_refusals_of_a_dump_are_those_of_kube_scheduler(file: Path) -> None:
    if not file.exists():
        pytest.skip("no dumps beside the repository")
    recorded = recorded_messages(file)
    assert recorded

    cluster = Cluster.read(file)

    assert {pod: explain(cluster, pod, as_is=True).message for pod in recorded} == recorded


@pytest.mark.filterwarnings("ignore")
def test_manifests_give_the_pending_pods_of_the_real_cluster() -> None:
    """The same workloads wait for the same reasons; names of pods and volumes' provisioner differ."""
    recorded = set(recorded_messages(DUMPS[0]).values())

    report = simulate(Cluster.read(*MANIFESTS), until="1m")

    found = {result.attempt.message for result in report.pods if not result.is_placed}
    assert {text for text in found if text.startswith("0/5 nodes")} == recorded
