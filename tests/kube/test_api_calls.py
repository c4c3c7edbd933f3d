"""Metrics of bindings and writes of statuses, which feature gate SchedulerAsyncAPICalls brings."""

import asyncio

from bayplan.api.pod import Pod, PodCondition
from bayplan.errors import ApiError
from bayplan.kube.pod_statuses import BINDING, STATUS_PATCH, ApiCalls, PodStatuses
from bayplan.observe.series import exponential_buckets
from bayplan.testing.builders import make_pod


def test_names_labels_and_buckets_are_those_of_kube_scheduler() -> None:
    calls = ApiCalls(dict)

    assert [(family.name, family.label_names) for family in calls.families] == [
        ("scheduler_async_api_call_execution_total", ("call_type", "result")),
        ("scheduler_async_api_call_execution_duration_seconds", ("call_type", "result")),
        ("scheduler_pending_async_api_calls", ("call_type",)),
    ]
    assert calls.duration.bounds == exponential_buckets(0.001, 2, 15)


def test_a_call_counts_with_its_result() -> None:
    calls = ApiCalls(dict)

    async def go() -> None:
        futures = [asyncio.get_running_loop().create_future() for _ in range(3)]
        calls.count(BINDING, futures[0])
        calls.count(BINDING, futures[1])
        calls.count(STATUS_PATCH, futures[2])
        futures[0].set_result(None)
        futures[1].set_exception(ApiError("no"))
        futures[2].cancel()
        await asyncio.sleep(0)

    asyncio.run(go())

    assert calls.executed.read() == {
        (BINDING, "success"): 1,
        (BINDING, "error"): 1,
        (STATUS_PATCH, "error"): 1,
    }
    assert calls.duration.counts() == calls.executed.read()


def test_what_waits_for_a_running_patch_is_pending() -> None:
    pod = make_pod("p", uid="p")
    condition = PodCondition(type="PodScheduled", status="False")

    async def go() -> list[dict[tuple[str], int]]:
        running: list[asyncio.Future[bytes]] = []

        def send(pod: Pod, patch: bytes) -> asyncio.Future[bytes]:
            running.append(asyncio.get_running_loop().create_future())
            return running[-1]

        statuses = PodStatuses(send, lambda pod: pod, lambda pod, answer: None, lambda: "now")
        seen = [statuses.pending()]
        statuses.write(pod, condition, None)
        seen.append(statuses.pending())
        statuses.write(pod, None, "a")
        seen.append(statuses.pending())
        statuses.bind_after(pod, lambda: None)
        seen.append(statuses.pending())
        running[0].set_result(b"")
        await asyncio.sleep(0)
        return [*seen, statuses.pending()]

    def counts(patches: int, bindings: int) -> dict[tuple[str], int]:
        return {(STATUS_PATCH,): patches, (BINDING,): bindings}

    assert asyncio.run(go()) == [counts(*n) for n in [(0, 0), (0, 0), (1, 0), (0, 1), (0, 0)]]
