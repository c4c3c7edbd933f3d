"""Virtual time: order, duration and end of events."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError
from tests.rig.trees import node_of, node_tree
from tests.sim.timed_objects import make, make_timeline, run, template, timed_pod, times, trace


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


# Pods that are created and end


def test_a_pod_starts_at_its_time_and_ends_after_its_duration() -> None:
    pod = timed_pod(
        "a", annotations={"bayplan.dev/created-at": "30s", "bayplan.dev/duration": "5m"}
    )

    report = run(node_of("n"), pod)

    (result,) = report.placed
    assert (result.created_s, result.time_s, result.finished_s) == (30, 30, 330)
    assert report.time_s == 330
    assert report.is_complete
    assert report.nodes[0].pods_after == 0


def test_a_pod_that_ends_makes_room_for_the_next() -> None:
    first = timed_pod("first", "3", annotations={"bayplan.dev/duration": "10m"})

    report = run(node_of("n"), first, timed_pod("second", "3"))

    assert {r.pod.name: r.time_s for r in report.placed} == {"first": 0, "second": 600}


def test_elapsed_time_of_a_running_pod_counts() -> None:
    status = {"phase": "Running", "startTime": "2026-03-01T12:00:00Z"}
    annotations = {"bayplan.dev/duration": "10m"}
    old = make(
        "Pod", "old", metadata={"annotations": annotations}, spec={"nodeName": "n"}, status=status
    )
    newest = make("Pod", "new", metadata={"creationTimestamp": "2026-03-01T12:04:00Z"})

    entries = trace(node_of("n"), old, newest)

    assert times(entries, "finished", "default/old") == [360]


def test_a_terminating_pod_of_the_input_is_deleted_after_its_grace_period() -> None:
    leaving = timed_pod("leaving", "4", nodeName="n")
    leaving = leaving.replace(deletion_timestamp="2000-01-01T00:00:20Z")

    report = run(node_of("n"), leaving, timed_pod("next", "4"))

    assert [(r.pod.name, r.time_s) for r in report.placed] == [("next", 20)]


@pytest.mark.parametrize(
    ("mode", "made"),
    [pytest.param("NonIndexed", 5, id="plain"), pytest.param("Indexed", 5, id="indexed")],
)
def test_a_job_continues_until_its_completions(mode: str, made: int) -> None:
    spec = {"completions": 5, "parallelism": 2, "completionMode": mode}
    job = make("Job", "j", "batch/v1", spec={**spec, "template": template("1", "1m")})

    report = run(node_of("n"), job)

    assert sorted(r.time_s for r in report.placed) == [0, 0, 60, 60, 120]
    assert all(r.finished_s is not None for r in report.pods)
    assert len(report.pods) == made


def test_a_deployment_replaces_pods_that_end() -> None:
    tree = deployment_tree(1)
    tree["spec"]["template"] = template("1", "10m")

    report = run(node_of("n"), decode_object(tree), until_s=1500)

    assert [r.time_s for r in report.placed] == [0, 600, 1200]


# Timelines


def test_nodes_are_added_changed_and_removed() -> None:
    timeline = make_timeline(
        {"at": "1m", "add": [node_tree("late")]},
        {"at": "2m", "change": [{"kind": "Node", "metadata": {"name": "late"},
                                 "status": {"allocatable": {"cpu": "8"}}}]},
        {"at": "3m", "remove": ["node/late"]},
    )  # fmt: skip
    small, large = timed_pod("small", "3"), timed_pod("large", "5")

    report = run(node_of("n", "1"), small, large, timeline)

    assert {r.pod.name: (r.attempt.node_name, r.time_s) for r in report.placed} == {
        "small": ("late", 60),
        "large": ("late", 120),
    }
    late = report.nodes[1]
    assert (late.added_s, late.removed_s, late.pods_after) == (60, 180, 0)
    assert [r.deleted_s for r in report.pods] == [180, 180]


def test_the_pods_of_a_removed_node_are_replaced_elsewhere() -> None:
    timeline = make_timeline({"at": "1h", "remove": ["node/a"]})

    report = run(node_of("a"), node_of("b"), decode_object(deployment_tree(4)), timeline)

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

    report = run(node_of("n"), decode_object(deployment_tree(1)), timeline)

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

    report = run(node_of("n", cpu=cpu), decode_object(deployment_tree(2)), timeline)

    assert report.nodes[0].after["cpu"] == used
    assert sorted((r.deleted_s for r in report.placed), key=lambda s: s or 999) == deleted


def test_a_new_node_gets_its_daemons_and_a_removed_one_loses_them() -> None:
    daemons = make("DaemonSet", "logs", "apps/v1", spec={"template": template("1")})
    timeline = make_timeline(
        {"at": "1m", "add": [node_tree("b")]}, {"at": "2m", "remove": ["node/b"]}
    )

    report = run(node_of("a"), daemons, timeline)

    assert [(r.attempt.node_name, r.time_s, r.deleted_s) for r in report.placed] == [
        ("a", 0, None),
        ("b", 60, 120),
    ]
    assert report.is_complete


def test_a_stateful_set_waits_for_the_deletion_of_its_old_pod() -> None:
    spec = {"replicas": 1, "template": template("1")}
    timeline = make_timeline({"at": "1m", "remove": ["pod/db-0"]})

    report = run(node_of("n"), make("StatefulSet", "db", "apps/v1", spec=spec), timeline)

    assert [(r.pod.name, r.time_s) for r in report.placed] == [("db-0", 0), ("db-0", 90)]


def test_a_gate_is_lifted_and_a_pending_pod_removed() -> None:
    held = timed_pod("held", schedulingGates=[{"name": "quota"}])
    lifted = {"kind": "Pod", "metadata": {"name": "held"}, "spec": {"schedulingGates": None}}
    timeline = make_timeline({"at": "1m", "change": [lifted], "remove": ["pod/huge"]})

    report = run(node_of("n"), held, timed_pod("huge", "9"), timeline)

    assert [(r.pod.name, r.time_s) for r in report.pods] == [("held", 60)]
    assert report.is_complete


def test_a_removed_namespace_removes_its_objects() -> None:
    timeline = make_timeline({"at": "1m", "remove": ["namespace/default"]})

    report = run(node_of("n"), decode_object(deployment_tree(2)), timed_pod("huge", "9"), timeline)

    assert [r.deleted_s for r in report.pods] == [90, 90]


def test_removing_an_object_that_already_ended_is_no_error() -> None:
    pod = timed_pod("a", annotations={"bayplan.dev/duration": "1s"})
    timeline = make_timeline({"at": "1m", "remove": ["pod/a"]}, {"at": "2m", "remove": ["pod/a"]})

    assert run(node_of("n"), pod, timeline).is_complete


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
            [timed_pod("a", annotations={"bayplan.dev/duration": "long"})],
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
            [timed_pod("a", annotations={"bayplan.dev/created-at": "noon"})],
            "pod default/a: metadata.annotations[bayplan.dev/created-at]: "
            'expected a duration such as 90s, 5m or 1h30m; got "noon"',
            id="no time of creation",
        ),
        pytest.param(
            [
                timed_pod(
                    "a", annotations={"bayplan.dev/created-at": "5s"}, priorityClassName="gold"
                )
            ],
            "pod default/a: spec.priorityClassName: "
            'expected a PriorityClass of the input or a built-in one; got "gold"',
            id="a pod that is rejected when it is added",
        ),
    ],
)
def test_faults_have_a_place(objects: list[Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        run(node_of("n"), *objects, place_of=lambda obj: "all.yaml: document 2")

    assert str(caught.value) == f"all.yaml: document 2: {expected}"
