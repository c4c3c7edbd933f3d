"""History: one run of the scheduler against a simulated API server, with everything chosen by a seed.

The parts of `bayplan run` run here, too: the driver with its reflectors, senders and events, and the lease in some
histories. Virtual time takes the place of the clock and of the threads. Faults last for a while; soon after they end,
everything that fits is bound and the caches equal the server.
"""

from __future__ import annotations

import asyncio
import logging
import random
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bayplan.cli.commands.run import schedule
from bayplan.clock import ManualClock
from bayplan.config.defaults import default_config
from bayplan.config.types import ClientConnection
from bayplan.drivers.core_thread import Core
from bayplan.drivers.kube_driver import DriverOptions, KubeDriver
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import Credentials, Identity, Place
from bayplan.kube.leader import LeaderElector, LeaseLock
from tests.rig.faults import Faults
from tests.rig.simulated import (
    NetworkLoop,
    SimulatedApi,
    SimulatedServer,
    VersionedStore,
)

from .checks import Watchdog, differs, not_bound, pending
from .workload import Workload

HOST, PORT = "127.0.0.1", 6443  # no proxy is used for this host
SHARES = [0.0, 0.02, 0.05, 0.1, 0.2]
"""Number of requests that meet a kind of fault."""
FAULTS_S = (8.0, 20.0)
"""Duration of the faults."""
SETTLED_S = 5.0
"""Seconds after the faults until everything that fits is bound."""
PREEMPTED_S = 10.0
"""Seconds until everything that fits by preemption is bound; the caches equal the server."""
LEASE_S = 30.0
"""Seconds that a new process may wait for the lease of the last one."""
END_S = 60.0
MAX_BACKOFF_S = 2
"""Maximum backoff of pods. The default of 10 s would hide whether the driver settles within 5 s."""


@dataclass
class HistoryReport:
    """Result of a history."""

    seed: int
    problems: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    bound: int = 0
    processes: int = 0


def run_history(seed: int, *, is_logged: bool = False) -> HistoryReport:
    """Run the history of `seed` to its end."""
    clock, dice = ManualClock(), random.Random(seed)
    with seeded(seed), quiet(not is_logged):
        loop = NetworkLoop(clock, dice)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            history = FaultHistory(seed, clock, loop, dice)
            try:
                runner.run(history.run())
            except Exception as error:
                history.failed("the history broke off", error)
            return history.report


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the generator that delays with jitter use."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


@contextmanager
def quiet(is_quiet: bool) -> Iterator[None]:
    """Switch logs off: they report the faults."""
    before = logging.root.manager.disable
    if is_quiet:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def choose_faults(seed: int, dice: random.Random) -> Faults:
    """None, few or many of each kind."""
    some = [dice.choice(SHARES) for _ in range(5)]
    return Faults(
        seed=seed,
        refused=some[0],
        retry_after=dice.choice([0.0, 0.5]),
        delayed=some[1],
        delay_s=dice.choice([0.1, 1.0, 4.0]),
        cut=some[2],
        lost=some[3],
        torn=some[4],
        watch_cut=dice.choice([0.0, 0.2]),
        watch_stalled=dice.choice([0.0, 0.2]),
        watch_expired=dice.choice([0.0, 0.2]),
    )


