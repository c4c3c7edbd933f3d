"""Resource claims under random events: no device is ever allocated to two of them.

A scheduler on a cluster whose watch lags behind and whose writes may be slow, conflict or fail,
with a plugin that rejects pods at every extension point, and drivers that change their devices.
After each step every device in the cluster has one user (or as many as it has room for); at the end
the faults stop, and the scheduler's allocated devices must equal those of the claims.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bayplan.api.dra import ResourceClaim
from bayplan.api.pod import Pod
from bayplan.api.text.quantity import parse_quantity
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory.admission_defaults import admit_devices
from bayplan.cluster.memory.resource_claims import ClaimController
from bayplan.errors import ApiError, ConflictError
from bayplan.framework import SUCCESS, failure, unschedulable, wait
from bayplan.framework.devices import Devices
from bayplan.runtime.executor import InlineExecutor
from bayplan.scheduler import FirstByName, Scheduler, build_scheduler
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import (
    DRIVER,
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_template,
)
from tests.life.lagging import LaggingCluster
from tests.rig.scenarios import DelayedResult, Scripted, make_config, places_of

EXAMPLES = int(os.environ.get("BAYPLAN_LIFE_EXAMPLES", "0"))
NODES = ["a", "b", "c"]
MAX_PODS = 16
RESOURCE = "example.com/gpu"
SAME_NUMA = [{"matchAttribute": f"{DRIVER}/numa"}]
LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
SHAREABLE = "device.allowMultipleAllocations"
SHARE = {"value": "40Gi", "requestPolicy": {"default": "20Gi", "validValues": ["10Gi", "20Gi"]}}

TEMPLATES = [
    make_template("one"),
    make_template("two", make_request(count=2), constraints=SAME_NUMA),
    make_template(
        "choice",
        make_choice("gpu", make_request("large", LARGE), make_request("any")),
    ),
    make_template("all", make_request(allocationMode="All")),
    make_template("share", make_request("gpu", SHAREABLE)),
    make_template("admin", make_request(adminAccess=True)),
]
WISHES: list[dict[str, Any]] = [
    *({"template": template.name} for template in TEMPLATES),
    {"template": "one", "cpu": "3"},
    {"claims": ["shared-1"]},
    {"claims": ["shared-1", "shared-2"]},
    {"claims": ["shared-2"], "template": "one"},
    {"requests": {RESOURCE: 1}},
    {"requests": {RESOURCE: 2}, "template": "one"},
    {"cpu": "1"},
]
SMALL = {"memory": "20Gi"}
POOLS: dict[str, list[Any]] = {
    "few": [make_device("d0", numa=0, capacity={"memory": "80Gi"})],
    "some": [make_device(f"d{i}", numa=i % 2, capacity=SMALL) for i in range(4)],
    "shared": [
        make_device(f"d{i}", numa=0, shared=True, capacity={"memory": SHARE}) for i in (0, 1)
    ],
    "sick": [
        make_device(f"d{i}", numa=0, capacity=SMALL, taints=["sick=yes:NoSchedule"] * (i % 2))
        for i in range(3)
    ],
    "parts": [
        make_device(
            f"d{i}", numa=0, capacity=SMALL, counters={"card": {"slots": "1" if i else "2"}}
        )
        for i in range(3)
    ],
}
CARD = {"card": {"slots": "2"}}
ANSWERS: dict[str, Any] = {
    "yes": SUCCESS,
    "no": unschedulable("chaos"),
    "error": failure("chaos"),
    "wait": (wait("chaos"), 5),
    "late yes": DelayedResult(3),
    "late no": DelayedResult(2, unschedulable("chaos")),
}
WAYS = {
    "reserve": ["yes", "yes", "yes", "no"],
    "permit": ["yes", "yes", "wait", "no"],
    "pre_bind": ["yes", "yes", "late yes", "late no", "error"],
}


class Chaos(Scripted):
    """Gives the answers that a property test generates."""

    name = "Chaos"


class FaultyWrites(LaggingCluster):
    """A cluster whose writes may be slow or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self.failures: list[Exception] = []
        self.fails_to_bind = False

    def bind(self, pod: Pod, node_name: str) -> None:
        if self.fails_to_bind:
            raise ApiError("the server is unreachable")
        self.real.bind(pod, node_name)

    def update(self, obj: Any) -> Any:
        return self._write(self.real.update, obj)

    def update_status(self, obj: Any) -> Any:
        return self._write(self.real.update_status, obj)

    def create(self, obj: Any) -> Any:
        return self._write(self.real.create, obj)

    def delete(self, obj: Any) -> Any:
        return self._write(self.real.delete, obj)

    def _write(self, write: Any, obj: Any) -> Any:
        if self.is_slow:
            return self._write_late(write, obj)
        if self.failures:
            raise self.failures.pop(0)
        return write(obj)

    async def _write_late(self, write: Any, obj: Any) -> Any:
        await asyncio.sleep(1)
        if self.failures:
            raise self.failures.pop(0)
        return write(obj)


