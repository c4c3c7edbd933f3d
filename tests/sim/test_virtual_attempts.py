"""Attempts in virtual time: preemption, backoff, slow plugins, the end of a run."""

from pathlib import Path
from typing import Any

from bayplan.api.pod import Pod
from bayplan.config.load import load_config
from bayplan.scheduler import Outcome
from bayplan.sim import Simulation, TraceEntry, read_manifests
from tests.rig.objects import stored
from tests.rig.trees import node_of, node_tree, pod_of
from tests.sim.timed_objects import make, make_timeline, run, template, timed_pod, times, trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


# Preemption


def test_the_preemptor_gets_its_node_after_the_grace_period_of_the_victim() -> None:
    low = timed_pod("low", "4", nodeName="n", terminationGracePeriodSeconds=45)
    high = timed_pod("high", "4", priority=10, annotations={"bayplan.dev/created-at": "10s"})

    entries = trace(node_of("n"), node_of("m", "1"), low, high)

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
    low, high = timed_pod("low", "4", nodeName="n"), timed_pod("high", "4", priority=10)
    simulation = Simulation([node_of("n"), low, high])

    report = simulation.run(until_s=29)

    victim = stored(simulation.cluster, Pod, "low")
    condition = victim.status.condition("DisruptionTarget")
    assert victim.deletion_timestamp == "2000-01-01T00:00:30Z"
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
    assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
    (event,) = [e for e in simulation.cluster.events if e.reason == "Preempted"]
    assert event.related is not None
    assert event.note == f"Preempted by pod {event.related.uid} on node n"
    (pending,) = report.pending
    assert stored(simulation.cluster, Pod, "high").nominated_node_name == "n"
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

    entries = trace(node_of("n"), timed_pod("a"), plugins=[str(plugin)])

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

    report = run(node_of("n"), timed_pod("a"), plugins=[str(plugin)])

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
    late = timed_pod("late", annotations={"bayplan.dev/created-at": "1h"})

    report = run(node_of("n"), timed_pod("a"), late, plugins=[str(plugin)], until_s=120)

    assert report.time_s == 120
    assert [(r.pod.name, r.attempt.outcome, r.attempt.message) for r in report.pods] == [
        ("a", Outcome.WAITING, "waits on Permit: Patient; n is reserved")
    ]


def test_until_retries_pods_that_no_event_retries() -> None:
    # The hint of kube-scheduler for new pods does not read the namespace selector.
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {"matchLabels": {"team": "a"}},
        "labelSelector": {"matchLabels": {"app": "leader"}},
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects = [
        node_of("n", labels={"kubernetes.io/hostname": "n"}),
        make("Namespace", "shop", metadata={"labels": {"team": "a"}}),
        timed_pod("follower", affinity=affinity),
        pod_of("leader", "1", metadata={"namespace": "shop", "labels": {"app": "leader"}}),
    ]

    without, with_limit = run(*objects), run(*objects, until_s=600)

    assert [r.pod.name for r in without.pending] == ["follower"]
    assert without.time_s == 0
    assert [(r.pod.name, r.time_s, r.attempts) for r in with_limit.placed if r.time_s] == [
        ("follower", 330, 2)
    ]
    assert with_limit.time_s == 600


def test_until_retries_until_then_what_cannot_change(tmp_path: Path) -> None:
    plugin = tmp_path / "broken.py"
    plugin.write_text(Fails.TEXT)
    node = node_of("n")

    large = run(node, timed_pod("large", "64"), until_s=3600)
    broken = run(node, timed_pod("a"), plugins=[str(plugin)], until_s=3600)

    assert [r.attempts for r in large.pending] == [11]  # at 0, then every 5m30s
    assert [r.attempts for r in broken.pending] == [5 + (3600 - 19) // 11]


def test_until_lasts_until_then_when_nothing_is_left_to_do() -> None:
    report = run(node_of("n"), timed_pod("a"), until_s=3600)

    assert report.is_complete
    assert report.time_s == 3600


def test_pods_that_block_each_other_do_not_run_for_ever(tmp_path: Path) -> None:
    plugin = tmp_path / "denies.py"
    plugin.write_text(
        "from bayplan.framework import PermitPlugin, unschedulable\n"
        "class Denies(PermitPlugin):\n"
        "    name = 'Denies'\n"
        "    def permit(self, state, pod, node_name):\n"
        "        return unschedulable('no'), 0\n"
    )

    report = run(
        node_of("n"), timed_pod("a"), timed_pod("b"), timed_pod("c"), plugins=[str(plugin)]
    )

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
    return [*(node_of(f"n{i}", "16") for i in range(10)), *jobs, make_timeline(*events)]


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
