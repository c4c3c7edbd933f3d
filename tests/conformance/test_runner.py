"""The runner of cases notices: any one wrong expectation makes exactly one decision disagree, and it is named."""

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rig.conformance.cases import compare, run_case
from tests.rig.conformance.cli import main, read_cases

OWN = Path(__file__).parent / "cases" / "own.jsonl"
CASES = {case["id"].partition(":")[0]: case for case in reversed(list(read_cases(OWN)))}
Record = dict[str, Any]


def write(folder: Path, *cases: dict[str, Any]) -> str:
    file = folder / "cases.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return str(file)


def set_score(record: Record) -> None:
    record["scores"]["TaintToleration"]["one"] += 1


def set_total(record: Record) -> None:
    record["totals"]["one"] += 1


def drop_node(record: Record) -> None:
    del record["filter"]["one"]


def set_reason(record: Record) -> None:
    record["filter"]["hard"]["reasons"] = ["node(s) had taints"]


def set_code(record: Record) -> None:
    record["filter"]["hard"]["code"] = "Unschedulable"


def set_host(record: Record) -> None:
    record["host"] = "one"


def set_narrowing(record: Record) -> None:
    record["preFilter"]["nodeNames"] = ["clean"]


def set_fit_error(record: Record) -> None:
    record["fitError"] = "0/2 nodes are available: 1 Insufficient cpu."


def set_message(record: Record) -> None:
    record["message"] += "!"


def set_victim(record: Record) -> None:
    record["postFilter"]["victims"] = ["default/v1"]


def set_candidate(record: Record) -> None:
    record["postFilter"]["candidates"]["n1"]["pdbViolations"] = 1


def set_nomination(record: Record) -> None:
    record["postFilter"]["nominatedNode"] = None


def set_rejectors(record: Record) -> None:
    record["unschedulablePlugins"] = []


def set_gate(record: Record) -> None:
    record["preEnqueue"]["reasons"] = []


def set_no_gate(record: Record) -> None:
    record["preEnqueue"] = None


def set_error(record: Record) -> None:
    record["error"] = "boom"


CHANGES = [
    pytest.param("taints", set_score, "scores.TaintToleration.one", id="a score"),
    pytest.param("taints", set_total, "totals.one", id="a total"),
    pytest.param("taints", drop_node, "filter.one", id="a node less"),
    pytest.param("taints", set_reason, "filter.hard.reasons", id="a reason"),
    pytest.param("taints", set_code, "filter.hard.code", id="a code"),
    pytest.param("taints", set_host, "host", id="the host"),
    pytest.param("taints", set_narrowing, "preFilter.nodeNames", id="the nodes narrowed to"),
    pytest.param("preemption", set_fit_error, "fitError", id="the fit error"),
    pytest.param("preemption", set_message, "message", id="the message"),
    pytest.param("preemption", set_victim, "postFilter.victims", id="a victim"),
    pytest.param(
        "preemption", set_candidate, "postFilter.candidates.n1.pdbViolations", id="a candidate"
    ),
    pytest.param("preemption", set_nomination, "postFilter.nominatedNode", id="the nomination"),
    pytest.param("preemption", set_rejectors, "unschedulablePlugins", id="the rejectors"),
    pytest.param("gates", set_gate, "preEnqueue.reasons", id="why a pod is held back"),
    pytest.param("gates", set_no_gate, "preEnqueue", id="that a pod is held back"),
    pytest.param("taints", set_error, "error", id="an error we do not have"),
]


