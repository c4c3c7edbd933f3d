"""Published traces: tiny tables that follow the published schemas become the manifests that they describe."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import InputError
from bayplan.sim.traces import AzureVms, TraceWindow, parse_shape
from bayplan.sim.traces.open_trace import TRACE_FORMATS
from tests.sim.traces.published import (
    ALIBABA_2018,
    CREATED_AT,
    DURATION,
    GOOGLE,
    NAME,
    alibaba_2018,
    event,
    fill,
    google,
    lines,
    notes,
    split,
)


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
