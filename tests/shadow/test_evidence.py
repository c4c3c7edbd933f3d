"""Evidence: a difference is written with the objects that reproduce it, and explain reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan import Cluster, explain
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.shadow.evidence import INDEX, EvidenceFolder
from bayplan.shadow.shadow_run import ShadowRun
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod


def pod(name: str, node: str = "", **more: Any) -> Pod:
    return make_pod(name, uid=f"uid-{name}", node_name=node, **{"cpu": "1", **more})


def shadow(folder: Path, events: list[tuple[float, Pod]], most: int = 50) -> ShadowRun:
    nodes = [make_node(f"n{number}", cpu="4") for number in range(8)]
    nodes.append(make_node("tainted", cpu="8", taints=["gpu=yes:NoSchedule"]))
    there = [pod(f"there-{number}", f"n{number}", cpu="2") for number in range(7)]
    evidence = EvidenceFolder(folder, Settings(), "v1.36.4", most)
    run = ShadowRun([*nodes, *there, pod("beside", "tainted")], Settings(), evidence=evidence)
    for at_s, obj in events:
        run.take(at_s, obj)
    run.finish(1000.0)
    return run


def test_a_refusal_is_reproduced_by_few_objects(tmp_path: Path) -> None:
    run = shadow(tmp_path, [(1.0, pod("p")), (1.1, pod("p", "tainted"))])

    (line,) = map(json.loads, (tmp_path / INDEX).read_text().splitlines())
    assert run.account.differences[0].evidence == line["file"]
    assert line["objects"] == 3  # the pod, its node, and the pod there
    told = explain(Cluster.read(tmp_path / line["file"]), "default/p", as_is=True)
    assert "untolerated taint" in told.message


def test_totals_are_reproduced_by_all_objects(tmp_path: Path) -> None:
    run = shadow(tmp_path, [(1.0, pod("p")), (1.1, pod("p", "n1"))])

    (found,) = run.account.differences
    told = explain(Cluster.read(tmp_path / found.evidence), "default/p", as_is=True)
    totals = {node.name: node.total for node in told.scores}
    assert found.reason.startswith(f"{totals['n1']} points, best {totals['n7']}, rank 2 of 8")


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    events = [
        (at_s + 10 * number, pod(f"p{number}", node, cpu="10m"))
        for number in range(4)
        for at_s, node in ((1.0, ""), (1.1, "tainted"))
    ]

    run = shadow(tmp_path, events, most=2)

    assert len(run.account.differences) == 4
    assert len(list(tmp_path.glob("*.json.gz"))) == 2


def test_totals_of_sampled_decisions_are_reproduced(tmp_path: Path) -> None:
    nodes = [make_node(f"n{i:03}", cpu="32" if i == 9 else "8") for i in range(150)]
    evidence = EvidenceFolder(tmp_path, Settings(), "v1.36.4", takes_sampled=True)
    run = ShadowRun(nodes, Settings(), evidence=evidence)
    run.take(1.0, pod("p"))
    run.take(1.1, pod("p", "n010"))
    run.finish(100.0)

    (line,) = map(json.loads, (tmp_path / INDEX).read_text().splitlines())
    assert line["result"] == "sampled"
    assert run.account.differences == []
    told = explain(Cluster.read(tmp_path / line["file"]), "default/p", as_is=True)
    totals = {node.name: node.total for node in told.scores}
    assert line["reason"].startswith(f"{totals['n010']} points, best {totals['n009']}, rank 2 of")


def test_a_file_in_the_way_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match=r"--evidence: .*: expected a folder to write to"):
        EvidenceFolder(tmp_path / "file", Settings())