class Life(RuleBasedStateMachine):
    """Adds and deletes pods, slices and nodes, advances the clock, and injects faults into plugins and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.cluster = FaultyWrites()
        self.real = self.cluster.real
        self.claims = ClaimController(self.real)
        self.real.watch(self.claims)
        self.scheduler = self.build()
        self.made = 0

    def build(self) -> Scheduler:
        scheduler = build_scheduler(
            make_config({"plugins": {"multiPoint": {"enabled": [{"name": "Chaos"}]}}}),
            self.cluster,
            clock=self.clock,
            timers=self.timers,
            executor=InlineExecutor(self.clock, self.timers),
            ties=FirstByName(),
            plugins=(Chaos,),
            seed=1,
        )
        self.cluster.watch(scheduler)
        return scheduler

    @property
    def chaos(self) -> Chaos:
        plugin = self.scheduler.profiles["default-scheduler"].plugins["Chaos"]
        assert isinstance(plugin, Chaos)
        return plugin

    @initialize(pools=st.lists(st.sampled_from(sorted(POOLS)), min_size=2, max_size=3))
    def start(self, pools: list[str]) -> None:
        self.real.add(make_class("gpu", f'device.driver == "{DRIVER}"', resource=RESOURCE))
        for template in TEMPLATES:
            self.real.add(admit_devices(template))
        for name in ("shared-1", "shared-2"):
            self.real.add(admit_devices(make_claim(name)))
        for name, pool in zip(NODES, pools, strict=False):
            self.real.add(make_node(name, cpu="8"))
            self.offer(name, pool)

    def offer(self, node: str, pool: str) -> None:
        """Publish devices of a node's driver, in a new generation of its pool."""
        for old in [s for s in self.real.list("ResourceSlice") if s.spec.pool.name == node]:
            self.real.delete(old)
        self.made += 1
        parts = pool == "parts"
        made = make_slice(
            f"{node}-{self.made}",
            *POOLS[pool],
            node=node,
            generation=self.made,
            count=1 + parts,
        )
        self.real.add(made)
        if parts:
            counters = make_slice(
                f"{node}-{self.made}-card",
                node=node,
                generation=self.made,
                count=2,
                counters=CARD,
            )
            self.real.add(counters)

    # Rules

    @rule(node=st.sampled_from(NODES), pool=st.sampled_from(sorted(POOLS)))
    def a_driver_offers_something_else(self, node: str, pool: str) -> None:
        self.offer(node, pool)

    @rule(node=st.sampled_from(NODES))
    def a_node_comes_or_goes(self, node: str) -> None:
        found = self.real.get("Node", "", node)
        if found is None:
            self.real.add(make_node(node, cpu="8"))
        else:
            self.real.delete(found)

    @precondition(lambda self: self.real.count("Pod") < MAX_PODS)
    @rule(wish=st.sampled_from(WISHES), count=st.integers(1, 3))
    def pods_come(self, wish: dict[str, Any], count: int) -> None:
        for _ in range(count):
            self.made += 1
            given = {**wish, "name": f"p{self.made}"}
            claims, template = given.pop("claims", ()), given.pop("template", None)
            if claims or template:
                pod = claiming(*claims, template=template, uid=f"u{self.made}", **given)
            else:
                pod = make_pod(uid=f"u{self.made}", **given)
            self.real.add(pod)
        self.claims.run()

    @precondition(lambda self: self.real.count("Pod") < MAX_PODS)
    @rule(wish=st.sampled_from(WISHES), count=st.integers(2, 4))
    def pods_are_tried_before_the_watch_tells_of_each_other(
        self, wish: dict[str, Any], count: int
    ) -> None:
        self.pods_come(wish, count)
        self.cluster.deliver()
        self.cluster.is_lagging = True
        for _ in range(count + 2):
            self.scheduler.schedule_one()

    @precondition(lambda self: self.real.count("Pod"))
    @rule(data=st.data())
    def a_pod_goes(self, data: st.DataObject) -> None:
        pods = sorted(self.real.list("Pod"), key=lambda pod: pod.name)
        self.real.delete(data.draw(st.sampled_from(pods)))
        self.claims.run()

    @rule(attempts=st.integers(1, 5), seconds=st.sampled_from([0, 1, 5, 60]))
    def time_passes(self, attempts: int, seconds: float) -> None:
        for _ in range(attempts):
            self.scheduler.schedule_one()
        self.clock.advance(seconds)
        self.scheduler.run_timers()
        self.claims.run()

    @rule(point=st.sampled_from(sorted(WAYS)), data=st.data())
    def a_plugin_changes_its_ways(self, point: str, data: st.DataObject) -> None:
        self.chaos.answers[point] = ANSWERS[data.draw(st.sampled_from(WAYS[point]))]

    @rule(mood=st.sampled_from(["slow", "quick", "conflict", "fail", "no bind", "bind"]))
    def writes_change(self, mood: str) -> None:
        cluster = self.cluster
        cluster.is_slow = {"slow": True, "quick": False}.get(mood, cluster.is_slow)
        cluster.fails_to_bind = {"no bind": True, "bind": False}.get(mood, cluster.fails_to_bind)
        if mood == "conflict":
            cluster.failures.append(ConflictError("another writer was faster"))
        elif mood == "fail":
            cluster.failures.append(ApiError("the server is unreachable"))

    @rule(lags=st.booleans(), count=st.integers(0, 5))
    def the_watch_lags(self, lags: bool, count: int) -> None:
        self.cluster.is_lagging = lags
        self.cluster.deliver(count if lags else None)

    # Invariants

    @invariant()
    def no_device_has_two_users(self) -> None:
        users: Counter[tuple[str, str]] = Counter()
        shares: Counter[tuple[str, str]] = Counter()
        for claim in self.real.list("ResourceClaim"):
            for result in results_of(claim):
                if result.admin_access:
                    continue
                if result.share_id is None:
                    users[result.pool, result.device] += 1
                else:
                    used = (result.consumed_capacity or {})["memory"]
                    shares[result.pool, result.device] += parse_quantity(used)
        assert all(count == 1 for count in users.values()), users
        assert all(used <= parse_quantity("40Gi") for used in shares.values()), shares

    @invariant()
    def a_pod_on_a_node_has_its_devices(self) -> None:
        for pod in self.real.list("Pod"):
            if not pod.node_name:
                continue
            names = {
                s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()
            }
            for entry in pod.spec.resource_claims or ():
                name = entry.resource_claim_name or names[entry.name]
                claim = self.real.get("ResourceClaim", "default", name)
                assert isinstance(claim, ResourceClaim)
                assert claim.is_reserved_for(pod), f"{pod.name} does not have {name}"
                assert claim.allocation is not None
                selector = claim.allocation.node_selector
                assert selector is None or selector.matches({}, pod.node_name)

    def teardown(self) -> None:
        """Stop the faults: the allocated devices equal those of the claims, and no pod is pending
        unnecessarily."""
        if not self.real.list("DeviceClass"):
            return
        self.cluster.is_lagging = self.cluster.is_slow = self.cluster.fails_to_bind = False
        self.cluster.failures.clear()
        self.chaos.answers.clear()
        self.cluster.deliver()
        if not self.real.count("Node"):
            self.real.add(make_node("a", cpu="8"))  # without nodes, pods are retried without end
        self.settle()
        devices = Devices.of(self.scheduler.profiles["default-scheduler"].handle)
        devices.follow()
        fresh = Devices(self.scheduler.cache.table, self.cluster)
        fresh.follow()
        assert not devices.claims._pending
        assert devices.allocated.in_use == fresh.allocated.in_use
        assert devices.allocated.consumed == fresh.allocated.consumed
        self.no_device_has_two_users()
        self.a_pod_on_a_node_has_its_devices()
        for pod in self.real.list("Pod"):
            assert len(places_of(self.scheduler, pod)) == 1

    def settle(self) -> None:
        attempts = 0
        while True:
            self.claims.run()
            while self.scheduler.schedule_one() is not None:
                self.claims.run()
                attempts += 1
                assert attempts < 3_000, "pods are retried without end"
            if self.scheduler.is_settled:
                return
            due = self.scheduler.next_timer()
            assert due is not None, "something is under way that no timer ends"
            self.clock.advance(max(due - self.clock.monotonic(), 0))
            self.scheduler.run_timers()


def results_of(claim: ResourceClaim) -> Iterable[Any]:
    return () if claim.allocation is None else claim.allocation.devices.results or ()


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=EXAMPLES or 50,
    stateful_step_count=40,
    deadline=None,
    derandomize=not EXAMPLES,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
