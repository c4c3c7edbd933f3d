"""`bayplan up --like`: nodes like a type of a table, or with amounts."""

from pathlib import Path

import pytest

from bayplan.cli.commands.up_manifests import make_nodes, read_shape
from bayplan.errors import InputError


def test_a_type_of_the_shipped_table() -> None:
    first, second = make_nodes(2, "2026-01-01T00:00:00Z", read_shape("g4dn.xlarge", None))

    capacity, allocatable = first["status"]["capacity"], first["status"]["allocatable"]
    assert (capacity["cpu"], capacity["memory"], capacity["nvidia.com/gpu"]) == ("4", "16Gi", "1")
    assert (allocatable["cpu"], allocatable["pods"]) == ("3920m", "29")
    labels = [node["metadata"]["labels"] for node in (first, second)]
    assert labels[0]["node.kubernetes.io/instance-type"] == "g4dn.xlarge"
    assert [each["topology.kubernetes.io/zone"] for each in labels] == ["us-east-1a", "us-east-1b"]


def test_a_type_of_a_table_of_ones_own(tmp_path: Path) -> None:
    table = tmp_path / "types.csv"
    table.write_text("name,cpu,memory,price\nbig,64,512Gi,1\n")

    shape = read_shape("big", table)

    assert (shape.capacity["cpu"], shape.capacity["memory"]) == ("64", "512Gi")
    assert shape.capacity["pods"] == "110"


def test_amounts() -> None:
    shape = read_shape("cpu=500m,memory=16Gi,nvidia.com/gpu=8", None)

    assert shape.allocatable == shape.capacity
    assert (shape.capacity["cpu"], shape.capacity["nvidia.com/gpu"]) == ("500m", "8")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("m5.tiny", 'got "m5.tiny"', id="no such type"),
        pytest.param("cpu=4", "expected an amount of memory", id="without memory"),
        pytest.param("cpu=x,memory=1Gi", "cpu: expected an amount such as 4", id="no amount"),
        pytest.param("gpu=1,cpu=1,memory=1Gi", "gpu: expected cpu, memory", id="no resource"),
        pytest.param("cpu=1,cpu=2,memory=1Gi", "cpu: expected each resource once", id="twice"),
    ],
)
def test_what_is_refused(text: str, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        read_shape(text, None)

    assert str(caught.value).startswith("--like: ")
    assert fault in str(caught.value)
