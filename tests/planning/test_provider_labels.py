"""Labels that Kubernetes or a provider gives to nodes by their type: they follow from the name, or a note tells."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.planning import PoolReading, read_instance_table, read_pools
from tests.planning.test_pools import make_karpenter

TABLE = """\
name,cpu,memory,price
m5.large,2,8Gi,0.1
m6g.large,2,8Gi,0.08
c7gn.large,2,4Gi,0.1
a1.large,2,4Gi,0.05
g4dn.xlarge,4,16Gi,0.5
m8i-flex.large,2,8Gi,0.09
"""
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
AWS, EKS = "karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-"


def read(
    tmp_path: Path, requirements: list[tuple[str, str, list[str]]], group: str = "", table: str = ""
) -> PoolReading:
    pools, types = tmp_path / "pools.yaml", tmp_path / "types.csv"
    document: dict[str, Any] = make_karpenter(*requirements)
    document["spec"]["template"]["spec"]["nodeClassRef"] = {"group": group, "name": "default"}
    pools.write_text(yaml.safe_dump(document))
    types.write_text(table or TABLE)
    return read_pools([pools], read_instance_table(types))


@pytest.mark.parametrize(
    ("requirements", "group", "names"),
    [
        pytest.param(
            [(ARCH, "In", ["amd64"])],
            "",
            ["m5.large", "g4dn.xlarge", "m8i-flex.large"],
            id="types with Graviton are no amd64",
        ),
        pytest.param(
            [(ARCH, "In", ["arm64"])],
            "",
            ["m6g.large", "c7gn.large", "a1.large"],
            id="types with Graviton are arm64",
        ),
        pytest.param(
            [(OS, "In", ["windows"]), (f"{AWS}category", "In", ["m"]), (ARCH, "In", ["amd64"])],
            "",
            ["m5.large", "m8i-flex.large"],
            id="the pool says which operating system its nodes have",
        ),
        pytest.param(
            [(f"{EKS}category", "In", ["c", "g"]), (f"{EKS}cpu", "Gt", ["2"])],
            "eks.amazonaws.com",
            ["g4dn.xlarge"],
            id="EKS Auto Mode has the labels of types in a domain of its own",
        ),
    ],
)
def test_types_by_labels_that_follow_from_the_name(
    requirements: list[tuple[str, str, list[str]]], group: str, names: list[str], tmp_path: Path
) -> None:
    reading = read(tmp_path, requirements, group)

    assert [one.name for _, one in reading.types] == names
    assert not any("each type is taken" in note for note in reading.notes)
    given = {key: values[0] for key, operator, values in requirements if key == OS}
    assert all(one.labels[key] == value for _, one in reading.types for key, value in given.items())


def test_a_column_counts_before_the_name(tmp_path: Path) -> None:
    table = "name,cpu,memory,price,kubernetes.io/arch\nm6g.large,2,8Gi,0.1,amd64\n"

    reading = read(tmp_path, [(ARCH, "In", ["amd64"])], table=table)

    assert [one.name for _, one in reading.types] == ["m6g.large"]


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        pytest.param("Gt", ["100"], id="a bound"),
        pytest.param("In", ["100", "200"], id="a list of values"),
        pytest.param("Exists", [], id="that it is there"),
    ],
)
def test_a_label_of_the_provider_that_the_table_does_not_have_is_named(
    operator: str, values: list[str], tmp_path: Path
) -> None:
    reading = read(tmp_path, [(f"{AWS}local-nvme", operator, values)])

    assert any(
        note.endswith(
            f"requirements[0]: the table of instance types has no {AWS}local-nvme; each type is taken to meet it"
        )
        for note in reading.notes
    )


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param("eks.amazonaws.com/v1", "NodeClass", id="EKS Auto Mode"),
        pytest.param("karpenter.azure.com/v1beta1", "AKSNodeClass", id="Azure"),
    ],
)
def test_a_class_of_nodes_stands_beside_the_pool_with_a_note(
    version: str, kind: str, tmp_path: Path
) -> None:
    pools, types = tmp_path / "pools.yaml", tmp_path / "types.csv"
    node_class = {"apiVersion": version, "kind": kind, "metadata": {"name": "default"}, "spec": {}}
    pools.write_text(yaml.safe_dump_all([make_karpenter(), node_class]))
    types.write_text(TABLE)

    reading = read_pools([pools], read_instance_table(types))

    assert [pool.name for pool in reading.pools] == ["kp"]
    assert any(f"{kind} default: not modelled" in note for note in reading.notes)
