"""Workload files: valid content, and errors with their paths."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bayplan.errors import InputError
from bayplan.sim.bench.cases import find_cases, read_cases
from bayplan.sim.bench.op_executor import execute
from bayplan.sim.bench.workload import Request, make_workload

NODES = {"opcode": "createNodes", "count": 2}
PODS = {"opcode": "createPods", "count": 3, "collectMetrics": True}
SIZE = {"name": "small", "params": {}}

Write = Callable[[Any], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a workload file into the working directory and return its name."""
    monkeypatch.chdir(tmp_path)

    def write_file(content: Any) -> Path:
        path = Path("w.yaml")
        path.write_text(
            content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        )
        return path

    return write_file


def make_case(*ops: Any, **fields: Any) -> dict[str, Any]:
    return {
        "name": "a",
        "workloadTemplate": list(ops) or [NODES, PODS],
        "workloads": [SIZE],
        **fields,
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "w.yaml: expected a list of test cases; got nothing", id="nothing"),
        pytest.param("a: [", "w.yaml: line 2: expected YAML", id="no YAML"),
        pytest.param("- 7", "w.yaml: [0]: expected a mapping; got 7", id="a number"),
        pytest.param(
            [make_case(name="")], "w.yaml: [0].name: expected a name; got none", id="name"
        ),
        pytest.param(
            [make_case(), make_case()],
            'w.yaml: expected the name "a" once; got it 2 times',
            id="twice",
        ),
        pytest.param(
            [make_case(workloads=[SIZE, SIZE])],
            'w.yaml: [0]: expected the name "small" once; got it 2 times',
            id="two sizes of one name",
        ),
        pytest.param(
            [make_case(workloads=[])],
            "w.yaml: [0].workloads: expected at least one workload; got none",
            id="no size",
        ),
        pytest.param(
            [make_case(NODES)],
            "w.yaml: [0].workloadTemplate: expected an op with collectMetrics; got none",
            id="nothing is measured",
        ),
        pytest.param(
            [make_case(NODES, {"opcode": "createPod"})],
            "w.yaml: [0].workloadTemplate[1].opcode: expected createNodes, createNamespaces",
            id="an unknown op",
        ),
        pytest.param(
            [make_case(NODES, 7)],
            "w.yaml: [0].workloadTemplate[1]: expected createNodes",
            id="an op that is a number",
        ),
        pytest.param(
            [make_case({**NODES, "count": "many"}, PODS)],
            'w.yaml: [0].workloadTemplate[0].count: expected a whole number; got "many"',
            id="an invalid count",
        ),
        pytest.param(
            [make_case({**NODES, "count": -1}, PODS)],
            "w.yaml: [0].workloadTemplate[0].count: expected 0 or more; got -1",
            id="a negative count",
        ),
        pytest.param(
            [make_case({**NODES, "countParm": "$n"}, PODS)],
            "w.yaml: [0].workloadTemplate[0].countParm: expected countParam; got an unknown field",
            id="a field misspelt",
        ),
        pytest.param(
            [make_case({**NODES, "countParam": "n"}, PODS)],
            'w.yaml: [0].workloadTemplate[0].countParam: expected a name after a $; got "n"',
            id="a parameter without its sign",
        ),
        pytest.param(
            [make_case({**NODES, "nodeTemplatePath": "n.yaml"}, PODS)],
            "w.yaml: [0].workloadTemplate[0].nodeTemplatePath: expected a file with templates;"
            " got n.yaml: expected a readable file; got No such file or directory",
            id="a missing template",
        ),
        pytest.param(
            [make_case({**NODES, "tablePath": "rows.csv"}, PODS)],
            "w.yaml: [0].workloadTemplate[0].tablePath: expected a table;"
            " got rows.csv: expected a readable CSV file; got No such file or directory",
            id="a table that is not there",
        ),
        pytest.param(
            [make_case({**NODES, "nodeTemplate": {}, "nodeTemplatePath": "w.yaml"}, PODS)],
            "w.yaml: [0].workloadTemplate[0].nodeTemplate: expected a template or a path; got both",
            id="template and path",
        ),
        pytest.param(
            [make_case(NODES, {"opcode": "createAny"}, PODS)],
            "w.yaml: [0].workloadTemplate[1].template: expected a template; got none",
            id="any object without template",
        ),
        pytest.param(
            [make_case(NODES, {"opcode": "churn", "mode": "recreate"}, PODS)],
            "w.yaml: [0].workloadTemplate[1].number: expected 1 or more; got 0",
            id="churn without a number",
        ),
        pytest.param(
            [make_case(NODES, {"opcode": "churn", "mode": "often"}, PODS)],
            'w.yaml: [0].workloadTemplate[1].mode: expected create or recreate; got "often"',
            id="an unknown mode",
        ),
        pytest.param(
            [make_case(NODES, {**PODS, "namespace": "ns-{{.Index}}"})],
            'w.yaml: [0].workloadTemplate[1].namespace: expected a plain value; got "ns-{{...}}"',
            id="an expression outside templates and parameters",
        ),
        pytest.param(
            [make_case(schedulerConfig={"kind": "Wagon"})],
            "w.yaml: [0].schedulerConfig: kind: expected",
            id="an invalid configuration",
        ),
        pytest.param(
            [make_case(schedulerConfigPath="c.yaml")],
            "c.yaml: expected a readable file",
            id="config",
        ),
    ],
)
def test_errors_in_a_file_name_the_path(write: Write, content: Any, problem: str) -> None:
    file = write(content)

    with pytest.raises(InputError) as error:
        read_cases(file)

    assert problem in str(error.value)


