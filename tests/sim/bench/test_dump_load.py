"""Load: the dump has kubectl's format, and is measured to the first decision."""

import json
from pathlib import Path

from bayplan.sim import read_manifests
from bayplan.sim.bench.runs import measure_load, write_dump


def test_dump_is_a_list_as_kubectl_prints_it(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"

    write_dump(dump, nodes=3, pods=20)

    text = dump.read_text()
    tree = json.loads(text)
    assert json.dumps(tree, indent=4, ensure_ascii=False) + "\n" == text
    assert [item["kind"] for item in tree["items"]] == ["Node"] * 3 + ["Pod"] * 20
    assert sum("nodeName" not in item["spec"] for item in tree["items"][3:]) == 2


def test_every_object_of_the_dump_is_read(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    write_dump(dump, nodes=30, pods=200)

    manifests = read_manifests([dump])

    assert dump.stat().st_size > 1 << 20, "large enough to be read in pieces"
    assert len(manifests.objects) == 230
    assert not manifests.unused


def test_each_part_is_timed(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    write_dump(dump, nodes=3, pods=20)

    run = measure_load(dump, nodes=3, pods=20, clock="wall")

    assert (run.nodes, run.pods) == (3, 20)
    assert run.seconds > 0
    assert abs(run.read_s + run.cluster_s + run.decision_s - run.seconds) < 0.01
