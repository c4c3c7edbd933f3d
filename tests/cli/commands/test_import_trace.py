"""`bayplan research trace import`: tables become manifests that `bayplan simulate` reads."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
node-0,64000,262144,2,P100
node-1,32000,131072,0,
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
share,6000,12288,1,460,,LS,Running,90,3690,100
whole,1000,1024,2,1000,V100|P100,BE,Running,0,60,0
none,500,512,0,0,,BE,Pending,30,90,
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small trace in the form of openb, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("openb_node_list_gpu_node.csv").write_text(NODES)
    Path("openb_pod_list_default.csv").write_text(PODS)
    return tmp_path


def run(*args: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*args])
    assert result.exit_code == code, result.output
    return result


def imported(*args: str) -> dict[str, dict[str, Any]]:
    """The manifests by name."""
    text = run("trace", "import", *args).stdout
    return {item["metadata"]["name"]: item for item in json.loads(text)["items"]}


def requests(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["spec"]["containers"][0]["resources"]["requests"]
    return found


def test_openb_nodes_carry_their_gpus_in_thousandths() -> None:
    nodes = imported("openb", ".")

    assert nodes["node-0"]["status"]["allocatable"] == {
        "cpu": "64000m",
        "memory": "262144Mi",
        "pods": "110",
        "bayplan.dev/gpu-milli": "2000",
    }
    assert nodes["node-0"]["metadata"]["labels"]["bayplan.dev/gpu-model"] == "P100"
    assert "bayplan.dev/gpu-milli" not in nodes["node-1"]["status"]["allocatable"]


def test_openb_pods_ask_for_what_the_trace_says() -> None:
    pods = imported("openb", ".")

    assert requests(pods["share"])["bayplan.dev/gpu-milli"] == "460"
    assert requests(pods["whole"])["bayplan.dev/gpu-milli"] == "2000"
    assert requests(pods["none"]) == {"cpu": "500m", "memory": "512Mi"}
    affinity = json.dumps(pods["whole"]["spec"]["affinity"])
    assert '"values": ["V100", "P100"]' in affinity
    assert "affinity" not in pods["share"]["spec"]


def test_openb_pods_come_and_go_at_their_own_times() -> None:
    pods = imported("openb", ".")

    assert pods["share"]["metadata"]["annotations"] == {
        "bayplan.dev/created-at": "1m30s",
        "bayplan.dev/duration": "59m50s",
    }
    assert pods["whole"]["metadata"]["annotations"] == {"bayplan.dev/duration": "1m"}
    assert pods["none"]["metadata"]["annotations"]["bayplan.dev/duration"] == "1m"


def test_a_table_of_openb_may_have_no_more_than_requests() -> None:
    Path("multigpu50.csv").write_text(
        "\n".join(",".join(row.split(",")[:5]) for row in PODS.split())
    )

    pods = imported("openb", ".", "--pods", "multigpu50.csv")

    assert requests(pods["whole"])["bayplan.dev/gpu-milli"] == "2000"
    assert pods["whole"]["metadata"] == {"name": "whole"}, "from the start, for ever, any model"


@pytest.mark.parametrize("options", [("openb", "."), ("csv", "--nodes", "own.csv")])
def test_the_pods_of_a_node_are_an_option(options: tuple[str, ...]) -> None:
    Path("own.csv").write_text("name,cpu,pods\nnode-0,8,\nnode-1,8,30\n")

    nodes = imported(*options, "--pods-per-node", "250")

    limits = [nodes[f"node-{i}"]["status"]["allocatable"]["pods"] for i in range(2)]
    assert limits == ["250", "30" if options[0] == "csv" else "250"]
    assert nodes["node-0"]["status"]["capacity"]["pods"] == "250"


def test_a_number_of_pods_in_a_shape_wins_and_counts_for_the_number_of_nodes() -> None:
    Path("vmtable.csv").write_text(VMS)
    many = ("--node", "cpu=64,memory=512Gi,label:a=b", "--pods-per-node", "1")

    limited = imported("azure-vms", "vmtable.csv", *many)
    given = imported("azure-vms", "vmtable.csv", "--node", "cpu=64,pods=9", "--pods-per-node", "1")

    nodes = [item for item in limited.values() if item["kind"] == "Node"]
    assert [node["status"]["allocatable"]["pods"] for node in nodes] == ["1"] * 3
    assert given["node-0"]["status"]["allocatable"]["pods"] == "9"


def test_openb_demand_draws_pods_until_the_gpus_are_asked_for_so_often() -> None:
    drawn = [
        item for item in imported("openb", ".", "--demand", "400").values() if item["kind"] == "Pod"
    ]
    asked = [int(requests(pod).get("bayplan.dev/gpu-milli", 0)) for pod in drawn]

    assert sum(asked) >= 8000
    assert sum(asked[:-1]) < 8000
    assert all("annotations" not in pod["metadata"] for pod in drawn)


def test_openb_demand_draws_the_same_with_the_same_seed_only() -> None:
    def draw(seed: str) -> list[str]:
        return list(imported("openb", ".", "--demand", "900", "--seed", seed))

    assert draw("1") == draw("1")
    assert draw("1") != draw("2")


def test_what_is_imported_can_be_simulated(folder: Path) -> None:
    run("trace", "import", "openb", ".", "--to", "openb.json")

    report = json.loads(run("simulate", "-f", "openb.json", "-o", "json").stdout)

    assert report["summary"]["placed"] == 3
    assert report["summary"]["finished"] == 3
    assert report["summary"]["time"] == pytest.approx(3680, abs=5)


VMS = "a==,s,d,600,660,1,2,3,Unknown,2,4\nb==,s,d,0,60,1,2,3,Unknown,2,4\nc==,s,d,90,,1,2,3,Unknown,2,4\n"


def test_json_lines_are_sorted_by_time_with_nodes_first() -> None:
    Path("vmtable.csv").write_text(VMS)

    result = run("trace", "import", "azure-vms", "vmtable.csv", "--to", "vms.jsonl.gz")

    lines = gzip.decompress(Path("vms.jsonl.gz").read_bytes()).decode().splitlines()
    names = [json.loads(line)["metadata"]["name"] for line in lines]
    assert names == ["node-0", "vm-2", "vm-3", "vm-1"]
    assert result.stderr == "vms.jsonl.gz: 4 objects\n"


def test_notes_on_an_import_go_to_standard_error() -> None:
    Path("nodes.csv").write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,0\n")

    result = run("trace", "import", "alibaba-2026", "nodes.csv")

    assert result.stderr == "note: no job_info_df: nodes only\n"
    assert [item["kind"] for item in json.loads(result.stdout)["items"]] == ["Node"]


def test_a_published_trace_can_be_simulated_as_it_was_imported() -> None:
    Path("vmtable.csv").write_text(VMS)
    run(
        "trace",
        "import",
        "azure-vms",
        "vmtable.csv",
        "--node",
        "count=1,cpu=2,memory=8Gi",
        "--to",
        "vms.json",
    )

    report = json.loads(run("simulate", "-f", "vms.json", "-o", "json", code=1).stdout)

    assert report["summary"]["placed"] == 2  # one of them stays for ever


def test_the_traces_are_listed_with_their_files() -> None:
    listed = json.loads(run("trace", "list", "-o", "json").stdout)
    table = run("trace", "list").stdout

    names = run("trace", "list", "-o", "name").stdout.split()
    assert [item["name"] for item in listed["items"]] == names
    assert all(name in table for name in names)
    assert "[batch_instance]: instances of batch tasks" in table
    help_text = run("trace", "import", "--help").stdout
    assert [name for name in names if name not in help_text] == []


OWN_NODES = "host,cores,ram_gb,zone,comment\na,8,32,north,old\nb,4,16,south,\n"
OWN_PODS = """\
job,cores,ram_mb,cards,start,seconds,where,label:team,priority,copies
train,2,4096,1,60,600,north|south,ml,10,2
serve,1.5,512,,,,,web,,
"""
COLUMNS = [
    *("--column", "name=host", "--column", "cpu=cores", "--column", "memory=ram_gb:Gi"),
    *("--column", "label:topology.kubernetes.io/zone=zone"),
]


def own_pods(*more: str) -> list[str]:
    Path("pods.csv").write_text(OWN_PODS)
    columns = {
        "name": "job",
        "cpu": "cores",
        "memory": "ram_mb:M",
        "example.com/card": "cards",
        "created-at": "start:s",
        "duration": "seconds:s",
        "selector:topology.kubernetes.io/zone": "where",
        "count": "copies",
    }
    options = [part for item in columns.items() for part in ("--column", "=".join(item))]
    return ["csv", "--pods", "pods.csv", *options, *more]


def test_own_tables_of_nodes_are_read_by_their_columns() -> None:
    Path("nodes.csv.gz").write_bytes(gzip.compress(OWN_NODES.encode()))

    result = run("trace", "import", "csv", "--nodes", "nodes.csv.gz", *COLUMNS)

    a, b = json.loads(result.stdout)["items"]
    assert a["status"]["allocatable"] == {"pods": "110", "cpu": "8", "memory": "32Gi"}
    assert b["metadata"]["labels"] == {"topology.kubernetes.io/zone": "south"}
    assert result.stderr == "note: columns that are no field were left out: comment\n"


def test_own_tables_of_pods_are_read_by_their_columns() -> None:
    pods = imported(*own_pods())

    assert list(pods) == ["train-0", "train-1", "serve"]
    train, serve = pods["train-1"], pods["serve"]
    assert requests(train) == {"cpu": "2", "memory": "4096M", "example.com/card": "1"}
    assert train["metadata"]["annotations"] == {
        "bayplan.dev/created-at": "60s",
        "bayplan.dev/duration": "600s",
    }
    assert train["spec"]["priority"] == 10
    assert '"values": ["north", "south"]' in json.dumps(train["spec"]["affinity"])
    assert requests(serve) == {"cpu": "1.5", "memory": "512M"}
    assert serve["metadata"]["labels"] == {"team": "web"}
    assert "annotations" not in serve["metadata"]


WRONG = [
    pytest.param(
        ["openb", "nowhere"],
        "nowhere/openb_node_list_gpu_node.csv: expected a file of the openb trace; got nothing of that name",
        id="a folder that is not there",
    ),
    pytest.param(
        ["openb", ".", "--nodes", "openb_pod_list_default.csv"],
        "openb_pod_list_default.csv: line 1: expected a column sn; got name, cpu_milli, memory_mib, num_gpu, "
        "gpu_milli, gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time",
        id="another table",
    ),
    pytest.param(
        ["openb", ".", "--demand", "-3"],
        "--demand: expected a percentage above 0; got -3",
        id="a demand below zero",
    ),
    pytest.param(
        ["azure-vms", "good.csv", "--node", "cpu=many"],
        "--node: expected RESOURCE=AMOUNT, label:KEY=VALUE and count=NUMBER, separated by commas, such as "
        'count=20,cpu=64,memory=256Gi; got "cpu=many"',
        id="a node without an amount",
    ),
    pytest.param(
        ["azure-vms", "good.csv", "--from", "2h", "--until", "1h"],
        '--until: expected a time after --from; got "1h"',
        id="a window that ends before it begins",
    ),
    pytest.param(
        ["alibaba-2018", ".", "--memory-per-machine", "much"],
        '--memory-per-machine: expected a quantity such as 256Gi; got "much"',
        id="a memory that is no quantity",
    ),
    pytest.param(
        ["google-2019", ".", "--cpus-per-machine", "0"],
        "--cpus-per-machine: expected a number above 0; got 0",
        id="a machine without cores",
    ),
    pytest.param(
        ["google-2019", "."],
        ".: expected files such as machine_events-000000000000.json.gz, .json or .csv; got none",
        id="a folder without the trace",
    ),
    pytest.param(
        ["azure-packing", "good.csv"],
        "good.csv: table vmType: expected a table of an SQLite file; got file is not a database",
        id="no database",
    ),
    pytest.param(
        ["csv"],
        "trace import csv: expected --nodes, --pods or both; got neither",
        id="no table",
    ),
    pytest.param(
        ["csv", "--pods", "good.csv", "--pods-per-node", "5"],
        "--pods-per-node: expected a table of nodes in --nodes; got none",
        id="pods per node without nodes",
    ),
    pytest.param(
        ["csv", "--pods", "bad.csv", "--column", "cpu"],
        '--column: expected FIELD=COLUMN or FIELD=COLUMN:UNIT; got "cpu"',
        id="a column that is not said",
    ),
    pytest.param(
        ["csv", "--pods", "bad.csv", "--column", "colour=cpu"],
        "--column: expected one of count, cpu, created-at, duration, ephemeral-storage, memory, name, namespace, "
        "pods, priority, scheduler, a resource such as nvidia.com/gpu, label:KEY, annotation:KEY or selector:KEY; "
        'got "colour"',
        id="an unknown field",
    ),
    pytest.param(
        ["csv", "--pods", "bad.csv"],
        'bad.csv: line 3: cpu: expected a quantity such as 250m or 1.5Gi; got "much"',
        id="an amount that is not a quantity",
    ),
    pytest.param(
        ["csv", "--pods", "good.csv", "--column", "memory=ram"],
        "--column: expected a column of the files; got ram",
        id="a column that is nowhere",
    ),
    pytest.param(
        ["csv", "--pods", "short.csv"],
        "short.csv: line 2: expected 2 cells; got 1",
        id="a line that is cut off",
    ),
    pytest.param(
        ["csv", "--pods", "long.csv"],
        "long.csv: line 2: expected 2 cells; got 3",
        id="a line that is too long",
    ),
    pytest.param(
        ["csv", "--pods", "binary.csv"],
        "binary.csv: expected a CSV file; got",
        id="no text",
    ),
    pytest.param(
        ["csv", "--pods", "nameless.csv"],
        "nameless.csv: line 2: name: expected a name; got an empty cell",
        id="a pod without a name",
    ),
    pytest.param(
        ["csv", "--pods", "good.csv", "--to", "no/such/folder.json"],
        "--to: no/such/folder.json: expected a file to write to; got No such file or directory",
        id="a target that cannot be",
    ),
]


@pytest.mark.parametrize(("args", "error"), WRONG)
def test_wrong_input_is_named(args: list[str], error: str) -> None:
    Path("bad.csv").write_text("name,cpu\na,1\nb,much\n")
    Path("good.csv").write_text("name,cpu\na,1\n")
    Path("short.csv").write_text("name,cpu\na\n")
    Path("long.csv").write_text("name,cpu\na,1,2\n")
    Path("binary.csv").write_bytes(b"name,\xff\xfe\n")
    Path("nameless.csv").write_text("name,cpu\n,1\n")

    result = run("trace", "import", *args, code=2)

    assert result.stderr.startswith(f"error: {error}")
    assert result.stdout == ""


def test_a_wrong_table_leaves_the_file_that_was_there(folder: Path) -> None:
    Path("bad.csv").write_text("name,cpu\na,much\n")
    Path("kept.json").write_text("precious")

    run("trace", "import", "csv", "--pods", "bad.csv", "--to", "kept.json", code=2)

    assert Path("kept.json").read_text() == "precious"
