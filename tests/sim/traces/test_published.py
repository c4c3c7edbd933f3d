"""Published traces: tiny tables that follow the published schemas become the manifests that they describe."""

import gzip
import io
import json
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import InputError
from bayplan.sim.traces import (
    TRACE_FORMATS,
    Alibaba2018,
    Alibaba2020,
    Alibaba2025,
    Alibaba2026,
    AzurePacking,
    AzureVms,
    Google2019,
    PublishedTrace,
    TraceWindow,
    find_alibaba_2026,
    parse_shape,
)

CREATED_AT, DURATION = "bayplan.dev/created-at", "bayplan.dev/duration"
NAME = "bayplan.dev/trace-name"
GPU = "bayplan.dev/gpu-milli"


def split(trace: PublishedTrace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The nodes and the pods by name."""
    found: dict[str, dict[str, Any]] = {"Node": {}, "Pod": {}, "Timeline": {}}
    for item in trace.objects():
        found[item["kind"]][item.get("metadata", {}).get("name")] = item
    return found["Node"], found["Pod"]


def requests(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["spec"]["containers"][0]["resources"]["requests"]
    return found


def allocatable(node: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = node["status"]["allocatable"]
    return found


def notes(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"]["annotations"]
    return found


def selector(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """The expressions about labels of nodes."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [
        each for term in required.get("nodeSelectorTerms", []) for each in term["matchExpressions"]
    ]


def fill(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


ALIBABA_2018 = {
    "machine_meta.csv": "m_1,0,2,27,96,100,USING\nm_1,600,2,27,96,50,USING\nm_2,0,3,31,96,50,USING\n",
    "container_meta.csv": "c_1,m_1,0,app_9,started,400,400,3.13\nc_1,m_1,900,app_9,stopped,400,400,3.13\n"
    "c_2,m_2,60,app_9,started,800,800,101\n",
    "batch_task.csv": "M1,2,j_1,1,Terminated,100,160,50,0.5\n"
    "task_Nzg3==,1,j_2,1,Running,200,,100.0,\n",
    "batch_instance.csv": "ins_1,M1,j_1,1,Terminated,100,130,m_1,1,1,10,20,0.1,0.2\n",
}


def alibaba_2018(folder: Path, **more: Any) -> Alibaba2018:
    return Alibaba2018(folder=folder, memory_gib=512.0, **more)


class TestAlibaba2018:
    def test_machines_count_with_their_first_line(self, tmp_path: Path) -> None:
        nodes, _ = split(alibaba_2018(fill(tmp_path, ALIBABA_2018)))

        assert list(nodes) == ["m-1", "m-2"]
        assert allocatable(nodes["m-1"]) == {"cpu": "96000m", "memory": "524288Mi", "pods": "110"}
        assert nodes["m-2"]["metadata"]["labels"]["bayplan.dev/failure-domain-1"] == "3"

    def test_containers_begin_with_their_first_event_and_end_when_stopped(
        self, tmp_path: Path
    ) -> None:
        _, pods = split(alibaba_2018(fill(tmp_path, ALIBABA_2018)))

        first, second = pods["container-1"], pods["container-3"]
        assert requests(first) == {"cpu": "4000m", "memory": "16410Mi"}
        assert notes(first) == {NAME: "c_1", DURATION: "15m"}
        assert requests(second) == {"cpu": "8000m"}  # a memory of 101 is an invalid value
        assert notes(second) == {NAME: "c_2", CREATED_AT: "1m"}
        [spread] = first["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"] == {"matchLabels": first["metadata"]["labels"]}
        assert spread["whenUnsatisfiable"] == "ScheduleAnyway"

    def test_tasks_become_a_pod_for_each_instance(self, tmp_path: Path) -> None:
        _, pods = split(alibaba_2018(fill(tmp_path, ALIBABA_2018)))

        assert requests(pods["task-1-0"]) == {"cpu": "500m", "memory": "2621Mi"}
        assert notes(pods["task-1-1"]) == {NAME: "j_1/M1", CREATED_AT: "1m40s", DURATION: "1m"}
        assert DURATION not in notes(pods["task-2-0"])

    def test_instances_have_times_of_their_own(self, tmp_path: Path) -> None:
        _, pods = split(alibaba_2018(fill(tmp_path, ALIBABA_2018), instances=True))

        assert requests(pods["instance-1"]) == {"cpu": "500m", "memory": "2621Mi"}
        assert notes(pods["instance-1"])[DURATION] == "30s"

    def test_the_archives_are_read_as_they_are_downloaded(self, tmp_path: Path) -> None:
        for name, text in ALIBABA_2018.items():
            with tarfile.open(tmp_path / name.replace(".csv", ".tar.gz"), "w:gz") as archive:
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))

        nodes, pods = split(alibaba_2018(tmp_path))

        assert (len(nodes), len(pods)) == (2, 5)


