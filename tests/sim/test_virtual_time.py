"""Virtual time: order, duration and end of events."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.config import load_config
from bayplan.errors import InputError
from bayplan.scheduler import Outcome
from bayplan.sim import Simulation, SimulationReport, TraceEntry, read_manifests

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def node_tree(name: str, cpu: str = "4", **metadata: Any) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"allocatable": allocatable},
    }


def make_node(name: str, cpu: str = "4", **metadata: Any) -> Any:
    return decode_object(node_tree(name, cpu, **metadata))


def container(cpu: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}}


def make_pod(name: str, cpu: str = "1", *, annotations: Any = None, **spec: Any) -> Any:
    metadata = {"annotations": annotations or {}}
    return make("Pod", name, metadata=metadata, spec={"containers": [container(cpu)], **spec})


def template(cpu: str, duration: str | None = None, **spec: Any) -> dict[str, Any]:
    annotations = {"bayplan.dev/duration": duration} if duration else {}
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [container(cpu)], **spec},
    }


def deployment_tree(replicas: int, cpu: str = "1") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(cpu),
        },
    }


def make_timeline(*events: Any) -> Any:
    return decode_object(
        {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "events": list(events)}
    )


def run(*objects: Any, until_s: float | None = None, **options: Any) -> SimulationReport:
    return Simulation(objects, **options).run(until_s=until_s)


def trace(*objects: Any, until_s: float | None = None, **options: Any) -> list[tuple[Any, ...]]:
    entries: list[TraceEntry] = []
    Simulation(objects, trace=entries.append, **options).run(until_s=until_s)
    return [(e.time_s, e.what, e.subject, e.details) for e in entries]


def times(entries: list[tuple[Any, ...]], what: str, subject: str) -> list[float]:
    return [e[0] for e in entries if e[1] == what and e[2] == subject]


# Pods that are created and end


def test_a_pod_starts_at_its_time_and_ends_after_its_duration() -> None:
    pod = make_pod("a", annotations={"bayplan.dev/created-at": "30s", "bayplan.dev/duration": "5m"})

    report = run(make_node("n"), pod)

    (result,) = report.placed
    assert (result.created_s, result.time_s, result.finished_s) == (30, 30, 330)
    assert report.time_s == 330
    assert report.is_complete
    assert report.nodes[0].pods_after == 0


def test_a_pod_that_ends_makes_room_for_the_next() -> None:
    first = make_pod("first", "3", annotations={"bayplan.dev/duration": "10m"})

    report = run(make_node("n"), first, make_pod("second", "3"))

    assert {r.pod.name: r.time_s for r in report.placed} == {"first": 0, "second": 600}


def test_elapsed_time_of_a_running_pod_counts() -> None:
    status = {"phase": "Running", "startTime": "2026-03-01T12:00:00Z"}
    annotations = {"bayplan.dev/duration": "10m"}
    old = make(
        "Pod", "old", metadata={"annotations": annotations}, spec={"nodeName": "n"}, status=status
    )
    newest = make("Pod", "new", metadata={"creationTimestamp": "2026-03-01T12:04:00Z"})

    entries = trace(make_node("n"), old, newest)

    assert times(entries, "finished", "default/old") == [360]


def test_a_terminating_pod_of_the_input_is_deleted_after_its_grace_period() -> None:
    leaving = make_pod("leaving", "4", nodeName="n")
    leaving = leaving.replace(deletion_timestamp="2000-01-01T00:00:20Z")

    report = run(make_node("n"), leaving, make_pod("next", "4"))

    assert [(r.pod.name, r.time_s) for r in report.placed] == [("next", 20)]


@pytest.mark.parametrize(
    ("mode", "made"),
    [pytest.param("NonIndexed", 5, id="plain"), pytest.param("Indexed", 5, id="indexed")],
)
def test_a_job_continues_until_its_completions(mode: str, made: int) -> None:
    spec = {"completions": 5, "parallelism": 2, "completionMode": mode}
    job = make("Job", "j", "batch/v1", spec={**spec, "template": template("1", "1m")})

    report = run(make_node("n"), job)

    assert sorted(r.time_s for r in report.placed) == [0, 0, 60, 60, 120]
    assert all(r.finished_s is not None for r in report.pods)
    assert len(report.pods) == made


def test_a_deployment_replaces_pods_that_end() -> None:
    tree = deployment_tree(1)
    tree["spec"]["template"] = template("1", "10m")

    report = run(make_node("n"), decode_object(tree), until_s=1500)

    assert [r.time_s for r in report.placed] == [0, 600, 1200]


# Timelines


def test_nodes_are_added_changed_and_removed() -> None:
    timeline = make_timeline(
        {"at": "1m", "add": [node_tree("late")]},
        {"at": "2m", "change": [{"kind": "Node", "metadata": {"name": "late"},
                                 "status": {"allocatable": {"cpu": "8"}}}]},
        {"at": "3m", "remove": ["node/late"]},
    )  # fmt: skip
    small, large = make_pod("small", "3"), make_pod("large", "5")

    report = run(make_node("n", "1"), small, large, timeline)

    assert {r.pod.name: (r.attempt.node_name, r.time_s) for r in report.placed} == {
        "small": ("late", 60),
        "large": ("late", 120),
    }
    late = report.nodes[1]
    assert (late.added_s, late.removed_s, late.pods_after) == (60, 180, 0)
    assert [r.deleted_s for r in report.pods] == [180, 180]


def test_the_pods_of_a_removed_node_are_replaced_elsewhere() -> None:
    timeline = make_timeline({"at": "1h", "remove": ["node/a"]})

    report = run(make_node("a"), make_node("b"), decode_object(deployment_tree(4)), timeline)

    replaced = [r for r in report.placed if r.time_s == 3600]
    assert len(replaced) == 2
    assert {r.attempt.node_name for r in replaced} == {"b"}
    assert report.nodes[1].pods_after == 4


def test_a_deployment_is_scaled_up_and_down_and_removed() -> None:
    ref = {"kind": "Deployment", "metadata": {"name": "web"}}
    timeline = make_timeline(
        {"at": "1m", "change": [{**ref, "spec": {"replicas": 3}}]},
        {"at": "2m", "change": [{**ref, "spec": {"replicas": 1}}]},
        {"at": "3m", "remove": ["deployment/web"]},
    )

    report = run(make_node("n"), decode_object(deployment_tree(1)), timeline)

    assert sorted((r.time_s, r.deleted_s) for r in report.placed) == [
        (0, 210),
        (60, 150),
        (60, 150),
    ]


@pytest.mark.parametrize(
    ("cpu", "used", "deleted"),
    [
        pytest.param(
            "5", 4000, [90, 120, None, None], id="one pod at a time, as the old ones leave"
        ),
        pytest.param("4", 3000, [90, None, None], id="it stops where the next pod has no room"),
    ],
)
def test_another_template_is_rolled_out_step_by_step(
    cpu: str, used: int, deleted: list[float | None]
) -> None:
    changed = {
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": template("2")},
    }
    timeline = make_timeline({"at": "1m", "change": [changed]})

    report = run(make_node("n", cpu=cpu), decode_object(deployment_tree(2)), timeline)

    assert report.nodes[0].after["cpu"] == used
    assert sorted((r.deleted_s for r in report.placed), key=lambda s: s or 999) == deleted


def test_a_new_node_gets_its_daemons_and_a_removed_one_loses_them() -> None:
    daemons = make("DaemonSet", "logs", "apps/v1", spec={"template": template("1")})
    timeline = make_timeline(
        {"at": "1m", "add": [node_tree("b")]}, {"at": "2m", "remove": ["node/b"]}
    )

    report = run(make_node("a"), daemons, timeline)

    assert [(r.attempt.node_name, r.time_s, r.deleted_s) for r in report.placed] == [
        ("a", 0, None),
        ("b", 60, 120),
    ]
    assert report.is_complete


def test_a_stateful_set_waits_for_the_deletion_of_its_old_pod() -> None:
    spec = {"replicas": 1, "template": template("1")}
    timeline = make_timeline({"at": "1m", "remove": ["pod/db-0"]})

    report = run(make_node("n"), make("StatefulSet", "db", "apps/v1", spec=spec), timeline)

    assert [(r.pod.name, r.time_s) for r in report.placed] == [("db-0", 0), ("db-0", 90)]


def test_a_gate_is_lifted_and_a_pending_pod_removed() -> None:
    held = make_pod("held", schedulingGates=[{"name": "quota"}])
    lifted = {"kind": "Pod", "metadata": {"name": "held"}, "spec": {"schedulingGates": None}}
    timeline = make_timeline({"at": "1m", "change": [lifted], "remove": ["pod/huge"]})

    report = run(make_node("n"), held, make_pod("huge", "9"), timeline)

    assert [(r.pod.name, r.time_s) for r in report.pods] == [("held", 60)]
    assert report.is_complete


def test_a_removed_namespace_removes_its_objects() -> None:
    timeline = make_timeline({"at": "1m", "remove": ["namespace/default"]})

    report = run(make_node("n"), decode_object(deployment_tree(2)), make_pod("huge", "9"), timeline)

    assert [r.deleted_s for r in report.pods] == [90, 90]


def test_removing_an_object_that_already_ended_is_no_error() -> None:
    pod = make_pod("a", annotations={"bayplan.dev/duration": "1s"})
    timeline = make_timeline({"at": "1m", "remove": ["pod/a"]}, {"at": "2m", "remove": ["pod/a"]})

    assert run(make_node("n"), pod, timeline).is_complete


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [make_timeline({"at": "1m", "remove": ["node/b"]})],
            "timeline: events[0].remove[0]: expected an object that is there by then; got node/b",
            id="an object that never existed",
        ),
        pytest.param(
            [
                make(
                    "Timeline",
                    "",
                    "bayplan.dev/v1",
                    series=[{"target": "deployment/w", "replicas": [{"at": "1h", "replicas": 2}]}],
                )
            ],
            "timeline: series[0]: expected an object that is there by then; got deployment/default/w",
            id="a series of a workload that is not there",
        ),
        pytest.param(
            [make_timeline({"at": "1m", "add": [node_tree("n")]})],
            'timeline: events[0].add[0]: expected each name once; Node "n" exists already',
            id="an object that exists already",
        ),
        pytest.param(
            [
                make_timeline(
                    {"at": "1m", "change": [{"kind": "Node", "metadata": {"name": "n"}, "spec": 3}]}
                )
            ],
            "timeline: events[0].change[0]: node n: spec: expected object, got integer",
            id="a change that gives an invalid object",
        ),
        pytest.param(
            [make_pod("a", annotations={"bayplan.dev/duration": "long"})],
            "pod default/a: metadata.annotations[bayplan.dev/duration]: "
            'expected a duration such as 90s, 5m or 1h30m; got "long"',
            id="no duration",
        ),
        pytest.param(
            [make("Job", "j", "batch/v1", spec={"template": template("1", "0s")})],
            "job default/j: spec.template.metadata.annotations[bayplan.dev/duration]: "
            'expected a duration such as 90s, 5m or 1h30m; got "0s"',
            id="no duration at all in a template",
        ),
        pytest.param(
            [make_pod("a", annotations={"bayplan.dev/created-at": "noon"})],
            "pod default/a: metadata.annotations[bayplan.dev/created-at]: "
            'expected a duration such as 90s, 5m or 1h30m; got "noon"',
            id="no time of creation",
        ),
        pytest.param(
            [make_pod("a", annotations={"bayplan.dev/created-at": "5s"}, priorityClassName="gold")],
            "pod default/a: spec.priorityClassName: "
            'expected a PriorityClass of the input or a built-in one; got "gold"',
            id="a pod that is rejected when it is added",
        ),
    ],
)
def test_faults_have_a_place(objects: list[Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        run(make_node("n"), *objects, place_of=lambda obj: "all.yaml: document 2")

    assert str(caught.value) == f"all.yaml: document 2: {expected}"


# Preemption


def test_the_preemptor_gets_its_node_after_the_grace_period_of_the_victim() -> None:
    low = make_pod("low", "4", nodeName="n", terminationGracePeriodSeconds=45)
    high = make_pod("high", "4", priority=10, annotations={"bayplan.dev/created-at": "10s"})

    entries = trace(make_node("n"), make_node("m", "1"), low, high)

    assert [entry[:3] for entry in entries] == [
        (10, "created", "default/high"),
        (10, "popped", "default/high"),
        (10, "preempted", "default/low"),
        (10, "refused", "default/high"),
        (55, "deleted", "default/low"),
        (55, "popped", "default/high"),
        (55, "bound", "default/high"),
    ]
    assert entries[-1][3] == "to n"


def test_a_preempted_pod_has_the_condition_while_terminating() -> None:
    low, high = make_pod("low", "4", nodeName="n"), make_pod("high", "4", priority=10)
    simulation = Simulation([make_node("n"), low, high])

    report = simulation.run(until_s=29)

    stored = simulation.cluster.get("Pod", "default", "low")
    condition = stored.status.condition("DisruptionTarget")
    assert stored.deletion_timestamp == "2000-01-01T00:00:30Z"
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
    assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
    (event,) = [e for e in simulation.cluster.events if e.reason == "Preempted"]
    assert event.note == f"Preempted by pod {event.related.uid} on node n"
    (pending,) = report.pending
    assert simulation.cluster.get("Pod", "default", "high").nominated_node_name == "n"
    assert pending.attempt.outcome is Outcome.UNSCHEDULABLE


# Time


class Fails:
    """The source of a plugin that always fails."""

    TEXT = (
        "from bayplan.framework import FilterPlugin, failure\n"
        "class Broken(FilterPlugin):\n"
        "    name = 'Broken'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return failure('no')\n"
    )


def test_backoff_grows_after_errors_and_retries_alone_end_the_run(tmp_path: Path) -> None:
    plugin = tmp_path / "broken.py"
    plugin.write_text(Fails.TEXT)

    entries = trace(make_node("n"), make_pod("a"), plugins=[str(plugin)])

    # 1, 2, 4, 8 and 10 s, each to the end of the whole second in which it ends.
    popped = times(entries, "popped", "default/a")
    assert popped[:8] == [0, 2, 5, 10, 19, 30, 41, 52]
    assert 60 < popped[-1] < 90


def test_a_slow_pre_bind_is_waited_for(tmp_path: Path) -> None:
    plugin = tmp_path / "slow.py"
    plugin.write_text(
        "import asyncio\n"
        "from bayplan.framework import SUCCESS, PreBindPlugin\n"
        "class Slow(PreBindPlugin):\n"
        "    name = 'Slow'\n"
        "    async def pre_bind(self, state, pod, node_name):\n"
        "        await asyncio.sleep(7200)\n"
        "        return SUCCESS\n"
    )

    report = run(make_node("n"), make_pod("a"), plugins=[str(plugin)])

    assert [r.time_s for r in report.placed] == [7200]


def test_until_ends_the_run_and_reports_running_attempts(tmp_path: Path) -> None:
    plugin = tmp_path / "patient.py"
    plugin.write_text(
        "from bayplan.framework import PermitPlugin, wait\n"
        "class Patient(PermitPlugin):\n"
        "    name = 'Patient'\n"
        "    def permit(self, state, pod, node_name):\n"
        "        return wait('not yet'), 300\n"
    )
    late = make_pod("late", annotations={"bayplan.dev/created-at": "1h"})

    report = run(make_node("n"), make_pod("a"), late, plugins=[str(plugin)], until_s=120)

    assert report.time_s == 120
    assert [(r.pod.name, r.attempt.outcome, r.attempt.message) for r in report.pods] == [
        ("a", Outcome.WAITING, "waits on Permit: Patient; n is reserved")
    ]


def test_pods_that_block_each_other_do_not_run_for_ever(tmp_path: Path) -> None:
    plugin = tmp_path / "denies.py"
    plugin.write_text(
        "from bayplan.framework import PermitPlugin, unschedulable\n"
        "class Denies(PermitPlugin):\n"
        "    name = 'Denies'\n"
        "    def permit(self, state, pod, node_name):\n"
        "        return unschedulable('no'), 0\n"
    )

    report = run(make_node("n"), make_pod("a"), make_pod("b"), make_pod("c"), plugins=[str(plugin)])

    assert len(report.pending) == 3


def make_day() -> list[Any]:
    jobs = [
        make(
            "Job",
            f"job-{i}",
            "batch/v1",
            metadata={"annotations": {"bayplan.dev/created-at": f"{i}m"}},
            spec={
                "completions": 10,
                "parallelism": 3,
                "template": template("1", f"{200 + 37 * i % 600}s"),
            },
        )
        for i in range(300)
    ]
    events = [
        {"at": f"{i}h", "remove": [f"node/n{i}"], "add": [node_tree(f"m{i}", "16")]}
        for i in range(1, 10)
    ]
    events.append({"at": "10h", "remove": ["node/m1"]})
    return [*(make_node(f"n{i}", "16") for i in range(10)), *jobs, make_timeline(*events)]


def test_ten_hours_with_thousands_of_pods_are_deterministic() -> None:
    runs = []
    for _ in range(2):
        entries: list[TraceEntry] = []
        report = Simulation(make_day(), trace=entries.append).run()
        runs.append((report.to_dict(), entries))

    assert runs[0] == runs[1]
    assert len(report.placed) >= 3000
    assert report.time_s >= 10 * 3600


# The examples


def test_gangs_are_bound_together_or_not_at_all() -> None:
    manifests = read_manifests([EXAMPLES / "gang-labels" / "gangs.yaml"])
    entries: list[TraceEntry] = []

    report = Simulation(
        manifests.objects,
        load_config(EXAMPLES / "gang-labels" / "config.yaml"),
        trace=entries.append,
    ).run()

    bound: dict[tuple[str, float], int] = {}
    for entry in entries:
        if entry.what == "bound":
            moment = (entry.name.partition("-")[0], entry.time_s)
            bound[moment] = bound.get(moment, 0) + 1
    assert bound == {("red", 0): 6, ("blue", 240): 6}
    assert {r.pod.name.partition("-")[0] for r in report.pending} == {"huge"}


def test_the_day_of_the_example() -> None:
    manifests = read_manifests([EXAMPLES / "timeline" / "day.yaml"])

    report = Simulation(manifests.objects, place_of=manifests.place_of).run()

    assert report.is_complete
    assert report.time_s >= 20 * 3600
    assert report.preempted != []
