"""Traces of Azure (packing, virtual machines): tables and databases."""

import gzip
import sqlite3
from pathlib import Path
from typing import Any

from bayplan.sim.traces import AzurePacking, AzureVms, parse_shape
from tests.sim.traces.published import (
    CREATED_AT,
    DURATION,
    NAME,
    allocatable,
    fill,
    notes,
    requests,
    split,
)

VM_CSV = "vmId,tenantId,vmTypeId,priority,starttime,endtime\n"
VMS: list[tuple[str, ...]] = [
    ("0", "9", "1", "0", "-2.5", "0.5"),
    ("1", "9", "2", "1", "0.25", ""),
    ("2", "9", "3", "0", "1", "2"),
]
TYPES: list[tuple[str, ...]] = [
    ("0", "1", "16", "0.5", "0.25", "", "0.125", "0.01"),
    ("1", "2", "16", "0.0625", "0.1", "", "", ""),
    ("2", "3", "17", "1", "1", "", "", ""),
]


def azure_database(folder: Path) -> Path:
    file = folder / "zone.sqlite"
    with sqlite3.connect(file) as database:
        database.execute(
            "CREATE TABLE vm (vmId INT, tenantId INT, vmTypeId INT, priority INT, starttime REAL, endtime REAL)"
        )
        database.execute(
            "CREATE TABLE vmType (id INT, vmTypeId INT, machineId INT, core REAL, memory REAL, hdd REAL, ssd REAL,"
            " nic REAL)"
        )
        for table, rows in (("vm", VMS), ("vmType", TYPES)):
            for row in rows:
                marks = ", ".join("?" * len(row))
                cells = [each or None for each in row]
                database.execute(f"INSERT INTO {table} VALUES ({marks})", cells)
    database.close()
    return file


def azure_packing(place: Path, **more: Any) -> AzurePacking:
    return AzurePacking(place=place, cpus=64, memory_gib=512, **more)


class TestAzurePacking:
    def test_shares_of_a_machine_become_amounts(self, tmp_path: Path) -> None:
        nodes, pods = split(azure_packing(azure_database(tmp_path), node_count=2))

        assert requests(pods["vm-1"]) == {
            "cpu": "32000m",
            "memory": "131072Mi",
            "bayplan.dev/ssd-millionths": "125000",
            "bayplan.dev/nic-millionths": "10000",
        }
        assert len(nodes) == 2
        assert allocatable(nodes["node-0"])["bayplan.dev/nic-millionths"] == "1000000"

    def test_days_become_times_and_a_vm_from_before_runs_for_the_rest(self, tmp_path: Path) -> None:
        _, pods = split(azure_packing(azure_database(tmp_path)))

        assert notes(pods["vm-1"]) == {NAME: "0", DURATION: "12h"}
        assert notes(pods["vm-2"]) == {NAME: "1", CREATED_AT: "6h"}
        assert [pod["spec"]["priority"] for pod in pods.values()] == [1, 0]

    def test_what_the_machine_does_not_support_is_left_out_with_a_note(
        self, tmp_path: Path
    ) -> None:
        trace = azure_packing(azure_database(tmp_path))

        _, pods = split(trace)

        assert list(pods) == ["vm-1", "vm-2"]
        assert trace.notes == [
            "1 virtual machines left out: the type of machine does not support them"
        ]

    def test_another_machine_may_be_chosen(self, tmp_path: Path) -> None:
        nodes, pods = split(azure_packing(azure_database(tmp_path), machine="17"))

        assert list(pods) == ["vm-3"]
        assert len(nodes) == 2

    def test_tables_as_csv_are_the_same(self, tmp_path: Path) -> None:
        kinds = "id,vmTypeId,machineId,core,memory,hdd,ssd,nic\n"
        fill(
            tmp_path,
            {
                "vm.csv": "".join(f"{','.join(row)}\n" for row in VMS),
                "vmType.csv": kinds + "".join(f"{','.join(row)}\n" for row in TYPES),
            },
        )

        from_csv, from_database = azure_packing(tmp_path), azure_packing(azure_database(tmp_path))

        assert list(from_csv.objects()) == list(from_database.objects())


VMTABLE = """\
x/zOVZZW==,sub,dep,0,2591700,99.369869,3.424094,10.194309,Delay-insensitive,1,1.75
pQ+Q==,sub,dep,600,1200,1,2,3,Interactive,>24,>64
"""


class TestAzureVms:
    def test_vms_become_pods_with_buckets_as_in_the_notebook(self, tmp_path: Path) -> None:
        (tmp_path / "vmtable.csv.gz").write_bytes(gzip.compress(VMTABLE.encode()))
        shapes = (parse_shape("cpu=16,memory=64Gi"),)

        nodes, pods = split(AzureVms(file=tmp_path / "vmtable.csv.gz", shapes=shapes))

        assert requests(pods["vm-1"]) == {"cpu": "1000m", "memory": "1792Mi"}
        assert requests(pods["vm-2"]) == {"cpu": "30000m", "memory": "71680Mi"}
        assert notes(pods["vm-2"]) == {NAME: "pQ+Q==", CREATED_AT: "10m", DURATION: "10m"}
        assert pods["vm-1"]["metadata"]["labels"] == {
            "bayplan.dev/vm-category": "Delay-insensitive"
        }
        assert len(nodes) == 3