PAI = {
    "pai_machine_spec.csv": "82e5,T4,96,512,2\naaaa,CPU,64,256,0\n",
    "pai_job_table.csv": "job1,id1,u,Terminated,1000.0,2000.0\njob2,id2,u,Running,1060.0,\n",
    "pai_task_table.csv": "job1,worker,2.0,Terminated,1100.0,1700.0,600.0,29.296875,50.0,T4\n"
    "job2,ps,1.0,Running,1070.0,,,,,CPU\n",
    "pai_group_tag_table.csv": "id1,u,T4,g,nmt\nid2,u,,g,\n",
    "pai_instance_table.csv": "job1,worker,i,w,id1,Terminated,1200.0,1230.0,82e5\n",
}


class TestAlibaba2020:
    def test_gpus_are_thousandths_and_machines_without_have_none(self, tmp_path: Path) -> None:
        nodes, _ = split(Alibaba2020(folder=fill(tmp_path, PAI)))

        assert allocatable(nodes["82e5"])[GPU] == "2000"
        assert GPU not in allocatable(nodes["aaaa"])
        assert nodes["82e5"]["metadata"]["labels"]["bayplan.dev/gpu-model"] == "T4"

    def test_pods_are_created_with_their_job_and_run_as_long_as_their_task(
        self, tmp_path: Path
    ) -> None:
        _, pods = split(Alibaba2020(folder=fill(tmp_path, PAI)))

        assert requests(pods["task-1-1"]) == {"cpu": "6000m", "memory": "30000Mi", GPU: "500"}
        assert notes(pods["task-1-1"]) == {NAME: "job1/worker", DURATION: "10m"}
        assert notes(pods["task-2-0"]) == {NAME: "job2/ps", CREATED_AT: "1m"}
        assert requests(pods["task-2-0"]) == {}

    def test_the_type_of_gpu_that_a_job_specified_is_required(self, tmp_path: Path) -> None:
        _, pods = split(Alibaba2020(folder=fill(tmp_path, PAI)))

        [expression] = selector(pods["task-1-0"])
        assert expression["values"] == ["T4"]

    def test_without_the_table_of_tags_no_type_is_required_and_a_note_says_so(
        self, tmp_path: Path
    ) -> None:
        fill(tmp_path, PAI)
        (tmp_path / "pai_group_tag_table.csv").unlink()
        trace = Alibaba2020(folder=tmp_path)

        _, pods = split(trace)

        assert selector(pods["task-1-0"]) == []
        assert trace.notes == [f"{tmp_path}: no pai_group_tag_table: no pod requires a type of GPU"]

    def test_the_type_of_gpu_that_a_task_was_given_may_be_required(self, tmp_path: Path) -> None:
        fill(tmp_path, PAI)
        (tmp_path / "pai_group_tag_table.csv").unlink()

        _, pods = split(Alibaba2020(folder=tmp_path, assigned_types=True))

        assert selector(pods["task-1-0"])[0]["values"] == ["T4"]
        assert selector(pods["task-2-0"]) == []

    def test_instances_have_times_of_their_own(self, tmp_path: Path) -> None:
        _, pods = split(Alibaba2020(folder=fill(tmp_path, PAI), instances=True))

        assert notes(pods["instance-1"]) == {NAME: "job1/worker", DURATION: "30s"}
        assert requests(pods["instance-1"])[GPU] == "500"

    def test_a_line_of_column_names_is_understood_in_any_order(self, tmp_path: Path) -> None:
        fill(tmp_path, PAI)
        machines = "cap_gpu,machine,gpu_type,cap_cpu,cap_mem\n8,bbbb,V100,96,512\n"
        (tmp_path / "pai_machine_spec.csv").unlink()
        (tmp_path / "pai_machine_spec.csv.gz").write_bytes(gzip.compress(machines.encode()))

        nodes, _ = split(Alibaba2020(folder=tmp_path))

        assert allocatable(nodes["bbbb"])[GPU] == "8000"


