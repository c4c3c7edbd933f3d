"""DefaultBinder: binding goes through the cluster."""

import pytest

from bayplan.api.pod import Pod
from bayplan.errors import ApiError, ConflictError
from bayplan.framework import SUCCESS, Code, CycleState, Status
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.testing.builders import RecordingClient, make_handle, make_pod


class RefusingClient(RecordingClient):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def bind(self, pod: Pod, node_name: str) -> None:
        raise self.error


def test_bind_asks_the_cluster() -> None:
    handle = make_handle()

    status = DefaultBinder.from_args(None, handle).bind(CycleState(), make_pod("p"), "a")

    assert status == SUCCESS
    assert isinstance(handle.client, RecordingClient)
    assert handle.client.bound == [("default/p", "a")]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError("the server is away"), id="any refusal"),
        pytest.param(ConflictError("pod p is already assigned"), id="a conflict"),
    ],
)
def test_a_refusal_of_the_cluster_is_an_error_status(error: ApiError) -> None:
    handle = make_handle()
    handle.client = RefusingClient(error)

    status = DefaultBinder.from_args(None, handle).bind(CycleState(), make_pod("p"), "a")

    assert isinstance(status, Status)
    assert status.code is Code.Error
    assert status.error is error
    assert status.message == str(error)


def test_a_mistake_of_ours_is_not_hidden() -> None:
    handle = make_handle()
    handle.client = RefusingClient(TypeError("broken"))

    with pytest.raises(TypeError, match="broken"):
        DefaultBinder.from_args(None, handle).bind(CycleState(), make_pod("p"), "a")
