"""DefaultBinder: bind the pod through the cluster's API.

Mirrors pkg/scheduler/framework/plugins/defaultbinder/default_binder.go.
"""

from ..api.pod import Pod
from ..errors import ApiError
from ..framework import SUCCESS, BindPlugin, CycleState, Status, failure


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        try:
            self.handle.client.bind(pod, node_name)
        except ApiError as error:
            return failure(error)
        return SUCCESS