DLRM = """\
instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,\
memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time
instance_0,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,
instance_1,CN,app_0,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,100.0,110.0,170.0
"""
CN_NODE = "count=3,cpu=128,memory=1Ti,label:bayplan.dev/role=CN"
HN_NODE = f"cpu=24,memory=1Ti,{GPU}=2000,label:bayplan.dev/role=HN"


class TestAlibaba2025:
    def trace(self, folder: Path, *shapes: str, text: str = DLRM) -> Alibaba2025:
        (folder / "dlrm.csv.gz").write_bytes(gzip.compress(text.encode()))
        return Alibaba2025(
            file=folder / "dlrm.csv.gz", shapes=tuple(parse_shape(shape) for shape in shapes)
        )

    def test_instances_request_what_the_trace_says(self, tmp_path: Path) -> None:
        _, pods = split(self.trace(tmp_path, CN_NODE))

        assert requests(pods["instance-0"]) == {
            "cpu": "12000m",
            "memory": "122880Mi",
            "ephemeral-storage": "655360Mi",
            GPU: "1000",
            "bayplan.dev/rdma-percent": "25",
        }
        assert notes(pods["instance-1"]) == {
            NAME: "instance_1",
            CREATED_AT: "1m40s",
            DURATION: "1m",
        }
        assert selector(pods["instance-1"])[0]["values"] == ["CN"]

    def test_the_limit_per_node_is_a_spread_constraint(self, tmp_path: Path) -> None:
        _, pods = split(self.trace(tmp_path, CN_NODE))

        [spread] = pods["instance-0"]["spec"]["topologySpreadConstraints"]
        assert (spread["maxSkew"], spread["topologyKey"]) == (8, "kubernetes.io/hostname")
        assert spread["whenUnsatisfiable"] == "DoNotSchedule"
        assert "topologySpreadConstraints" not in pods["instance-1"]["spec"]

    def test_nodes_without_a_number_are_as_many_as_the_peak_needs(self, tmp_path: Path) -> None:
        more = "".join(
            f"instance_{i},HN,app_1,12,12,1,1,25,25,120.0,120.0,640.0,800.0,-1,{i}0,{i}0,{i}5\n"
            for i in range(2, 9)
        )
        nodes, _ = split(self.trace(tmp_path, CN_NODE, HN_NODE, text=DLRM + more))
        roles = [node["metadata"]["labels"]["bayplan.dev/role"] for node in nodes.values()]

        # One instance runs for ever, and one of the others at a time: 24 cores, and a fifth more.
        assert roles == ["CN"] * 3 + ["HN"] * 2


NODE_INFO = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,0\nH800,8,192,7\n"
JOB_INFO = """\
job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
239255,13,A10,20,1,1,0,2764799,HP
437260,57,H800,15,0.5,2,90,60,Spot
"""


class TestAlibaba2026:
    def test_a_file_of_nodes_alone_is_enough(self, tmp_path: Path) -> None:
        (tmp_path / "nodes.csv").write_text(NODE_INFO)
        nodes_file, jobs_file = find_alibaba_2026(tmp_path / "nodes.csv")
        trace = Alibaba2026(nodes_file=nodes_file, jobs_file=jobs_file)

        nodes, pods = split(trace)

        assert allocatable(nodes["node-7"]) == {"cpu": "192000m", GPU: "8000", "pods": "110"}
        assert pods == {}
        assert trace.notes == ["no job_info_df: nodes only"]

    def test_workers_of_spot_jobs_have_the_lower_priority(self, tmp_path: Path) -> None:
        fill(tmp_path, {"node_info_df.csv": NODE_INFO, "job_info_df.csv": JOB_INFO})
        nodes_file, jobs_file = find_alibaba_2026(tmp_path)

        _, pods = split(Alibaba2026(nodes_file=nodes_file, jobs_file=jobs_file))

        assert list(pods) == ["job-2-0", "job-3-0", "job-3-1"]
        assert [pod["spec"]["priority"] for pod in pods.values()] == [1, 0, 0]
        assert requests(pods["job-3-1"]) == {"cpu": "15000m", GPU: "500"}
        assert notes(pods["job-3-1"]) == {NAME: "437260", CREATED_AT: "1m30s", DURATION: "1m"}
        assert selector(pods["job-3-1"])[0]["values"] == ["H800"]


