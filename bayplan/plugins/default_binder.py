"""DefaultBinder: bind the pod through the cluster's API.

Mirrors pkg/scheduler/framework/plugins/defaultbinder/default_binder.go.
"""

from collections.abc import Awaitable

from ..api.pod import Pod
from ..framework import BindPlugin, CycleState, Status
from ..framework.handle import outcome_of


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        return outcome_of(self.handle.client.bind, pod, node_name)
