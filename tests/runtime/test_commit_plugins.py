"""Reserve, Permit, PreBind, Bind and PostBind: the effect of each status."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest

from bayplan.api.pod import Pod, PodSpec
from bayplan.framework import (
    SKIP,
    SUCCESS,
    BindPlugin,
    Code,
    CycleState,
    Handle,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Settled,
    Status,
    failure,
    unresolvable,
    unschedulable,
    wait,
)
from bayplan.framework.status import pending
from bayplan.runtime import PluginRunError
from bayplan.runtime.commit_plugins import Committing
from bayplan.table import NodeTable
from bayplan.testing.builders import ObjectLister, make_object, make_pod

pytestmark = pytest.mark.usefixtures("plugins_are_in_tree")

POD = make_pod("p", node_name="a")
BOOM = RuntimeError("boom")
Answer = TypeVar("Answer")
STATE = CycleState()


class Steps:
    """Makes plugins with given answers that note their calls."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def _answer(self, name: str, said: Answer | Exception) -> Answer:
        self.called.append(name)
        if isinstance(said, Exception):
            raise said
        return said

    def reserve(
        self, name: str, said: Status | Exception = SUCCESS, undo: Exception | None = None
    ) -> ReservePlugin:
        steps = self

        class Reserve(ReservePlugin):
            def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
                return steps._answer(name, said)

            def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
                steps._answer(f"un-{name}", undo)

        Reserve.name = name
        return Reserve()

    def permit(self, name: str, said: Any = SUCCESS, timeout_s: float = 0) -> PermitPlugin:
        steps = self

        class Permit(PermitPlugin):
            def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
                return steps._answer(name, said), timeout_s

        Permit.name = name
        return Permit()

    def pre_bind(
        self,
        name: str,
        said: Status | Exception = SUCCESS,
        flight: Status | Exception = SUCCESS,
        **more: Any,
    ) -> PreBindPlugin:
        steps = self

        class PreBind(PreBindPlugin):
            allow_parallel = more.get("parallel", False)

            def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
                if isinstance(flight, Exception):
                    raise flight
                return flight

            def pre_bind(
                self, state: CycleState, pod: Pod, node_name: str
            ) -> Status | Awaitable[Status]:
                return later() if more.get("later") else steps._answer(name, said)

        async def later() -> Status:
            steps.called.append(f"{name} begins")
            await asyncio.sleep(0)
            return steps._answer(name, said)

        PreBind.name = name
        return PreBind()

    def bind(self, name: str, said: Any = SUCCESS, later: bool = False) -> BindPlugin:
        steps = self

        class Bind(BindPlugin):
            def bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
                return steps._answer(name, said)

        class Later(Bind):
            async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
                await asyncio.sleep(0)
                return steps._answer(name, said)

        made = Later if later else Bind
        made.name = name
        return made()

    def post_bind(self, name: str, said: Any = None) -> PostBindPlugin:
        steps = self

        class PostBind(PostBindPlugin):
            def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
                steps._answer(name, said)

        PostBind.name = name
        return PostBind()


def committing(
    reserve: Any = (), permit: Any = (), pre_bind: Any = (), bind: Any = (), post_bind: Any = ()
) -> Committing:
    return Committing(reserve, permit, pre_bind, bind, post_bind)


def settle(answer: Status | Awaitable[Status]) -> Status:
    """The status, awaited when it has to be."""
    if isinstance(answer, Status):
        return answer

    async def wait_for() -> Status:
        return await answer

    return asyncio.run(wait_for())


# Reserve


def test_reserve_runs_in_order() -> None:
    steps = Steps()
    plugins = [steps.reserve("A"), steps.reserve("B")]

    assert committing(reserve=plugins).run_reserve(STATE, POD, "a").is_success
    assert steps.called == ["A", "B"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(
            unschedulable("no"), Status(Code.Unschedulable, ("no",), "B"), id="a refusal as it is"
        ),
        pytest.param(pending("later"), Status(Code.Pending, ("later",), "B"), id="pending"),
        pytest.param(
            failure("broken"),
            Status(Code.Error, ('running Reserve plugin "B": broken',), "B"),
            id="an error in the plugin's name",
        ),
        pytest.param(
            SKIP,
            Status(Code.Error, ('running Reserve plugin "B": ',), "B"),
            id="skip means nothing",
        ),
    ],
)
def test_reserve_stops_at_the_first_failure(said: Status, expected: Status) -> None:
    steps = Steps()
    plugins = [steps.reserve("A"), steps.reserve("B", said), steps.reserve("C")]

    assert committing(reserve=plugins).run_reserve(STATE, POD, "a") == expected
    assert steps.called == ["A", "B"]