VM_CSV = "vmId,tenantId,vmTypeId,priority,starttime,endtime\n"
VMS = [
    ("0", "9", "1", "0", "-2.5", "0.5"),
    ("1", "9", "2", "1", "0.25", ""),
    ("2", "9", "3", "0", "1", "2"),
]
TYPES = [
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
        for row in VMS:
            database.execute(
                "INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", [each or None for each in row]
            )
        for row in TYPES:
            marks = ", ".join("?" * 8)
            database.execute(f"INSERT INTO vmType VALUES ({marks})", [each or None for each in row])
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


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def event(time: int, kind: Any, index: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "time": str(time),
        "type": kind,
        "collection_id": "77",
        "instance_index": str(index),
        **more,
    }


HALF = {"resource_request": {"cpus": 0.5, "memory": 0.25}}
GOOGLE = {
    "machine_events-000000000000.json": lines(
        {
            "time": "0",
            "machine_id": "5",
            "type": "1",
            "switch_id": "s+/=",
            "capacity": {"cpus": 1, "memory": 0.5},
        },
        {"time": "0", "machine_id": "6", "type": "ADD"},
        {"time": "9000000", "machine_id": "5", "type": "2"},
    ),
    "machine_events-000000000001.json": lines(
        {
            "time": "20000000",
            "machine_id": "5",
            "type": "1",
            "capacity": {"cpus": 1, "memory": 0.5},
        },
        {
            "time": "30000000",
            "machine_id": "5",
            "type": "3",
            "capacity": {"cpus": 0.5, "memory": 0.5},
        },
    ),
    "instance_events-000000000000.json": lines(
        event(70_000_000, "3"),
        event(60_000_000, 0, priority="200", scheduling_class="2", **HALF),
        event(100_000_000, "EVICT"),
        event(100_000_000, "SUBMIT"),
        event(100_000_000, "3", index=1),
        event(90_000_000, "0", index=1, alloc_collection_id="0", **HALF),
        event(100_000_000, "6", index=1),
        event(0, "0", index=2, alloc_collection_id="55", **HALF),
        event(2**63 - 1, "7"),
    ),
    "collection_events-000000000000.json": lines(
        {
            "time": "0",
            "type": "0",
            "collection_id": "77",
            "max_per_machine": "2",
            "max_per_switch": 0,
        }
    ),
}


def google(folder: Path, **more: Any) -> Google2019:
    return Google2019(folder=folder, cpus=64, memory_gib=256, **more)


class TestGoogle2019:
    def test_shares_of_the_largest_machine_become_amounts(self, tmp_path: Path) -> None:
        nodes, pods = split(google(fill(tmp_path, GOOGLE)))

        assert list(nodes) == ["machine-5"]  # the other one has no capacity
        assert allocatable(nodes["machine-5"]) == {
            "cpu": "64000m",
            "memory": "131072Mi",
            "pods": "110",
        }
        assert requests(pods["instance-77-0-0"]) == {"cpu": "32000m", "memory": "65536Mi"}
        assert pods["instance-77-0-0"]["spec"]["priority"] == 200
        labels = pods["instance-77-0-0"]["metadata"]["labels"]
        assert labels["bayplan.dev/scheduling-class"] == "2"

    def test_each_submission_is_a_pod_that_runs_from_scheduling_to_its_end(
        self, tmp_path: Path
    ) -> None:
        _, pods = split(google(fill(tmp_path, GOOGLE)))

        assert notes(pods["instance-77-0-0"]) == {CREATED_AT: "1m", DURATION: "30s"}
        assert notes(pods["instance-77-0-1"]) == {CREATED_AT: "1m40s"}  # its end is after the trace
        assert requests(pods["instance-77-0-1"]) == requests(pods["instance-77-0-0"])
        # Scheduled and finished in the same microsecond: a second at least.
        assert notes(pods["instance-77-1-0"]) == {CREATED_AT: "1m30s", DURATION: "1s"}

    def test_tasks_within_allocs_are_left_out(self, tmp_path: Path) -> None:
        _, pods = split(google(fill(tmp_path, GOOGLE)))

        assert sorted(pods) == ["instance-77-0-0", "instance-77-0-1", "instance-77-1-0"]

    def test_the_limit_per_machine_is_a_spread_constraint(self, tmp_path: Path) -> None:
        _, pods = split(google(fill(tmp_path, GOOGLE)))

        [spread] = pods["instance-77-0-0"]["spec"]["topologySpreadConstraints"]
        assert (spread["maxSkew"], spread["topologyKey"]) == (2, "kubernetes.io/hostname")
        assert spread["labelSelector"] == {"matchLabels": {"bayplan.dev/collection": "77"}}

    def test_machines_come_go_and_change_if_asked_for(self, tmp_path: Path) -> None:
        objects = list(google(fill(tmp_path, GOOGLE), machine_events=True).objects())
        [timeline] = [item for item in objects if item["kind"] == "Timeline"]

        assert [sorted(each) for each in timeline["events"]] == [
            ["at", "remove"],
            ["add", "at"],
            ["at", "change"],
        ]
        assert [each["at"] for each in timeline["events"]] == ["9s", "20s", "30s"]
        assert timeline["events"][2]["change"][0]["status"]["allocatable"]["cpu"] == "32000m"

    def test_constraints_are_expressions_about_attributes(self, tmp_path: Path) -> None:
        fill(tmp_path, GOOGLE)
        constraints = [
            {"name": "os", "value": "a+b", "relation": "0"},
            {"name": "cores", "value": "4", "relation": "GREATER_THAN_EQUAL"},
            {"name": "gone", "relation": 7},
        ]
        fill(
            tmp_path,
            {
                "machine_attributes.json": lines(
                    {"time": "0", "machine_id": "5", "name": "os", "value": "a+b"}
                ),
                "instance_events-000000000000.json": lines(
                    event(5, 0, constraint=constraints, **HALF)
                ),
            },
        )
        nodes, pods = split(google(tmp_path))
        [pod] = pods.values()
        os, cores, gone = selector(pod)

        assert os["values"] == [
            nodes["machine-5"]["metadata"]["labels"]["attribute.bayplan.dev/os"]
        ]
        assert (cores["operator"], cores["values"]) == ("Gt", ["3"])
        assert gone == {"key": "attribute.bayplan.dev/gone", "operator": "DoesNotExist"}

    def test_without_attributes_constraints_are_left_out_with_a_note(self, tmp_path: Path) -> None:
        fill(tmp_path, GOOGLE)
        wants = event(5, 0, constraint=[{"name": "os", "value": "x", "relation": "0"}], **HALF)
        fill(tmp_path, {"instance_events-000000000000.json": lines(wants)})
        trace = google(tmp_path)

        _, pods = split(trace)

        assert [selector(pod) for pod in pods.values()] == [[]]
        assert trace.notes == [f"{tmp_path}: no machine_attributes: constraints are left out"]

    def test_constraints_that_labels_cannot_express_are_left_out_with_a_note(
        self, tmp_path: Path
    ) -> None:
        fill(tmp_path, GOOGLE)
        wants = [{"name": "speed", "value": "2.5", "relation": "GREATER_THAN"}]
        fill(
            tmp_path,
            {
                "machine_attributes.json": lines(
                    {"time": "0", "machine_id": "5", "name": "speed", "value": "3"}
                ),
                "instance_events-000000000000.json": lines(event(5, 0, constraint=wants, **HALF)),
            },
        )
        trace = google(tmp_path)

        _, pods = split(trace)

        assert [selector(pod) for pod in pods.values()] == [[]]
        assert trace.notes == [
            f"{tmp_path}: 1 pods have constraints that labels cannot express: left out"
        ]

    def test_flat_tables_as_csv_are_the_same(self, tmp_path: Path) -> None:
        fill(tmp_path, GOOGLE)
        expected = list(google(tmp_path).objects())
        (tmp_path / "instance_events-000000000000.json").unlink()
        (tmp_path / "instance_events").mkdir()
        names = (
            "time,type,collection_id,instance_index,priority,scheduling_class,alloc_collection_id,"
        )
        rows = (
            "70000000,3,77,0,,,,,\n60000000,0,77,0,200,2,,0.5,0.25\n100000000,4,77,0,,,,,\n100000000,0,77,0,,,,,\n"
            "100000000,3,77,1,,,,,\n90000000,0,77,1,,,0,0.5,0.25\n100000000,6,77,1,,,,,\n0,0,77,2,,,55,0.5,0.25\n"
        )
        table = f"{names}resource_request_cpus,resource_request_memory\n{rows}"
        (tmp_path / "instance_events" / "instance_events-0.csv.gz").write_bytes(
            gzip.compress(table.encode())
        )

        assert list(google(tmp_path).objects()) == expected


def test_a_window_begins_with_what_runs_then(tmp_path: Path) -> None:
    (tmp_path / "vmtable.csv").write_text(
        "old,s,d,0,100,1,1,1,Unknown,1,1\nrunning,s,d,0,1000,1,1,1,Unknown,1,1\n"
        "new,s,d,700,800,1,1,1,Unknown,1,1\nlate,s,d,900,1000,1,1,1,Unknown,1,1\n"
    )
    shapes = (parse_shape("cpu=1,memory=8Gi"),)
    window = TraceWindow(600, 900)

    nodes, pods = split(AzureVms(file=tmp_path / "vmtable.csv", shapes=shapes, window=window))

    assert [notes(pod) for pod in pods.values()] == [
        {NAME: "running", DURATION: "6m40s"},
        {NAME: "new", CREATED_AT: "1m40s", DURATION: "1m40s"},
    ]
    assert len(nodes) == 3


WRONG = [
    pytest.param(
        alibaba_2018,
        {"machine_meta.csv": "m_1,0,2,27\n"},
        "machine_meta.csv: line 1: expected 7 cells (machine_id, time_stamp, failure_domain_1, failure_domain_2, "
        "cpu_num, mem_size, status), or their names; got 4 cells",
        id="too few columns",
    ),
    pytest.param(
        alibaba_2018,
        ALIBABA_2018 | {"batch_task.csv": "M1,2,j_1,1,Terminated,100,160,many,0.5\n"},
        'batch_task.csv: line 1: plan_cpu: expected a number; got "many"',
        id="a cell that is no number",
    ),
    pytest.param(
        alibaba_2018,
        ALIBABA_2018 | {"batch_task.csv": "M1,2,j_1,1,Terminated,100,160,-5,0.5\n"},
        'batch_task.csv: line 1: plan_cpu: expected a number that is not negative; got "-5"',
        id="a negative amount",
    ),
    pytest.param(
        alibaba_2018,
        ALIBABA_2018 | {"batch_task.csv": "M1,1.5,j_1,1,Terminated,100,160,5,0.5\n"},
        'batch_task.csv: line 1: instance_num: expected a whole number; got "1.5"',
        id="half an instance",
    ),
    pytest.param(
        google,
        GOOGLE | {"instance_events-000000000000.json": lines(event(1, "LEAVE"))},
        "instance_events-000000000000.json: line 1: type: expected one of 0 (SUBMIT), 1 (QUEUE),",
        id="an event of an unknown type",
    ),
    pytest.param(
        google,
        GOOGLE | {"instance_events-000000000000.json": '{"time": 1}\n{"time"\n'},
        "instance_events-000000000000.json: line 1: collection_id: expected a whole number; got",
        id="an event without its collection",
    ),
    pytest.param(
        google,
        GOOGLE | {"instance_events-000000000000.json": "[]\n"},
        "instance_events-000000000000.json: line 1: expected a JSON object; got",
        id="a line that is no object",
    ),
    pytest.param(
        google,
        GOOGLE | {"instance_events-000000000000.json": lines(event(1, 0, constraint="x"))},
        'instance_events-000000000000.json: line 1: constraint: expected a list in JSON; got "x"',
        id="constraints that are no list",
    ),
]


@pytest.mark.parametrize(("make", "files", "error"), WRONG)
def test_wrong_tables_are_named_with_file_line_and_column(
    make: Any, files: dict[str, str], error: str, tmp_path: Path
) -> None:
    trace = make(fill(tmp_path, files))

    with pytest.raises(InputError) as caught:
        list(trace.objects())

    assert str(caught.value).startswith(f"{tmp_path}/{error}")


def test_a_missing_table_is_named_with_the_files_that_would_do(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(alibaba_2018(tmp_path).objects())

    names = "machine_meta.csv or machine_meta.csv.gz or machine_meta.tar.gz"
    assert str(caught.value) == f"{tmp_path}: expected a folder with {names}; got none of them"


def test_every_listed_trace_names_its_schema_and_its_files() -> None:
    for each in TRACE_FORMATS:
        assert each.schema.count("/") >= 1
        assert all(file.columns and file.about for file in each.files)