class FaultHistory:
    """The parts of a history, and its steps."""

    def __init__(
        self, seed: int, clock: ManualClock, loop: NetworkLoop, dice: random.Random
    ) -> None:
        self._seed = seed
        self._clock = clock
        self._loop = loop
        self._dice = dice
        self.report = HistoryReport(seed)
        self._has_lease = dice.random() < 0.2
        self._is_restarted = dice.random() < 0.2
        self._api = SimulatedApi(VersionedStore(), loop.call_later)
        self._server = SimulatedServer(loop, self._api, choose_faults(seed, dice), dice)
        self._watchdog = Watchdog(self._api)
        self._workload = Workload(self._api, dice, loop.call_later, dice.random() < 0.5)
        limits = dice.choice([ClientConnection(), ClientConnection(qps=5000, burst=10000)])
        self._config = msgspec.structs.replace(
            default_config(), pod_max_backoff_s=MAX_BACKOFF_S, client_connection=limits
        )
        self._driver: KubeDriver | None = None
        self._told = asyncio.Event()
        """The process is to end."""

    async def run(self) -> None:
        """Run to the end; `report` has the result."""
        self._loop.set_exception_handler(self._on_exception)
        self._loop.serve(HOST, PORT, self._server.accept)
        self._workload.begin()
        processes = asyncio.ensure_future(self._run_processes())
        await self._make_trouble()
        self._server.end_faults()
        self._workload.collect_pods()
        await self._check()
        self._server.note("the process is asked to end")
        processes.cancel()
        try:
            async with asyncio.timeout(END_S):
                await asyncio.gather(processes, return_exceptions=True)
        except TimeoutError:
            self._problem("the process does not end")
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            self._problem(f"left over: {task.get_coro()}")
        report = self.report
        report.problems += self._watchdog.problems
        report.trace, report.injected = self._server.trace, self._server.injected
        report.bound = self._watchdog.bound

    async def _make_trouble(self) -> None:
        """Change the cluster, with faults, for a while."""
        dice, end = self._dice, self._loop.time() + self._dice.uniform(*FAULTS_S)
        if dice.random() < 0.4:
            self._loop.call_later(dice.uniform(0, 12), self._begin_outage)
        if self._is_restarted:
            self._loop.call_later(dice.uniform(0, 12), self._told.set)
        while self._loop.time() < end:
            await asyncio.sleep(self._workload.step())
        self._workload.create_pods()

    def _begin_outage(self) -> None:
        """Let the server go away while new pods are being bound."""
        if not self._server.has_faults:
            return
        self._workload.create_pods()
        away_s = self._dice.uniform(0.1, 8)
        self._loop.call_later(self._dice.uniform(0.01, 0.04), self._server.go_away, away_s)

    async def _check(self) -> None:
        """See that everything settles in time."""
        store = self._api.store
        await self._settle()
        if not any(pod["status"].get("nominatedNodeName") for pod in pending(store)):
            self._problems(not_bound(store, with_preemption=False))
        await asyncio.sleep(PREEMPTED_S - SETTLED_S)
        self._workload.collect_pods()
        await asyncio.sleep(1)
        self._problems(not_bound(store, with_preemption=False))
        self._problems(not_bound(store, with_preemption=True))
        driver = self._driver
        if driver is None or not driver.is_ready():
            self._problem("the driver is not ready: " + ((driver and driver.problem()) or ""))
            return
        self._problems(differs(driver, store))

    async def _settle(self) -> None:
        """Give a process time to settle; again when faults before made it lose the lease meanwhile."""
        process = -1
        while process != self.report.processes:
            await self._until_led()
            process = self.report.processes
            await asyncio.sleep(SETTLED_S)

    async def _until_led(self) -> None:
        """With a lease, or after a restart, it takes a while until a process schedules."""
        if not (self._has_lease or self._is_restarted):
            return
        end = self._loop.time() + LEASE_S
        while self._driver is None or not (self._driver.is_ready() and self._driver.is_leader()):
            if self._loop.time() > end:
                self._problem("no process leads")
                return
            await asyncio.sleep(0.1)

    # The process

    async def _run_processes(self) -> None:
        """Run a process; when it ends, another one follows."""
        while True:
            self.report.processes += 1
            await self._run_process(f"process-{self.report.processes}")
            self._told.clear()
            await asyncio.sleep(self._dice.uniform(0.1, 1))

    async def _run_process(self, identity: str) -> None:
        """As `bayplan run` does, until it is to end, or loses the lease."""
        connection = Connection(_credentials())
        options = DriverOptions(seed=self._seed, clock=self._clock, make_core=Core)
        elector = None
        if self._has_lease:
            lock = LeaseLock(connection, "kube-system", "kube-scheduler", self._clock, "bayplan")
            elector = LeaderElector(lock, identity, self._clock)
            options.is_leading = lambda: elector.is_leading
        driver = self._driver = KubeDriver(connection, self._config, options)
        working = asyncio.ensure_future(schedule(driver, elector))
        ending = asyncio.ensure_future(self._told.wait())
        both: set[asyncio.Future[Any]] = {working, ending}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if working.done() and working.exception() is not None:
                self.failed("the driver failed", working.exception())
        finally:
            self._driver = None
            await driver.stop()
            working.cancel()
            ending.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            if elector is not None:
                await elector.release()
            await connection.close()

    # Problems

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failed(str(context.get("message")), context.get("exception"))

    def failed(self, what: str, error: BaseException | None) -> None:
        """Note an exception."""
        lines = traceback.format_exception(error) if error is not None else []
        self._problem(f"{what}: {''.join(lines)}")

    def _problem(self, text: str) -> None:
        self.report.problems.append(f"at {self._loop.time():.3f} s: {text}")

    def _problems(self, texts: Iterator[str]) -> None:
        for text in texts:
            self._problem(text)


def _credentials() -> Credentials:
    async def identify() -> Identity:
        return Identity()

    return Credentials(Place(f"http://{HOST}:{PORT}"), Identity(), identify, "a simulation")
