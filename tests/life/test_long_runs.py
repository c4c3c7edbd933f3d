"""A scheduler after a long history decides like a new one.

One scheduler with the default plugins processes a history: pods, nodes, namespaces, services and
budgets are added, changed and deleted, binds are delayed, pods preempt each other. It keeps its
caches from pod to pod. Before each of its attempts another scheduler is built on the same objects;
both must agree on the feasible nodes and the total of each, the chosen node, or else the message,
the victims and the nomination. No two pods get the same host port of a node: where one of them goes,
kube-scheduler counts the port as free until it starts anew.

The scheduler under test does not explain, so that its fast path is compared. `make life` generates
more histories.
"""

import os
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.framework import CycleState
from bayplan.framework.interface import Preemption
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.runtime.executor import Finished, InlineExecutor, Work
from bayplan.scheduler import Attempt, FirstByName, Scheduler, build_scheduler
from bayplan.testing.builders import make_object, make_pod
from tests.rig.conformance.cases import CaseCluster, NoBinding, case_config
from tests.rig.conformance.witness import Totals, Witness
from tests.rig.mixed_cluster import (
    APPS,
    HUMBLE,
    NODES,
    PROFILES,
    SERVICES,
    TEMPLATES,
    URGENT,
    USUAL_NODES,
    make_budget,
    make_storage,
    make_variant,
)

EXAMPLES = int(os.environ.get("BAYPLAN_LIFE_EXAMPLES", "0"))
CONFIG = case_config(PROFILES)
PODS_PER_NODE = 4
DELETED = "2000-01-01T00:00:00Z"


class PatientExecutor(InlineExecutor):
    """Runs work on request, as if the calls took time; at once while it does not defer."""

    def __init__(self, clock: ManualClock, timers: Timers) -> None:
        super().__init__(clock, timers)
        self.waits = False
        self._work: list[tuple[Work, Finished]] = []

    def run(self, work: Work, finished: Finished) -> None:
        if self.waits:
            self._work.append((work, finished))
        else:
            super().run(work, finished)

    def catch_up(self) -> None:
        """Run the deferred work."""
        work, self._work = self._work, []
        for each in work:
            super().run(*each)


Step = tuple[str, int, int, int]


