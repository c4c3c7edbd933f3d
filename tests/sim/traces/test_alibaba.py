"""Traces of Alibaba (2018, 2020, 2025, 2026): columns, units and windows of their tables."""

import gzip
import io
import tarfile
from pathlib import Path

from bayplan.sim.traces import Alibaba2020, Alibaba2025, TraceWindow, find_alibaba_2026, parse_shape
from tests.sim.traces.published import (
    ALIBABA_2018,
    CREATED_AT,
    DURATION,
    NAME,
    alibaba_2018,
    allocatable,
    fill,
    notes,
    requests,
    selector,
    split,
)

GPU = "bayplan.dev/gpu-milli"


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
        trace = find_alibaba_2026(tmp_path / "nodes.csv", TraceWindow())

        nodes, pods = split(trace)

        assert allocatable(nodes["node-7"]) == {"cpu": "192000m", GPU: "8000", "pods": "110"}
        assert pods == {}
        assert trace.notes == ["no job_info_df: nodes only"]

    def test_workers_of_spot_jobs_have_the_lower_priority(self, tmp_path: Path) -> None:
        fill(tmp_path, {"node_info_df.csv": NODE_INFO, "job_info_df.csv": JOB_INFO})

        _, pods = split(find_alibaba_2026(tmp_path, TraceWindow()))

        assert list(pods) == ["job-2-0", "job-3-0", "job-3-1"]
        assert [pod["spec"]["priority"] for pod in pods.values()] == [1, 0, 0]
        assert requests(pods["job-3-1"]) == {"cpu": "15000m", GPU: "500"}
        assert notes(pods["job-3-1"]) == {NAME: "437260", CREATED_AT: "1m30s", DURATION: "1m"}
        assert selector(pods["job-3-1"])[0]["values"] == ["H800"]