def test_reserve_that_raises_is_named() -> None:
    plugins = [Steps().reserve("A", BOOM)]

    with pytest.raises(PluginRunError) as failed:
        committing(reserve=plugins).run_reserve(STATE, POD, "a")

    assert failed.value.status == Status(Code.Error, ('running Reserve plugin "A": boom',), "A")


def test_unreserve_runs_all_in_reverse_also_those_that_never_reserved() -> None:
    steps = Steps()
    run = committing(
        reserve=[steps.reserve("A"), steps.reserve("B", unschedulable()), steps.reserve("C")]
    )

    run.run_reserve(STATE, POD, "a")
    run.run_unreserve(STATE, POD, "a")

    assert steps.called == ["A", "B", "un-C", "un-B", "un-A"]


def test_one_unreserve_that_raises_does_not_stop_the_others() -> None:
    steps = Steps()
    plugins = [steps.reserve("A"), steps.reserve("B", undo=BOOM), steps.reserve("C", undo=BOOM)]

    failures = committing(reserve=plugins).run_unreserve(STATE, POD, "a")

    assert steps.called == ["un-C", "un-B", "un-A"]
    assert [str(one) for one in failures] == [
        'running Unreserve plugin "C": boom',
        'running Unreserve plugin "B": boom',
    ]


# Permit

WAITING = "one or more plugins asked to wait and no plugin rejected pod"


@pytest.mark.parametrize(
    ("said", "expected", "timeouts", "called"),
    [
        pytest.param([SUCCESS, SUCCESS], SUCCESS, {}, "AB", id="all let it go"),
        pytest.param(
            [unresolvable("no"), SUCCESS],
            Status(Code.UnschedulableAndUnresolvable, ("no",), "A"),
            {},
            "A",
            id="a refusal stops",
        ),
        pytest.param(
            [wait(), SUCCESS], Status(Code.Wait, (WAITING,)), {"A": 30}, "AB", id="one waits"
        ),
        pytest.param(
            [wait("quorum"), wait()],
            Status(Code.Wait, ("quorum", WAITING)),
            {"A": 30, "B": 30},
            "AB",
            id="both wait",
        ),
        pytest.param(
            [wait(), unschedulable("no")],
            Status(Code.Unschedulable, ("no",), "B"),
            {},
            "AB",
            id="a refusal after a wait wins",
        ),
        pytest.param(
            [failure("broken"), SUCCESS],
            Status(Code.Error, ('running Permit plugin "A": broken',), "A"),
            {},
            "A",
            id="an error stops",
        ),
    ],
)
def test_permit(
    said: list[Status], expected: Status, timeouts: dict[str, float], called: str
) -> None:
    steps = Steps()
    plugins = [steps.permit(name, one, 30) for name, one in zip("AB", said, strict=True)]

    found = committing(permit=plugins).run_permit(STATE, POD, "a")

    assert found == (expected, timeouts)
    assert "".join(steps.called) == called


def test_permit_waits_fifteen_minutes_at_most() -> None:
    steps = Steps()
    plugins = [steps.permit("A", wait(), 7200), steps.permit("B", wait(), 899)]

    _, timeouts = committing(permit=plugins).run_permit(STATE, POD, "a")

    assert timeouts == {"A": 900, "B": 899}


def test_permit_that_raises_is_named() -> None:
    with pytest.raises(PluginRunError, match='running Permit plugin "A": boom'):
        committing(permit=[Steps().permit("A", BOOM)]).run_permit(STATE, POD, "a")


# PreBind


@pytest.mark.parametrize(
    ("flights", "expected", "skipped"),
    [
        pytest.param([], SKIP, set(), id="no plugin has anything to do"),
        pytest.param([SKIP, SKIP], SKIP, {"A", "B"}, id="all skip"),
        pytest.param([SKIP, SUCCESS], SUCCESS, {"A"}, id="one has work"),
        pytest.param(
            [failure("broken"), SUCCESS],
            Status(Code.Error, ('running PreBindPreFlight "A": broken',), "A"),
            set(),
            id="an error",
        ),
        pytest.param(
            [BOOM, SUCCESS],
            Status(Code.Error, ('running PreBindPreFlight "A": boom',), "A"),
            set(),
            id="it raises",
        ),
        pytest.param(
            [unschedulable("no"), SUCCESS],
            Status(
                Code.Error,
                (
                    'PreBindPreFlight A returned "Unschedulable", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status",
                ),
                "A",
            ),
            set(),
            id="a refusal has no place here",
        ),
    ],
)
def test_pre_flight(flights: list[Any], expected: Status, skipped: set[str]) -> None:
    steps = Steps()
    plugins = [steps.pre_bind(n, flight=f) for n, f in zip("AB", flights, strict=False)]

    assert committing(pre_bind=plugins).run_pre_flight(STATE, POD, "a") == (expected, skipped)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(SUCCESS, SUCCESS, id="success"),
        pytest.param(
            unschedulable("no"), Status(Code.Unschedulable, ("no",), "B"), id="a refusal as it is"
        ),
        pytest.param(
            failure("broken"),
            Status(Code.Error, ('running PreBind plugin "B": broken',), "B"),
            id="an error",
        ),
        pytest.param(
            BOOM, Status(Code.Error, ('running PreBind plugin "B": boom',), "B"), id="it raises"
        ),
    ],
)
def test_pre_bind_runs_in_order_until_one_fails(later: bool, said: Any, expected: Status) -> None:
    steps = Steps()
    plugins = [steps.pre_bind("A"), steps.pre_bind("B", said, later=later), steps.pre_bind("C")]

    status = settle(committing(pre_bind=plugins).run_pre_bind(STATE, POD, "a", set()))

    assert status == expected
    called = [step for step in steps.called if not step.endswith("begins")]
    assert called == (["A", "B", "C"] if expected.is_success else ["A", "B"])


