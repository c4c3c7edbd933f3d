"""Plugins whose code is wrong: one line names the place, in a simulation and in a scheduler that runs on."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.config.load import parse_config
from bayplan.errors import BayplanError
from bayplan.framework.faults import FAULT, PluginFaultError
from bayplan.scheduler import Outcome
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_pod
from tests.rig.objects import stored
from tests.scheduler.faulty_run import run_on

HEAD = """
import numpy as np
from bayplan.api.pod import Pod
from bayplan.framework import *
from bayplan.framework import failure, unschedulable
from bayplan.framework.events import Hint, wait_for, ActionType, NODE
"""

POINTS = {
    "PreEnqueue": ("PreEnqueuePlugin", "pre_enqueue(self, pod)"),
    "PreFilter": ("PreFilterPlugin", "pre_filter(self, state, pod, table)"),
    "Filter of a node": ("FilterPlugin", "filter_node(self, state, pod, node)"),
    "Filter of rows": ("FilterPlugin", "filter_rows(self, state, pod, table, rows)"),
    "PreScore": ("PreScorePlugin", "pre_score(self, state, pod, table, rows)"),
    "Score of a node": ("ScorePlugin", "score_node(self, state, pod, node)"),
    "Score of rows": ("ScorePlugin", "score_rows(self, state, pod, table, rows)"),
    "Normalize": ("ScorePlugin", "normalize(self, scores)"),
    "Reserve": ("ReservePlugin", "reserve(self, state, pod, node_name)"),
    "Permit": ("PermitPlugin", "permit(self, state, pod, node_name)"),
    "PreBindPreFlight": ("PreBindPlugin", "pre_bind_pre_flight(self, state, pod, node_name)"),
    "PreBind": ("PreBindPlugin", "pre_bind(self, state, pod, node_name)"),
    "Bind": ("BindPlugin", "bind(self, state, pod, node_name)"),
    "PostBind": ("PostBindPlugin", "post_bind(self, state, pod, node_name)"),
    "settled": ("FilterPlugin", "settled(self, spec)"),
    "spec_key": ("FilterPlugin", "spec_key(self, spec)"),
}
EXTRA = {
    "Normalize": "def score_node(self, state, pod, node): return 5",
    "Reserve": "def unreserve(self, state, pod, node_name): pass",
    "PreBindPreFlight": "def pre_bind(self, state, pod, node_name): return SUCCESS",
    "settled": "def filter_node(self, state, pod, node): return SUCCESS\n    pre_filter = lambda *a: SUCCESS",
    "spec_key": "scope = NODE_OBJECT\n    def filter_node(self, state, pod, node): return SUCCESS",
}
STATUS = "expected a Status; got "
SCORES = "expected an array of int64 with 2 scores, one per node; got "

WRONG = [
    ("PreEnqueue", "None", STATUS + "None"),
    ("PreEnqueue", "Status(Code.Unschedulable, 'no')", "reasons are a tuple of strings; got 'no'"),
    ("PreFilter", "None", "expected a Status or a PreFilterResult; got None"),
    ("PreFilter", "PreFilterResult('node-a')", "frozenset of node names; got 'node-a'"),
    ("PreFilter", "Status(Code.Wait)", "expected another code than Wait"),
    ("Filter of a node", "True", STATUS + "True"),
    ("Filter of a node", "unschedulable(5)", "reasons are a tuple of strings; got (5)"),
    ("Filter of a node", "Status(3)", "expected a Status with a Code; got 3"),
    ("Filter of a node", "SKIP", "expected another code than Skip"),
    ("Filter of rows", "None", "expected a Verdict about 2 nodes; got None"),
    ("Filter of rows", "Verdict(1)", "expected a Verdict about 2 nodes; got one about 1 node"),
    ("PreScore", "None", STATUS + "None"),
    ("PreScore", "unschedulable('late')", "expected another code than Unschedulable"),
    ("Score of a node", "None", "expected an int as score; got None"),
    ("Score of a node", "0.5", "expected an int as score; got 0.5"),
    ("Score of a node", "101", "invalid score 101"),
    ("Score of rows", "[1, 2]", SCORES + "a list"),
    ("Score of rows", "np.ones(2)", SCORES + "an array of float64 with shape (2,)"),
    ("Score of rows", "np.ones(3, dtype=np.int64)", SCORES + "an array of int64 with shape (3,)"),
    ("Normalize", "None", SCORES + "None"),
    ("Normalize", "scores - 7", "invalid score -2"),
    ("Reserve", "None", STATUS + "None"),
    ("Reserve", "SKIP", "expected another code than Skip"),
    ("Permit", "SUCCESS", "expected a tuple of a Status and a number of seconds; got a Status"),
    ("Permit", "(SUCCESS, None)", "a number of seconds; got (a Status, None)"),
    ("PreBindPreFlight", "None", STATUS + "None"),
    ("PreBindPreFlight", "unschedulable('no')", 'returned "Unschedulable", which is unsupported'),
    ("PreBind", "None", STATUS + "None"),
    ("Bind", "None", STATUS + "None"),
    ("settled", "None", "expected Settled; got None"),
    ("spec_key", "[]", "expected something hashable; got a list"),
]
RAISING = [
    (point, "{}['zone']", "KeyError: 'zone'")
    for point in (*(p for p in POINTS if p != "settled"), "settled")
]
ASYNC = [
    (point, "SUCCESS", "got a coroutine (the method is async)")
    for point in ("PreFilter", "Filter of a node", "Reserve", "PostBind")
]


def plugin_file(folder: Path, point: str, answer: str, prefix: str = "") -> str:
    base, signature = POINTS[point]
    bases = f"PreFilterPlugin, {base}" if point == "settled" else base
    lines = [HEAD, f"class Zones({bases}):", '    name = "Zones"']
    lines += [f"    {EXTRA.get(point, '')}", f"    {prefix}def {signature}:"]
    lines += [f"        return {answer}  # here", ""]
    path = folder / "zones.py"
    path.write_text("\n".join(lines))
    return str(path)


def cluster_objects() -> list[Any]:
    return [make_node("a"), make_node("b"), make_pod("p", cpu="1"), make_pod("q", cpu="1")]


def config_with(point: str, instead_of: str) -> Any:
    """The default configuration with Zones in the place of another plugin."""
    wanted = {"enabled": [{"name": "Zones"}], "disabled": [{"name": instead_of}]}
    tree = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return parse_config({**tree, "profiles": [{"plugins": {point: wanted}}]})


def config_for(point: str) -> Any:
    """Bind plugins of users come after the default one, which is left out here."""
    return config_with("bind", "DefaultBinder") if point == "Bind" else default_config()


def expect_line(error: BaseException, path: str, point: str) -> str:
    """One line with the plugin, the method, the file and a line of the method; returns it."""
    text = str(error)
    assert "\n" not in text
    assert '"Zones"' in text
    method = POINTS[point][1].partition("(")[0]
    found = re.search(re.escape(path) + r":(\d+): " + method + ": ", text)
    assert found, text
    source = Path(path).read_text().splitlines()
    line = source[int(found[1]) - 1]
    assert "# here" in line or f"def {method}" in line
    return text


@pytest.mark.parametrize(
    ("point", "answer", "expected"),
    [
        *(pytest.param(*case, id=f"{case[0]} returns {case[1]}") for case in WRONG),
        *(pytest.param(*case, id=f"{case[0]} raises") for case in RAISING),
    ],
)
def test_a_fault_ends_a_simulation_with_one_line(
    tmp_path: Path, point: str, answer: str, expected: str
) -> None:
    path = plugin_file(tmp_path, point, answer)
    simulation = Simulation(cluster_objects(), config_for(point), plugins=[path])

    with pytest.raises(PluginFaultError) as raised:
        simulation.run()

    assert expected in expect_line(raised.value, path, point)
    assert simulation.clock.monotonic() == 0, "nothing was tried again"


@pytest.mark.parametrize(
    ("point", "answer", "expected"),
    [pytest.param(*case, id=f"{case[0]} is async") for case in ASYNC],
)
@pytest.mark.filterwarnings("error")
def test_an_async_method_where_none_may_be_is_a_fault(
    tmp_path: Path, point: str, answer: str, expected: str
) -> None:
    path = plugin_file(tmp_path, point, answer, "async ")

    with pytest.raises(PluginFaultError) as raised:
        Simulation(cluster_objects(), plugins=[path]).run()

    assert expected in expect_line(raised.value, path, point)


@pytest.mark.parametrize(
    ("point", "answer"),
    [
        pytest.param("PreBind", "{}['zone']", id="PreBind raises after a while"),
        pytest.param("PreBind", "None", id="PreBind returns None after a while"),
        pytest.param("Bind", "5", id="Bind returns a number after a while"),
    ],
)
def test_a_fault_of_async_code_ends_the_simulation(tmp_path: Path, point: str, answer: str) -> None:
    path = plugin_file(tmp_path, point, answer, "async ")

    with pytest.raises(PluginFaultError) as raised:
        Simulation(cluster_objects(), config_for(point), plugins=[path]).run()

    expect_line(raised.value, path, point)


HINTS = {
    "a hint that raises": ("{}['zone']", "KeyError: 'zone'"),
    "a hint that returns a bool": ("True", "expected a Hint; got True"),
}


@pytest.mark.parametrize(
    ("answer", "expected"), [pytest.param(*case, id=name) for name, case in HINTS.items()]
)
def test_a_hint_that_fails_ends_the_simulation(tmp_path: Path, answer: str, expected: str) -> None:
    path = tmp_path / "zones.py"
    path.write_text(
        HEAD
        + "class Zones(FilterPlugin):\n    name = 'Zones'\n"
        + "    def filter_node(self, state, pod, node): return unschedulable('no')\n"
        + "    def events_to_register(self): return [wait_for(NODE, ActionType.Add, hinted)]\n"
        + f"def hinted(pod, old, new): return {answer}\n"
    )
    simulation = Simulation(cluster_objects(), plugins=[str(path)])
    simulation.run()
    simulation.cluster.add(make_node("c"))

    with pytest.raises(PluginFaultError, match=re.escape(expected)) as raised:
        simulation.run()

    assert 'running a queueing hint of plugin "Zones": ' in str(raised.value)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        pytest.param("def less(self, a, b): return {}['x']", "KeyError: 'x'", id="less raises"),
        pytest.param("def less(self, a, b): return 1", "expected a bool; got 1", id="less: int"),
        pytest.param(
            "less = None\n    def sort_key(self, queued): return object()",
            "'<' not supported",
            id="keys that cannot be compared",
        ),
        pytest.param(
            "less = None\n    def sort_key(self, queued): return {}['x']",
            "KeyError: 'x'",
            id="sort_key raises",
        ),
    ],
)
def test_an_order_that_fails_ends_the_simulation(
    tmp_path: Path, method: str, expected: str
) -> None:
    path = tmp_path / "zones.py"
    path.write_text(f"{HEAD}class Zones(QueueSortPlugin):\n    name = 'Zones'\n    {method}\n")
    config = config_with("queueSort", "PrioritySort")

    with pytest.raises(PluginFaultError, match=re.escape(expected)) as raised:
        Simulation(cluster_objects(), config, plugins=[str(path)]).run()

    assert f'running QueueSort plugin "Zones": {path}:' in str(raised.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("1 / 0", ":7: ZeroDivisionError", id="it raises"),
        pytest.param("def def", ":7: SyntaxError", id="it is not Python"),
        pytest.param("import sys; sys.exit(3)", ":7: SystemExit: 3", id="it exits"),
        pytest.param("import no_such_module", ":7: ModuleNotFoundError", id="a missing module"),
        pytest.param(
            "class Zones(FilterPlugin):\n    name = 'Zones'\n"
            "    def __init__(self): self.x = {}['zone']\n"
            "    def filter_node(self, *given): return SUCCESS",
            ":9: __init__: KeyError: 'zone'",
            id="its constructor raises",
        ),
        pytest.param(
            "class Zones(FilterPlugin):\n    name = 'Zones'\n"
            "    from_args = classmethod(lambda cls, args, handle: None)\n"
            "    def filter_node(self, *given): return SUCCESS",
            "from_args: expected a Plugin; got None",
            id="from_args returns None",
        ),
        pytest.param(
            "class Zones(FilterPlugin):\n    name = 'Zones'\n"
            "    def events_to_register(self): return ['Node']\n"
            "    def filter_node(self, *given): return SUCCESS",
            ":9: events_to_register: expected a list of events made with `wait_for`; got 'Node'",
            id="its events are no events",
        ),
        pytest.param(
            "class Zones(FilterPlugin):\n    name = 'Zones'\n    scope = 'node'\n"
            "    def filter_node(self, *given): return SUCCESS",
            "Zones: scope: expected a Scope; got 'node'",
            id="its scope is a string",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, body: str, expected: str
) -> None:
    path = tmp_path / "zones.py"
    path.write_text(HEAD + body + "\n")

    with pytest.raises(BayplanError) as raised:
        Simulation(cluster_objects(), plugins=[str(path)])

    assert f"{path}" in str(raised.value)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    "point",
    [
        *("PreFilter", "Filter of a node", "PreScore", "Score of rows", "Reserve", "Permit"),
        *("PreBindPreFlight", "PreBind", "Bind"),
    ],
)
def test_a_scheduler_that_runs_on_fails_each_pod_once_and_logs_the_fault_once(
    tmp_path: Path, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = plugin_file(tmp_path, point, "{}['zone']")

    attempts, scheduler, cluster = run_on(config_for(point), path, cluster_objects())

    assert [(a.pod.name, a.outcome) for a in attempts] == [
        ("p", Outcome.ERROR),
        ("q", Outcome.ERROR),
    ]
    assert attempts[0].unschedulable_plugins == {FAULT}
    (condition,) = stored(cluster, Pod, "p").status.conditions or ()
    assert (condition.reason, condition.message) == ("SchedulerError", attempts[0].message)
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        attempts[0].message
    ]
    assert not any(record.exc_info for record in caplog.records), "no traceback"
    assert scheduler.cache.table.pod_count.tolist() == [0, 0]


def test_a_pod_that_a_fault_failed_is_tried_when_it_changes(tmp_path: Path) -> None:
    path = plugin_file(tmp_path, "Filter of a node", "SUCCESS if pod.labels else {}['zone']")
    _, scheduler, cluster = run_on(config_for("Filter of a node"), path, cluster_objects())
    pod = stored(cluster, Pod, "p")

    cluster.update(msgspec.structs.replace(pod, labels={"zone": "a"}))
    attempt = scheduler.schedule_one()

    assert attempt is not None
    assert attempt.outcome is Outcome.BOUND


def test_an_error_of_the_api_server_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "zones.py"
    path.write_text(
        HEAD
        + "from bayplan.errors import ConflictError\n"
        + "class Zones(PreBindPlugin):\n    name = 'Zones'\n    calls = []\n"
        + "    def pre_bind(self, state, pod, node_name):\n"
        + "        self.calls.append(pod)\n"
        + "        if len(self.calls) == 1: raise ConflictError('changed')\n"
        + "        return SUCCESS\n"
    )

    report = Simulation(cluster_objects(), plugins=[str(path)]).run()

    assert {result.attempt.outcome for result in report.pods} == {Outcome.BOUND}