def test_all_problems_are_reported_at_once(write: Write) -> None:
    file = write([make_case({**NODES, "count": "x"}, {"opcode": "y"}, PODS), make_case(name="")])

    with pytest.raises(InputError) as error:
        read_cases(file)

    assert len(str(error.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        pytest.param(
            make_case({**NODES, "count": 0, "countParam": "$nodes"}, PODS),
            "w.yaml: [0].workloadTemplate[0].countParam: expected a parameter $nodes that is a"
            " number; got nothing",
            id="a parameter that no size has",
        ),
        pytest.param(
            make_case(NODES, {**PODS, "podTemplate": {"kind": "Pod", "spec": {"containers": 7}}}),
            "w.yaml: [0].workloadTemplate[1].podTemplate: pod namespace-1/pod-1-0: spec.containers:"
            " expected list, got integer",
            id="a template without a kind",
        ),
        pytest.param(
            make_case(NODES, {**PODS, "podTemplate": 7}),
            "w.yaml: [0].workloadTemplate[1].podTemplate: expected an object",
            id="a template that is a number",
        ),
        pytest.param(
            make_case(NODES, {**PODS, "podTemplate": {"kind": "Pod", "metadata": {"name": "a"}}}),
            'w.yaml: [0].workloadTemplate[1]: expected names that fit; Pod "namespace-1/a" exists',
            id="one name for all",
        ),
        pytest.param(
            make_case(NODES, {"opcode": "updateAny", "template": {"kind": "Node"}}, PODS),
            'w.yaml: [0].workloadTemplate[1]: expected names that fit; Node "node-1-0" not found',
            id="an update of a missing object",
        ),
        pytest.param(
            make_case({"opcode": "stopCollectingMetrics"}),
            "w.yaml: [0].workloadTemplate[0]: expected startCollectingMetrics before it; got none",
            id="a stop without a start",
        ),
        pytest.param(
            make_case({"opcode": "startCollectingMetrics", "namespaces": ["b"]}, PODS),
            "w.yaml: [0].workloadTemplate[1]: expected one measurement at a time; got a second",
            id="two measurements at a time",
        ),
        pytest.param(
            make_case({"opcode": "deletePods", "namespace": "b", "collectMetrics": True}),
            "w.yaml: [0].workloadTemplate[0]: expected at least one event; got none",
            id="no event to measure",
        ),
        pytest.param(
            make_case(NODES, {"opcode": "sleep", "durationParam": "$for"}, PODS),
            "w.yaml: [0].workloadTemplate[1].durationParam: expected a duration",
            id="an invalid duration",
        ),
    ],
)
def test_runtime_errors_name_the_path(write: Write, case: dict[str, Any], problem: str) -> None:
    (found,) = read_cases(write([case]))

    with pytest.raises(InputError) as error:
        execute(make_workload(found, Request("a")))

    assert problem in str(error.value)


def test_parameters_are_computed_in_order(write: Write) -> None:
    params = (
        "{initNodes: 5, twice: {{MultiplyInt 2 .initNodes}}, text: 'n{{.twice}}', measurePods: 3}"
    )
    text = f"[{{name: a, workloadTemplate: [{PODS}], workloads: [{{name: s, params: {params}}}]}}]"
    (case,) = read_cases(write(text))

    own = make_workload(case, Request("a")).params
    other = make_workload(case, Request("a", nodes=7, pods=9)).params

    assert own == {"initNodes": 5, "twice": 10, "text": "n10", "measurePods": 3}
    assert other == {"initNodes": 7, "twice": 14, "text": "n14", "measurePods": 9}


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        pytest.param({}, "expected a parameter initNodes; got none", id="no such parameter"),
        pytest.param(
            {"initNodes": 1, "b": "{{.c}}", "c": 2},
            'w.yaml: a/s: params.b: ".c": expected a known value (initNodes); got .c',
            id="one that comes later",
        ),
    ],
)
def test_invalid_parameters_are_reported(
    write: Write, params: dict[str, Any], problem: str
) -> None:
    (case,) = read_cases(write([make_case(workloads=[{"name": "s", "params": params}])]))

    with pytest.raises(InputError) as error:
        make_workload(case, Request("a", nodes=3))

    assert problem in str(error.value)


def test_cases_are_found_by_name_and_size(write: Write) -> None:
    sizes = [{"name": "small"}, {"name": "large"}]
    cases = read_cases(write([make_case(workloads=sizes), make_case(name="b")]))

    found = [(case.name, size.name) for case, size in find_cases(cases, ["a", "b/small"])]

    assert found == [("a", "small"), ("a", "large"), ("b", "small")]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("c", '--workload: expected one of a; got "c"', id="case"),
        pytest.param("a/huge", '--workload: expected one of a/small; got "a/huge"', id="size"),
    ],
)
def test_an_unknown_name_is_rejected(write: Write, name: str, problem: str) -> None:
    cases = read_cases(write([make_case()]))

    with pytest.raises(InputError) as error:
        list(find_cases(cases, [name]))

    assert str(error.value) == problem


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.sampled_from(["name", "workloadTemplate", "workloads", "labels"]), VALUES, st.booleans())
def test_no_file_gives_a_traceback(field: str, value: Any, in_op: bool) -> None:
    case = make_case()
    if in_op:
        case["workloadTemplate"] = [NODES | {"nodeTemplate": value, "name": value}, PODS]
    else:
        case[field] = value

    with TemporaryDirectory() as folder:
        file = Path(folder) / "w.yaml"
        file.write_text(yaml.safe_dump([case]))
        problem = problem_with(file)

        assert problem is None or problem.startswith(f"{file}: ")


def problem_with(file: Path) -> str | None:
    """The error from reading and running a file; None when it runs."""
    try:
        for case in read_cases(file):
            execute(make_workload(case, Request(case.name)))
    except InputError as error:
        return str(error)
    return None
