"""DefaultBinder: bind the pod through the cluster's API.

Mirrors pkg/scheduler/framework/plugins/defaultbinder/default_binder.go.
"""

from collections.abc import Awaitable

from ..api.pod import Pod
from ..errors import ApiError
from ..framework import SUCCESS, BindPlugin, CycleState, Status, failure


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        try:
            answer = self.handle.client.bind(pod, node_name)
        except ApiError as error:
            return failure(error)
        return SUCCESS if answer is None else _later(answer)


async def _later(answer: Awaitable[None]) -> Status:
    try:
        await answer
    except ApiError as error:
        return failure(error)
    return SUCCESS
