"""Pods under random events: no pod is lost, and no resources stay reserved without a pod.

A scheduler with the default profile and a plugin with random results, on a cluster whose binds may
fail and whose watch lags behind. After each step all of the scheduler's state must be consistent.
At the end the faults stop, and every pod that fits on some node must be bound.

A few hundred histories are generated, always the same. `make life` generates more, and others each
time: a failure prints its steps and the seed, which `make life ARGS=--hypothesis-seed=...` takes.
"""

from typing import Any

from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.runtime.executor import InlineExecutor
from bayplan.scheduler import FirstByName, build_scheduler
from bayplan.testing.builders import make_node, make_pod
from tests.life.chaos import (
    ANSWERS,
    APP,
    BEHAVIOUR,
    BINDS,
    DELETED,
    EXAMPLES,
    MAX_PODS,
    NODE_NAMES,
    OFFER,
    OFFERS,
    PLACES,
    POINTS,
    RED,
    STEPS,
    USUAL_OFFERS,
    WISH,
    WISHES,
    Chaos,
    FaultyBinds,
    drive,
    facts,
)
from tests.rig.scenarios import make_config, places_of


class Life(RuleBasedStateMachine):
    """Adds, changes and deletes pods and nodes, advances the clock, and injects faults into plugins and binds."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.executor = InlineExecutor(self.clock, self.timers)
        self.cluster = FaultyBinds()
        plugins = {"enabled": [{"name": "Chaos"}]}
        self.scheduler = build_scheduler(
            make_config({"plugins": {"multiPoint": plugins, "bind": plugins}}),
            self.cluster,
            clock=self.clock,
            timers=self.timers,
            executor=self.executor,
            ties=FirstByName(),
            plugins=(Chaos,),
            seed=1,
        )
        self.cluster.watch(self.scheduler)
        plugin = self.scheduler.profiles["default-scheduler"].plugins["Chaos"]
        assert isinstance(plugin, Chaos)
        self.chaos = plugin
        self.made = 0
        self.excused = self.cluster.lied_about
        """Nodes that may be overcommitted by the input, not by the scheduler."""

    # Objects

    def pods(self) -> list[Pod]:
        return list(self.cluster.real.list("Pod"))

    def waiting(self) -> list[Pod]:
        return [pod for pod in self.pods() if not pod.node_name]

    def placed(self) -> list[Pod]:
        return [pod for pod in self.pods() if pod.node_name and not pod.is_finished]

    def assumed(self) -> list[Pod]:
        return [pod for pod in self.known() if self.scheduler.cache.is_assumed(pod)]

    # The start: some nodes, a plugin and a cluster with random faults

    @initialize(
        offers=st.lists(st.integers(0, USUAL_OFFERS - 1), min_size=1, max_size=4),
        ways=st.fixed_dictionaries({point: st.sampled_from(BEHAVIOUR[point]) for point in POINTS}),
        binds=BINDS,
    )
    def start(self, offers: list[int], ways: dict[str, str], binds: str) -> None:
        for name, offer in zip(NODE_NAMES, offers, strict=False):
            self.cluster.real.add(make_node(name, **OFFERS[offer]))
        for point, way in ways.items():
            self.behave(point, way)
        self.cluster.binds = binds

    def behave(self, point: str, way: str) -> None:
        self.chaos.answers[point] = ANSWERS[way]

    # Nodes

    @rule(name=st.sampled_from(NODE_NAMES), offer=OFFER)
    def a_node_comes_or_changes(self, name: str, offer: int) -> None:
        node = make_node(name, **OFFERS[offer])
        self.excused.add(name)
        if self.cluster.real.get("Node", "", name) is None:
            self.cluster.real.add(node)
        else:
            self.cluster.real.update(node)

    @precondition(lambda self: self.cluster.real.count("Node"))
    @rule(data=st.data())
    def a_node_goes(self, data: st.DataObject) -> None:
        nodes = list(self.cluster.real.list("Node"))
        self.cluster.real.delete(data.draw(st.sampled_from(nodes)))

    # Pods

    @precondition(lambda self: self.cluster.real.count("Pod") < MAX_PODS)
    @rule(wish=WISH, count=st.integers(1, 4), attempts=st.integers(0, 4))
    def pods_come(self, wish: int, count: int, attempts: int) -> None:
        for _ in range(count):
            self.clock.advance(0.001)
            self.add_pod(wish)
        self.try_pods(attempts)

    @precondition(lambda self: self.cluster.real.count("Pod") < MAX_PODS)
    @rule(wish=WISH, name=st.sampled_from(NODE_NAMES))
    def a_pod_comes_that_has_a_node(self, wish: int, name: str) -> None:
        self.excused.add(name)
        self.add_pod(wish, node_name=name)

    def add_pod(self, wish: int, **more: Any) -> None:
        self.made += 1
        given = {"name": f"p{self.made}", "uid": f"u{self.made}", **WISHES[wish], **more}
        self.cluster.real.add(make_pod(**given))

    @precondition(lambda self: self.cluster.real.count("Pod"))
    @rule(data=st.data(), way=st.sampled_from(["at once", "with grace", "and another comes"]))
    def a_pod_goes(self, data: st.DataObject, way: str) -> None:
        pod = data.draw(st.sampled_from(self.pods()))
        if way == "with grace":
            if not pod.is_terminating:
                self.cluster.real.update(pod.replace(deletion_timestamp=DELETED))
            return
        self.cluster.real.delete(pod)
        if way == "and another comes":
            self.add_pod(1, name=pod.name)

    @precondition(lambda self: any(self.waiting()))
    @rule(data=st.data(), change=st.sampled_from(["app", "tolerations", "gates", "node"]))
    def a_waiting_pod_changes(self, data: st.DataObject, change: str) -> None:
        pod = data.draw(st.sampled_from(self.waiting()))
        real = self.cluster.real
        if change == "app":
            real.update(pod.replace(labels={"app": data.draw(APP)}))
        elif change == "tolerations" and not pod.tolerations:
            real.update(pod.with_spec(replace(pod.spec, tolerations=RED.tolerations)))
        elif change == "gates" and pod.spec.scheduling_gates:
            real.update(pod.with_spec(make_pod(cpu="1").spec))
        elif change == "node" and not (pod.is_terminating or pod.spec.scheduling_gates):
            name = data.draw(st.sampled_from(NODE_NAMES))  # another scheduler was faster
            if real.get("Node", "", name) is not None:
                self.excused.add(name)
                real.bind(pod, name)

    @precondition(lambda self: any(self.placed()))
    @rule(data=st.data(), change=st.sampled_from(["app", "less", "end"]))
    def a_placed_pod_changes(self, data: st.DataObject, change: str) -> None:
        pod = data.draw(st.sampled_from(self.placed()))
        if change == "app":
            self.cluster.real.update(pod.replace(labels={"app": data.draw(APP)}))
        elif change == "end":
            self.cluster.real.update(pod.with_status(replace(pod.status, phase="Succeeded")))
        elif pod.requests.get("cpu", 0) > 1000:
            less = make_pod(cpu="1", priority=pod.spec.priority).spec
            self.cluster.real.update(pod.with_spec(less))

    # The scheduler

    @rule(attempts=st.integers(1, 8))
    def schedule(self, attempts: int) -> None:
        self.try_pods(attempts)

    @rule(data=st.data(), point=st.sampled_from(POINTS))
    def the_plugin_changes_its_ways_and_pods_are_scheduled(
        self, data: st.DataObject, point: str
    ) -> None:
        self.behave(point, data.draw(st.sampled_from(BEHAVIOUR[point])))
        self.try_pods(20)

    def try_pods(self, attempts: int) -> None:
        for _ in range(attempts):
            attempt = self.scheduler.schedule_one()
            if attempt is None:
                return
            event(attempt.outcome.value)

    @rule(seconds=st.sampled_from([0.25, 1, 3, 7, 45, 310]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.scheduler.run_timers()

    @precondition(lambda self: self.scheduler.next_timer() is not None)
    @rule(attempts=st.integers(0, 3))
    def time_passes_until_something_is_due(self, attempts: int) -> None:
        due = self.scheduler.next_timer()
        assert due is not None
        self.clock.advance(max(due - self.clock.monotonic(), 0))
        self.scheduler.run_timers()
        self.try_pods(attempts)

    @precondition(lambda self: len(self.scheduler.waiting_pods) > 0)
    @rule(data=st.data(), how=st.sampled_from(["allow", "reject", "preempt"]))
    def a_pod_that_waits_on_permit_is_decided(self, data: st.DataObject, how: str) -> None:
        waiting = list(self.scheduler.waiting_pods)
        chosen = waiting[data.draw(st.integers(0, len(waiting) - 1))]
        if how == "allow":
            chosen.allow("Chaos")
        else:
            getattr(chosen, how)("Chaos", "drawn")

    @precondition(lambda self: any(self.assumed()))
    @rule(data=st.data())
    def a_pod_is_rejected_in_pre_bind(self, data: st.DataObject) -> None:
        pod = data.draw(st.sampled_from(self.assumed()))
        pre_binding = self.chaos.handle.pre_binding
        assert pre_binding is not None
        if pre_binding.cancel(pod.uid, "made room for another"):
            event("rejected in PreBind")

    # Faults

    @rule(data=st.data(), point=st.sampled_from(POINTS))
    def the_plugin_changes_its_ways(self, data: st.DataObject, point: str) -> None:
        self.behave(point, data.draw(st.sampled_from(BEHAVIOUR[point])))

    @rule(binds=BINDS)
    def the_cluster_changes_its_ways(self, binds: str) -> None:
        self.cluster.binds = binds

    @rule(is_lagging=st.booleans(), count=st.integers(0, 4))
    def the_watch_lags(self, is_lagging: bool, count: int) -> None:
        self.cluster.is_lagging = is_lagging
        self.cluster.deliver(count if is_lagging else None)

    # Invariants after every step

    def known(self) -> list[Pod]:
        """The pods that the scheduler has seen and is responsible for."""
        return [pod for pod in self.cluster.list("Pod") if not pod.is_finished]

    @invariant()
    def each_pod_is_in_exactly_one_place(self) -> None:
        for pod in self.known():
            places = places_of(self.scheduler, pod)
            if pod.is_terminating and not pod.node_name and not places:
                continue  # popped and skipped; or its resources are free while its binding fails
            assert len(places) == 1, f"{pod.name} is in {places}"
            (place,) = places
            event(place)
            assert place in PLACES, f"{pod.name} is {place} although no attempt is under way"
            if pod.node_name:
                assert place == "bound"
            if place == "bound":
                assert pod.node_name

    @invariant()
    def the_queue_holds_what_the_cluster_has(self) -> None:
        queue = self.scheduler.queue
        known = {pod.key: pod for pod in self.known() if not pod.node_name}
        entries = [
            *queue.active.heap,
            *queue.backoff.rejected,
            *queue.backoff.errors,
            *queue.unschedulable,
        ]
        for info in entries:
            assert info.pod is known.get(info.pod.key), f"{info.pod.name} in the queue is outdated"
        waiting = {waiting.pod.uid for waiting in self.scheduler.waiting_pods}
        assert {info.pod.uid for info in queue.in_flight.infos()} == waiting
        if not waiting:
            assert queue.in_flight.event_count == 0

    @invariant()
    def the_cache_holds_what_the_cluster_has(self) -> None:
        cache = self.scheduler.cache
        placed = [pod for pod in self.known() if pod.node_name]
        for pod in placed:
            assert cache.get_pod(pod) is pod, f"{pod.name} in the cache is outdated"
        assumed = [pod for pod in self.known() if not pod.node_name and cache.is_assumed(pod)]
        assert cache.pod_count == len(placed) + len(assumed), "the cache holds unknown pods"
        unplaced = {pod.uid for pod in self.known() if not pod.node_name}
        for waiting in self.scheduler.waiting_pods:
            # A pod that another scheduler has placed waits needlessly.
            if waiting.pod.uid in unplaced:
                assert cache.is_assumed(waiting.pod), f"{waiting.pod.name} waits without a place"

    @invariant()
    def nominations_are_of_pods_that_wait(self) -> None:
        nominated = self.scheduler.queue.nominator.nominated()
        known = {pod.uid: pod for pod in self.known()}
        for name, pods in nominated.items():
            for pod in pods:
                assert pod.uid in known, f"{pod.name} is gone, and still nominated to {name!r}"
                assert not known[pod.uid].node_name, f"{pod.name} is placed, and still nominated"
                assert not self.scheduler.cache.has_pod(pod), f"{pod.name} is assumed"

    @invariant()
    def what_was_reserved_is_bound_or_was_unreserved(self) -> None:
        held = {uid for uid, count in self.chaos.held.items() if count}
        assumed = {pod.uid for pod in self.known() if self.scheduler.cache.is_assumed(pod)}
        forgotten = held - assumed  # placed by another, or deleted: while its binding fails
        assert assumed - held <= self.unconfirmed(), "assumed without being reserved"
        for uid in forgotten:
            assert self.timers.next() is not None, f"{uid} is reserved, and nothing will end that"

    def unconfirmed(self) -> set[str]:
        """Bound pods that the scheduler has not seen yet."""
        return {
            pod.uid
            for pod in self.pods()
            if pod.node_name
            and (seen := self.cluster.get("Pod", pod.namespace, pod.name)) is not None
            and seen.uid == pod.uid
            and not seen.node_name
        } | {old.uid for old, new in self.cluster.news if new is None}

    @invariant()
    def no_node_is_over_what_it_offers(self) -> None:
        table = self.scheduler.cache.table
        over = set()
        for name, row in table.row_of.items():
            used, offered = table.requested.at(row), table.allocatable.at(row)
            if any(amount > offered.get(resource, 0) for resource, amount in used.items()):
                over.add(name)
            if table.pod_count[row] > table.max_pods[row]:
                over.add(name)
        gone = {name for name in over if not table.live[table.row_of[name]]}
        assert over - gone <= self.excused
        if not self.cluster.news:
            self.excused &= over | gone

    @invariant()
    def the_table_is_as_if_made_from_scratch(self) -> None:
        fresh = Cache(self.clock)
        for node in self.cluster.list("Node"):
            fresh.set_node(node)
        for pod in self.known():
            if self.scheduler.cache.has_pod(pod):
                fresh.add_pod(self.scheduler.cache.get_pod(pod))
        expected, found = facts(fresh.table), facts(self.scheduler.cache.table)
        for what, value in expected.items():
            assert found[what] == value, what

    # The end

    def teardown(self) -> None:
        """Stop the faults: feasible pods are placed, without the flush of unschedulable pods."""
        try:
            self.calm_down()
            self.cluster.binds = "work"
            self.cluster.is_lagging = False
            self.cluster.deliver()
            if self.cluster.real.count("Node") == 0:  # without nodes, pods are retried without end
                self.cluster.real.add(make_node("last", unschedulable=True))
            drive(self.scheduler, self.clock, limit_s=3600)
            self.check_everything()
            assert not +self.chaos.held, "something is still reserved"
            assert len(self.scheduler.waiting_pods) == 0
            self.check_nothing_more_can_be_placed()
        finally:
            self.executor.close()

    def calm_down(self) -> None:
        """The plugin changes its results and, as it should, requeues the pods it rejected."""
        self.chaos.answers = {}
        refused = [
            info.pod
            for info in self.scheduler.queue.unschedulable
            if "Chaos" in info.unschedulable_plugins | info.pending_plugins
        ]
        self.chaos.handle.activate(refused)

    def check_everything(self) -> None:
        self.each_pod_is_in_exactly_one_place()
        self.the_queue_holds_what_the_cluster_has()
        self.the_cache_holds_what_the_cluster_has()
        self.nominations_are_of_pods_that_wait()
        self.what_was_reserved_is_bound_or_was_unreserved()
        self.no_node_is_over_what_it_offers()
        self.the_table_is_as_if_made_from_scratch()

    def check_nothing_more_can_be_placed(self) -> None:
        """Check that a fresh scheduler on the same cluster places none of the remaining pods."""
        cluster, clock = MemoryCluster(), ManualClock()
        for obj in (*self.cluster.real.list("Node"), *self.pods()):
            cluster.add(obj)
        fresh = build_scheduler(make_config(), cluster, clock=clock, ties=FirstByName(), seed=1)
        cluster.watch(fresh)
        left = {pod.uid: pod.name for pod in self.pods() if not pod.node_name}
        while fresh.schedule_one() is not None:
            pass
        placed = [pod.name for pod in cluster.list("Pod") if pod.uid in left and pod.node_name]
        assert not placed, f"{placed} could be placed, but are left waiting"
        assert not cluster.evictions, "room could be made, but was not"


Life.TestCase.settings = settings(
    max_examples=EXAMPLES or 100,
    derandomize=not EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],  # explaining takes minutes
)
TestLife = Life.TestCase
