"""Scale: the replicas of a workload, and its selector in query syntax."""

from typing import Any

import pytest

from bayplan.apiserver.registry.resource_table import BY_STORAGE
from bayplan.apiserver.registry.scale import scale_of
from tests.rig.api_server import ServerInThread, workload_tree

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def expressions(*given: tuple[str, str, list[str]]) -> dict[str, Any]:
    listed = [{"key": key, "operator": word, "values": values} for key, word, values in given]
    return {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": listed}


@pytest.mark.parametrize(
    ("storage", "selector", "status"),
    [
        pytest.param(
            "replicationcontrollers",
            {"b": "2", "a": "1"},
            {"replicas": 4, "selector": "a=1,b=2"},
            id="labels",
        ),
        pytest.param("replicationcontrollers", None, {"replicas": 4}, id="no selector"),
        pytest.param(
            "deployments.apps",
            expressions(
                ("tier", "In", ["x", "y"]),
                ("zone", "NotIn", ["z"]),
                ("ready", "Exists", []),
                ("old", "DoesNotExist", []),
            ),
            {"replicas": 4, "selector": "a=1,b=2,!old,ready,tier in (x,y),zone notin (z)"},
            id="expressions",
        ),
    ],
)
def test_the_selector_in_query_syntax(
    storage: str, selector: dict[str, Any] | None, status: dict[str, Any]
) -> None:
    spec = {"replicas": 3, "selector": selector}
    tree = {"metadata": {"name": "x"}, "spec": spec, "status": {"replicas": 4}}

    scale = scale_of(BY_STORAGE[storage], tree)

    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, status)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        pytest.param({"metadata": {"name": "other"}}, 400, id="another name"),
        pytest.param({"spec": {"replicas": "many"}}, 400, id="no number"),
        pytest.param({"spec": {}}, 200, id="no number is zero"),
    ],
)
def test_a_scale_that_is_written(api: ServerInThread, change: dict[str, Any], status: int) -> None:
    api.make(DEPLOYMENTS, workload_tree("Deployment", "web", 2))
    path = f"{DEPLOYMENTS}/web/scale"
    scale = api.get(path).tree

    answer = api.put(path, {**scale, **change})

    assert answer.status == status
    replicas = api.get(f"{DEPLOYMENTS}/web").tree["spec"]["replicas"]
    assert replicas == (0 if status == 200 else 2)
