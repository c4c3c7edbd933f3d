"""End to end: `simulate` in a process of its own, on the objects of a workload."""

from pathlib import Path

import msgspec
import pytest

from bayplan.errors import BayplanError, InputError
from bayplan.sim.bench.cases import own_cases, read_cases
from bayplan.sim.bench.end_to_end import write_manifests
from bayplan.sim.bench.measurements import CommandRun, QuestionRun
from bayplan.sim.bench.op_executor import execute
from bayplan.sim.bench.workload import Request, make_workload

HEAD = """\
- name: mine
  workloadTemplate:
  - opcode: createNodes
    count: 2
"""
TAIL = """\
  - opcode: simulate
  workloads: [{name: small}]
"""


def workload_of(folder: Path, ops: str, head: str = HEAD):  # type: ignore[no-untyped-def]
    file = folder / "mine.yaml"
    file.write_text(head + ops + TAIL)
    (case,) = read_cases(file)
    return make_workload(case, Request("mine"))


@pytest.mark.parametrize("name", ["simulate", "deployments"])
def test_the_command_places_the_pods_of_a_bundled_workload(name: str) -> None:
    case = next(case for case in own_cases() if case.name == name)

    (run,) = execute(make_workload(case, Request(name, nodes=300, pods=200)))

    assert isinstance(run, CommandRun)
    assert (run.nodes, run.pods, run.placed) == (300, 200, 200)
    assert run.cost == run.cpu_s * 1e6 > 0
    assert run.seconds > 0


def test_the_manifests_are_those_of_all_ops(tmp_path: Path) -> None:
    ops = """\
  - opcode: createNamespaces
    prefix: team
    count: 1
  - {opcode: createPods, count: 3, namespace: team-0}
  - opcode: createAny
    namespace: team-0
    template: {apiVersion: v1, kind: Service, metadata: {name: web}}
"""

    nodes, pods = write_manifests(workload_of(tmp_path, ops), tmp_path / "out.json")

    items = msgspec.json.decode((tmp_path / "out.json").read_bytes())["items"]
    kinds = [item["kind"] for item in items]
    assert (nodes, pods) == (2, 3)
    assert kinds == ["Node"] * 2 + ["Namespace"] + ["Pod"] * 3 + ["Service"]
    assert {item["metadata"].get("namespace") for item in items[3:]} == {"team-0"}


def test_questions_are_asked_one_after_the_other_of_the_objects_before_them(tmp_path: Path) -> None:
    ops = """\
  - opcode: createAny
    template: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: c}]}}
  - {opcode: ask, question: [explain, pod/a]}
  - {opcode: ask, question: [what-if, delete, pod/a, -o, json]}
"""
    file = tmp_path / "mine.yaml"
    file.write_text(HEAD + ops + "  workloads: [{name: small}]\n")
    (case,) = read_cases(file)

    runs = execute(make_workload(case, Request("mine")))

    assert [run.name for run in runs] == [
        "mine: explain pod/a",
        "mine: what-if delete pod/a -o json",
    ]
    for run in runs:
        assert isinstance(run, QuestionRun)
        assert run.nodes == 2
        assert 0 <= run.answer_s < run.cpu_s


def test_a_question_without_an_answer_says_what_the_command_said(tmp_path: Path) -> None:
    with pytest.raises(BayplanError, match=r"mine: expected an answer to explain pod/b; got error"):
        execute(workload_of(tmp_path, "  - {opcode: ask, question: [explain, pod/b]}\n"))


def test_a_question_needs_a_command(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"question: expected a command, such as \[explain"):
        workload_of(tmp_path, "  - {opcode: ask}\n")


def test_an_op_that_creates_nothing_is_refused(tmp_path: Path) -> None:
    workload = workload_of(tmp_path, "  - {opcode: sleep, duration: 1s}\n")

    with pytest.raises(InputError, match=r"expected an op that creates objects; got sleep"):
        execute(workload)


def test_a_run_without_a_summary_says_what_the_command_said(tmp_path: Path) -> None:
    ops = """\
  - opcode: createAny
    template: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priorityClassName: none}}
"""

    with pytest.raises(BayplanError, match=r"mine: expected a summary from simulate; got"):
        execute(workload_of(tmp_path, ops))