@pytest.mark.parametrize(("family", "change", "path"), CHANGES)
def test_one_wrong_expectation_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    family: str,
    change: Callable[[Record], None],
    path: str,
) -> None:
    case = copy.deepcopy(CASES[family])
    record = case["expected"]["pods"][0]
    change(record)

    assert main([write(tmp_path, case, CASES["ports"])]) == 1

    *told, last = capsys.readouterr().out.splitlines()
    total = len(case["pods"]) + len(CASES["ports"]["pods"])
    assert last == f"agree {total - 1} of {total} decisions in 2 cases"
    assert [line.split(": ours ")[0] for line in told] == [f"{case['id']}: {record['pod']}: {path}"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda r: r["preFilter"].update(skipped=["X"]), id="plugins skipped in Filter"
        ),
        pytest.param(lambda r: r.update(skippedScore=["X"]), id="plugins skipped in Score"),
    ],
)
def test_which_plugins_had_nothing_to_say_is_not_compared(change: Callable[[Record], None]) -> None:
    """A skipped plugin adds nothing to the totals; the format leaves these fields out."""
    case = copy.deepcopy(CASES["taints"])
    change(case["expected"]["pods"][0])

    assert [found for _, found in run_case(case)] == [[], []]


def test_every_disagreement_of_a_pod_is_told(tmp_path: Path, capsys: Any) -> None:
    case = copy.deepcopy(CASES["taints"])
    set_score(case["expected"]["pods"][0])
    set_host(case["expected"]["pods"][1])
    set_total(case["expected"]["pods"][1])

    assert main([write(tmp_path, case)]) == 1

    *told, last = capsys.readouterr().out.splitlines()
    assert last == "agree 0 of 2 decisions in 1 cases"
    assert [line.split(": ")[2:4] for line in told] == [
        ["default/p0", "scores.TaintToleration.one"],
        ["default/p1", "host"],
        ["default/p1", "totals.one"],
    ]


def test_two_errors_agree_whatever_they_say() -> None:
    ours = {"pod": "default/p", "preEnqueue": None, "error": "one"}

    assert list(compare(ours, {**ours, "error": "another"})) == []


def test_an_error_of_a_score_plugin_is_an_error() -> None:
    case = copy.deepcopy(CASES["taints"]) | {"config": None}
    pod = case["pods"][0]
    pod["spec"]["schedulerName"] = "default-scheduler"
    expression = {"key": "disk", "operator": "Gt", "values": ["1Gi"]}
    term = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    pod["spec"]["affinity"] = {"nodeAffinity": preferred}
    name = f"default/{pod['metadata']['name']}"
    case["pods"], case["expected"]["pods"] = (
        [pod],
        [{"pod": name, "preEnqueue": None, "error": "?"}],
    )

    assert list(run_case(case)) == [(name, [])]


def test_folders_and_packed_files_are_read(tmp_path: Path, capsys: Any) -> None:
    packed = tmp_path / "cases.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(CASES["taints"]).encode() + b"\n\n"))
    (tmp_path / "notes.txt").write_text("not a case")

    assert main([str(tmp_path), str(OWN)]) == 0

    count = len(list(read_cases(OWN)))
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"in {count + 1} cases")


def test_a_missing_file_is_one_line_and_status_2(tmp_path: Path, capsys: Any) -> None:
    missing = str(tmp_path / "nowhere.jsonl")

    assert main([missing]) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"{missing}: expected a file or a folder; got none\n"


def test_a_file_that_is_no_json_is_one_line_and_status_2(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(CASES["taints"]) + "\n{oops\n")

    assert main([str(file)]) == 2

    told = capsys.readouterr()
    assert told.err.startswith(f"{file}: line 2: ")
    assert len(told.err.splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param([], id="no case"),
        pytest.param([{"id": "x", "input": {}}], id="a case of another kind"),
        pytest.param(
            [{"id": "x", "config": None, "objects": [], "pods": [], "expected": {"pods": []}}],
            id="a case without pods",
        ),
    ],
)
def test_nothing_compared_is_not_success(tmp_path: Path, capsys: Any, content: list[Any]) -> None:
    assert main([write(tmp_path, *content)]) == 1

    assert capsys.readouterr().out.splitlines()[-1].startswith("agree 0 of 0 decisions in ")


def test_no_file_at_all_is_not_success(capsys: Any) -> None:
    assert main([]) != 0