def test_pre_bind_leaves_out_the_skipped() -> None:
    steps = Steps()
    plugins = [steps.pre_bind("A"), steps.pre_bind("B", BOOM)]

    assert settle(committing(pre_bind=plugins).run_pre_bind(STATE, POD, "a", {"B"})).is_success
    assert steps.called == ["A"]


def test_pre_bind_of_neighbours_that_allow_it_runs_together() -> None:
    steps = Steps()
    plugins = [
        steps.pre_bind("A", later=True, parallel=True),
        steps.pre_bind("B", later=True, parallel=True),
        steps.pre_bind("C", later=True),
    ]

    assert settle(committing(pre_bind=plugins).run_pre_bind(STATE, POD, "a", set())).is_success
    assert steps.called == ["A begins", "B begins", "A", "B", "C begins", "C"]


def test_pre_bind_of_one_that_does_not_allow_it_parts_the_others_even_skipped() -> None:
    steps = Steps()
    plugins = [
        steps.pre_bind("A", later=True, parallel=True),
        steps.pre_bind("B"),
        steps.pre_bind("C", later=True, parallel=True),
    ]

    assert settle(committing(pre_bind=plugins).run_pre_bind(STATE, POD, "a", {"B"})).is_success
    assert steps.called == ["A begins", "A", "C begins", "C"]


# Bind


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("said", "expected", "called"),
    [
        pytest.param([SUCCESS, SUCCESS], SUCCESS, "A", id="the first binds"),
        pytest.param([SKIP, SUCCESS], SUCCESS, "AB", id="the first leaves it to the second"),
        pytest.param([SKIP, SKIP], SKIP, "AB", id="no plugin binds"),
        pytest.param(
            [unschedulable("no"), SUCCESS],
            Status(Code.Unschedulable, ("no",), "A"),
            "A",
            id="a refusal decides",
        ),
        pytest.param(
            [SKIP, failure("broken")],
            Status(Code.Error, ('running Bind plugin "B": broken',), "B"),
            "AB",
            id="an error decides",
        ),
        pytest.param(
            [BOOM, SUCCESS],
            Status(Code.Error, ('running Bind plugin "A": boom',), "A"),
            "A",
            id="it raises",
        ),
    ],
)
def test_bind(later: bool, said: list[Any], expected: Status, called: str) -> None:
    steps = Steps()
    plugins = [steps.bind(name, one, later) for name, one in zip("AB", said, strict=True)]

    assert settle(committing(bind=plugins).run_bind(STATE, POD, "a")) == expected
    assert "".join(steps.called) == called


def test_post_bind_tells_everyone_whatever_they_raise() -> None:
    steps = Steps()
    plugins = [steps.post_bind("A", BOOM), steps.post_bind("B")]

    failures = committing(post_bind=plugins).run_post_bind(STATE, POD, "a")

    assert steps.called == ["A", "B"]
    assert [str(one) for one in failures] == ['running PostBind plugin "A": boom']


class WhileThereIsAClass(ReservePlugin):
    """Reserves while there is a device class."""

    name = "WhileThereIsAClass"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def cluster_key(self, table: NodeTable) -> int:
        return self.handle.lister.version_of("DeviceClass")

    def settled(self, spec: PodSpec) -> Settled:
        return Settled(commits=bool(self.handle.lister.list("DeviceClass")))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass


def test_who_commits_is_asked_again_when_what_it_depends_on_changed() -> None:
    lister = ObjectLister([make_object("Service", "s")])
    handle = Handle(NodeTable(), lister=lister)
    run = Committing([WhileThereIsAClass(handle)], (), (), (), (), handle)
    before = run.plan(POD.spec)

    lister.add(make_object("Service", "other"))
    assert run.plan(POD.spec) is before
    lister.add(make_object("DeviceClass", "gpu"))

    assert (before.is_idle, run.plan(POD.spec).is_idle) == (True, False)
