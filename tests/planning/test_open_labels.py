"""Labels that the requirements of a Karpenter NodePool leave open: nodes get the values that pods need."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.wire.decode import decode_object
from bayplan.autoscaling import autoscaled
from bayplan.planning import PoolReading, read_instance_table, read_pools
from bayplan.sim.settings import Settings
from tests.autoscaling.scaled import KARPENTER, make_workload
from tests.planning.test_pools import make_karpenter

KEY = "example.com/tenant"
TABLE = "name,cpu,memory,price\nlarge,4,16Gi,0.2\n"


def needs(value: str, way: str) -> dict[str, Any]:
    """The part of a pod's spec that needs a value of the label."""
    if way == "selector":
        return {"nodeSelector": {KEY: value}}
    term = {"matchExpressions": [{"key": KEY, "operator": "In", "values": [value]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": affinity}}


def cron_job(value: str) -> Any:
    spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    job = {"spec": {"template": {"spec": {**spec, **needs(value, "selector")}}}}
    head = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}}
    return decode_object({**head, "spec": {"schedule": "0 1 * * *", "jobTemplate": job}})


def read(
    tmp_path: Path, requirements: list[tuple[str, str, list[str]]], objects: list[Any]
) -> PoolReading:
    pools, table = tmp_path / "pools.yaml", tmp_path / "types.csv"
    pools.write_text(yaml.safe_dump(make_karpenter(*requirements)))
    table.write_text(TABLE)
    return read_pools([pools], read_instance_table(table), objects)


@pytest.mark.parametrize(
    ("requirements", "values"),
    [
        pytest.param([(KEY, "In", ["y", "x"])], ["y", "x"], id="all that are listed, in order"),
        pytest.param(
            [(KEY, "In", ["y", "x"]), (KEY, "NotIn", ["y"])],
            ["x"],
            id="listed ones but those excluded",
        ),
        pytest.param([(KEY, "Exists", [])], ["a", "b", "7", "0"], id="those of pods, and a number"),
        pytest.param(
            [(KEY, "Gt", ["5"])], ["7", "6"], id="those of pods above a bound, and the next"
        ),
        pytest.param([(KEY, "Lte", ["5"])], ["5"], id="no pod names one: a number below the bound"),
        pytest.param([(KEY, "NotIn", ["a"])], [None], id="none is needed"),
        pytest.param([(KEY, "DoesNotExist", [])], [None], id="none is allowed"),
    ],
)
def test_values_of_a_label_that_no_type_has(
    requirements: list[tuple[str, str, list[str]]], values: list[str | None], tmp_path: Path
) -> None:
    objects = [
        make_workload("one", 1, **needs("a", "selector")),
        make_workload("two", 1, **needs("b", "affinity")),
        cron_job("7"),
    ]

    reading = read(tmp_path, requirements, objects)

    assert [one.labels.get(KEY) for _, one in reading.types] == values


def test_tenants_get_nodes_of_their_own(tmp_path: Path) -> None:
    """Pods of two tenants never share a node; pods without a tenant join one that has room."""
    objects = [
        make_workload("red", 3, **needs("red", "selector")),
        make_workload("blue", 3, **needs("blue", "affinity")),
        make_workload("any", 2),
    ]
    pools = read(tmp_path, [(KEY, "Exists", [])], objects).pools

    simulation = autoscaled(Settings(), objects, pools, KARPENTER)
    report = simulation.run(until_s=3600)

    assert report.is_complete
    nodes = {use.node.name: use.node.labels[KEY] for use in report.nodes}
    assert sorted(nodes.values()) == ["blue", "red"]
    placed = Counter(
        (result.pod.name.partition("-")[0], nodes[result.attempt.node_name])
        for result in report.pods
    )
    assert {pair: n for pair, n in placed.items() if pair[0] != "any"} == {
        ("red", "red"): 3,
        ("blue", "blue"): 3,
    }


def test_a_note_tells_of_combinations_that_are_not_used(tmp_path: Path) -> None:
    values = [str(number) for number in range(10)]

    reading = read(tmp_path, [("a.example/x", "In", values), ("a.example/y", "In", values)], [])

    assert len(list(reading.types)) == 64
    assert any(
        "64 of 100 combinations of a.example/x, a.example/y" in note for note in reading.notes
    )