class World:
    """A cluster and the scheduler under test; every attempt is compared."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.executor = PatientExecutor(self.clock, self.timers)
        self.cluster = MemoryCluster(self.clock, self.timers)
        for obj in make_storage():
            self.cluster.add(obj)
        for number in range(size):
            self.cluster.add(make_variant(number, number % USUAL_NODES))
        self.scheduler = build_scheduler(
            CONFIG,
            self.cluster,
            clock=self.clock,
            timers=self.timers,
            executor=self.executor,
            ties=FirstByName(),
            observer=self.observe,
        )
        self.witness = Witness(self.scheduler)
        self.cluster.watch(self.scheduler)
        self.made = 0
        for number in range(3 * size):  # so that there is little room left
            self.on_bound(HUMBLE[number % len(HUMBLE)], number, 0)
        self.looks = False
        self.expected: Attempt | None = None
        self.seen: Counter[str] = Counter()
        """The results of the attempts, to check that histories are useful."""

    # The other scheduler

    def build_another(self) -> tuple[Scheduler, Witness]:
        """A new scheduler on the same objects; its writes have no effect."""
        scheduler, cache = self.scheduler, self.scheduler.cache
        pods = self.pods_of_scheduler()
        # Which of two pods that started at the same time is preempted depends on their order on the
        # node.
        arrival = {uid: i for i, uid in enumerate(u for row in cache.table.pods for u in row)}
        pods.sort(key=lambda pod: arrival.get(pod.uid, -1))
        others = [
            obj for kind in self.cluster.kinds() if kind != "Pod" for obj in self.cluster.list(kind)
        ]
        another = build_scheduler(
            CONFIG,
            CaseCluster([*others, *pods]),
            clock=self.clock,
            executor=NoBinding(),
            ties=FirstByName(),
            explain=True,
        )
        for obj in (*reversed(others), *pods):  # in another order, which must not change the result
            if obj.kind != "Pod" or obj.node_name:
                another.on_add(obj)
        for pod in pods:
            if not pod.node_name:
                another.queue.nominator.add(pod)
        assert {
            name: sorted(pod.uid for pod in found)
            for name, found in scheduler.queue.nominator.nominated().items()
            if name
        } == {
            name: sorted(pod.uid for pod in found)
            for name, found in another.queue.nominator.nominated().items()
        }
        return another, Witness(another)

    def observe(self, what: str, pod: Pod, details: str) -> None:
        """Compute the other scheduler's decision before an attempt."""
        if what != "popped":
            return
        self.witness.show_images()
        another, _ = self.build_another()
        accepted = accepted_one_by_one(another, pod)
        self.expected = another.schedule(QueuedPodInfo(pod, 0.0))
        self.witness.forget()
        told = self.expected.explanation
        assert told is not None
        assert {name: name in told.totals for name in accepted} == accepted
        if self.looks:  # not always: the query updates the caches before the attempt does
            assert self.witness.totals(pod) == Totals(told.totals, told.totals)

    def attempt(self, times: int = 1) -> None:
        """Try pods, and compare."""
        for _ in range(times):
            self.clock.advance(1)  # pods start in different seconds
            attempt = self.scheduler.schedule_one()
            if attempt is None:
                return
            assert self.expected is not None
            check_same(attempt, self.witness.preemption, self.expected)
            self.count(attempt)

    def ask(self, template: int) -> None:
        """Compare both schedulers' results for a pod that is not added."""
        pod = make_pod("asked", **TEMPLATES[template])
        self.witness.show_images()
        assert self.witness.totals(pod) == self.build_another()[1].totals(pod)

    def count(self, attempt: Attempt) -> None:
        self.seen["placed" if attempt.node_name else "refused"] += 1
        self.seen["from nomination"] += attempt.from_nomination
        self.seen["scored"] += attempt.score is not None
        account = self.witness.preemption
        if account is not None and account.chosen is not None:
            self.seen["preempted"] += 1
            self.seen["several victims"] += len(account.chosen.pods) > 1
            self.seen["cleared"] += bool(account.cleared)

    # Steps

    def take(self, step: Step) -> None:
        """One step of a history."""
        what, first, second, third = step
        self.looks = third % 2 == 0
        getattr(self, f"on_{what}")(first, second, third)

    def on_pods(self, template: int, count: int, third: int) -> None:
        """Add copies of a template and try them."""
        copies = 1 + count % 4
        if self.is_full:
            for number in range(self.size // 2):
                self.on_gone(number, 2, 0)
        for _ in range(copies):
            self.cluster.add(self.next_pod(template))
        self.attempt(copies + third % 3)

    def on_urgent(self, template: int, count: int, third: int) -> None:
        """Add pods that may preempt."""
        self.on_pods(URGENT[template % len(URGENT)], count % 2, third)

    def on_bound(self, template: int, number: int, _: int) -> None:
        """Add a pod that another scheduler bound, possibly to a missing node."""
        if self.is_full:
            return
        start = f"2001-01-01T00:{self.made // 60 % 60:02}:{self.made % 60:02}Z"
        node_name = f"n{number % self.size}"
        pod = self.next_pod(template, node_name=node_name, start_time=start)
        there = [p for p in self.pods_of_scheduler() if p.node_name == node_name]
        if not any(set(pod.spec.host_ports) & set(p.spec.host_ports) for p in there):
            self.cluster.add(pod)

    def next_pod(self, template: int, **more: Any) -> Pod:
        self.made += 1
        given = {**TEMPLATES[template % len(TEMPLATES)], **more}
        return make_pod(f"p{self.made}", uid=f"u{self.made}", **given)

    def on_node(self, number: int, variant: int, _: int) -> None:
        """Add, restore or change a node."""
        node = make_variant(number % (self.size + 3), variant % len(NODES))
        if self.cluster.get("Node", "", node.name) is None:
            self.cluster.add(node)
        else:
            self.cluster.update(node)

    def on_away(self, number: int, pods_go: int, _: int) -> None:
        """Delete a node, with or without its pods."""
        node = self.cluster.get("Node", "", f"n{number % (self.size + 3)}")
        if node is not None and self.cluster.count("Node") > self.size // 2:
            self.cluster.delete(node)
            for pod in self.pods(placed=True) if pods_go % 2 else ():
                if pod.node_name == node.name:
                    self.cluster.delete(pod)

    def on_relabelled(self, number: int, app: int, third: int) -> None:
        """Change the label of a running or pending pod."""
        for pod in self.some(number, placed=third % 4 != 0):
            self.cluster.update(pod.replace(labels={"app": APPS[app % len(APPS)]}))

    def on_terminating(self, number: int, _: int, __: int) -> None:
        """Let a pod be terminating for a while."""
        for pod in self.some(number, placed=True):
            if not pod.is_terminating:
                self.cluster.update(pod.replace(deletion_timestamp=DELETED))

    def on_finished(self, number: int, _: int, __: int) -> None:
        """Finish a pod."""
        for pod in self.some(number, placed=True):
            self.cluster.update(pod.with_status(replace(pod.status, phase="Succeeded")))

    def on_gone(self, number: int, count: int, third: int) -> None:
        """Delete pods: some running ones, sometimes a pending one."""
        for offset in range(1 + count % 3):
            for pod in self.some(number + 3 * offset, placed=third % 4 != 1):
                self.cluster.delete(pod)

    def on_namespace(self, number: int, team: int, _: int) -> None:
        """Change or delete the labels of a namespace."""
        name = ("default", "other")[number % 2]
        labels = [{"team": "x"}, {"team": "y"}, {}][team % 3]
        namespace = make_object("Namespace", name, metadata={"labels": labels})
        if self.cluster.get("Namespace", "", name) is None:
            self.cluster.add(namespace)
        else:
            self.cluster.update(namespace)

    def on_service(self, number: int, _: int, __: int) -> None:
        """Add or delete a service."""
        service = SERVICES[number % len(SERVICES)]
        if self.cluster.get("Service", service.namespace, service.name) is None:
            self.cluster.add(service)
        else:
            self.cluster.delete(service)

    def on_budget(self, app: int, allowed: int, _: int) -> None:
        """Add or change a budget."""
        wanted = make_budget(APPS[app % 3], allowed % 3)
        if self.cluster.get("PodDisruptionBudget", "default", wanted.name) is None:
            self.cluster.add(wanted)
        else:
            self.cluster.update(wanted)

    def on_time(self, seconds: int, _: int, __: int) -> None:
        """Advance the clock: preempted pods are deleted, backoffs end."""
        self.clock.advance((2, 12, 35, 320)[seconds % 4])
        self.scheduler.run_timers()
        self.attempt(3)

    def on_retry(self, number: int, attempts: int, _: int) -> None:
        """Retry all pending pods."""
        self.scheduler.queue.activate(self.some(number, placed=False))
        self.attempt(1 + attempts % 3)

    def on_patience(self, waits: int, _: int, __: int) -> None:
        """Start or stop deferring binds and evictions."""
        self.executor.waits = waits % 2 == 0
        self.executor.catch_up()

    def on_question(self, template: int, _: int, __: int) -> None:
        self.ask(template % len(TEMPLATES))

    @property
    def is_full(self) -> bool:
        return self.cluster.count("Pod") >= PODS_PER_NODE * self.size

    def pods_of_scheduler(self) -> list[Pod]:
        """All pods, those that the scheduler has chosen a node for with that node."""
        cache = self.scheduler.cache
        return [cache.get_pod(p) if cache.is_assumed(p) else p for p in self.cluster.list("Pod")]

    def pods(self, placed: bool) -> list[Pod]:
        return [pod for pod in self.cluster.list("Pod") if bool(pod.node_name) == placed]

    def some(self, number: int, placed: bool) -> list[Pod]:
        """One of the running or pending pods; None if there is none."""
        pods = self.pods(placed)
        return [pods[number * 7 % len(pods)]] if pods else []


def accepted_one_by_one(scheduler: Scheduler, pod: Pod) -> dict[str, bool]:
    """Whether the pod fits on the nodes with nominated pods, each judged with those pods on it."""
    state, table = CycleState(), scheduler.cache.table
    filtering = scheduler.profiles[pod.scheduler_name].filtering
    pre = filtering.run_pre_filters(state, pod, table)
    if not pre.status.is_success or pre.node_names is not None:
        return {}
    names = [name for name in scheduler.queue.nominator.node_names() if name in table.row_of]
    nodes = [table.node_at(table.row_of[name]) for name in names]
    return {
        node.name: filtering.filter_with_nominated(state, pod, node).is_success
        for node in nodes
        if table.live[node.row]
    }


def check_same(attempt: Attempt, preemption: Preemption | None, expected: Attempt) -> None:
    """Check that the attempt agrees with the one that explains."""
    told = expected.explanation
    assert told is not None, expected.message
    assert outcome_of(attempt) == outcome_of(expected)
    if attempt.node_name and not attempt.from_nomination:
        assert attempt.feasible_nodes == len(told.totals)
    if attempt.score is not None:
        assert attempt.score == told.totals[attempt.node_name]
    account = None if told.post_filter is None else told.post_filter[0].preemption
    assert victims_of(preemption) == victims_of(account)


def outcome_of(attempt: Attempt) -> dict[str, Any]:
    return {
        "pod": attempt.pod.key,
        "node": attempt.node_name,
        "from nomination": attempt.from_nomination,
        "fit error": attempt.fit_error,
        "message": attempt.message,
        "refused by": sorted(attempt.unschedulable_plugins),
        "nominated": attempt.nominated_node_name,
    }


def victims_of(account: Preemption | None) -> dict[str, Any] | None:
    if account is None:
        return None
    chosen = account.chosen
    return {
        "node": chosen and chosen.node_name,
        "victims": sorted(pod.key for pod in chosen.pods) if chosen else [],
        "evicted": sorted(pod.key for pod in chosen.evicted) if chosen else [],
        "violations": chosen and chosen.pdb_violations,
        "cleared": sorted(pod.key for pod in account.cleared),
    }


OFTEN = (
    ["pods"] * 9
    + ["urgent"] * 5
    + ["patience", "namespace"]
    + ["gone"] * 2
    + ["node", "relabelled", "bound", "retry", "time"] * 2
)
LAST = 179
KINDS = sorted(name.removeprefix("on_") for name in vars(World) if name.startswith("on_"))
STEPS = st.tuples(
    st.sampled_from(OFTEN + KINDS),
    *[st.integers(0, LAST)] * 3,
)


SIZES = [(20, 300), (40, 120), (80, 80)]
"""Nodes, and steps of a history. Few changes among many nodes use another update path than many
among few."""


def history_of(seed: int, length: int) -> list[Step]:
    """A long history."""
    drawn = random.Random(seed)
    kinds = OFTEN + KINDS

    def number() -> int:
        return drawn.randint(0, LAST)

    return [(drawn.choice(kinds), number(), number(), number()) for _ in range(length)]


PHASES = [Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if EXAMPLES else [])]


USUAL_SEEDS = 3
"""Seeds of every run. With each of them a pod preempts; of the first forty, two have no preemption."""


@pytest.mark.parametrize("seed", range(max(USUAL_SEEDS, EXAMPLES // 50)))
def test_after_a_long_history_a_scheduler_decides_like_a_new_one(seed: int) -> None:
    size, length = SIZES[seed % len(SIZES)]
    world = World(size)
    for number, step in enumerate(history_of(seed, length)):
        try:
            world.take(step)
        except AssertionError as error:
            error.add_note(f"seed {seed}, step {number}: {step}")
            raise
    assert min(world.seen["scored"], world.seen["refused"]) >= 20, "else it says little"
    assert world.seen["preempted"] >= 1 or seed >= USUAL_SEEDS, "else victims are not compared"


@settings(
    max_examples=EXAMPLES // 4 or 10,
    derandomize=not EXAMPLES,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,  # shrinking takes minutes: that is for `make life`
)
@given(st.sampled_from([8, 20, 50]), st.lists(STEPS, min_size=5, max_size=25))
def test_after_any_history_a_scheduler_decides_like_a_new_one(size: int, steps: list[Step]) -> None:
    world = World(size)
    for step in steps:
        world.take(step)
