"""Invalid input: the server rejects anything clients send in Kubernetes' form and continues."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rig.api_server import PODS, ServerInThread, api_server, bind_tree, workload_tree
from tests.rig.random_examples import examples
from tests.rig.trees import pod_tree

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "5%", "x y"])
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "$patch", "a"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def api() -> Iterator[ServerInThread]:
    with api_server() as server:
        server.make(PODS, pod_tree("web"))
        server.make(DEPLOYMENTS, workload_tree("Deployment", "web", 1))
        server.settle()
        yield server


def paths(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every place in a tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield (*above, key)
        yield from paths(tree[key], (*above, key))


def put_at(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = put_at(copy[path[0]], path[1:], value)
    return copy


WHOLE = {
    PODS: {
        **pod_tree("odd", nodeName="a", tolerations=[{"key": "a"}], volumes=[{"name": "v"}]),
        "metadata": {"name": "odd", "labels": {"a": "b"}, "ownerReferences": [{"uid": "x"}]},
    },
    DEPLOYMENTS: workload_tree("Deployment", "odd", 1, strategy={"rollingUpdate": {}}),
    f"{PODS}/web/binding": bind_tree("web", "a"),
    f"{PODS}/web/eviction": {"metadata": {"name": "web"}, "deleteOptions": {"preconditions": {}}},
    "/api/v1/namespaces/default/services": {
        "metadata": {"name": "odd"},
        "spec": {"ports": [{"port": 80}], "type": "ClusterIP"},
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {
        "metadata": {"name": "odd"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "minAvailable": "10%"},
    },
}
PLACES = [(url, path) for url, tree in WHOLE.items() for path in paths(tree)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
@given(st.sampled_from(PLACES), TREES)
def test_objects(api: ServerInThread, place: tuple[str, tuple[Any, ...]], value: Any) -> None:
    url, path = place

    answer = api.post(f"{url}?dryRun=All", put_at(WHOLE[url], path, value))
    api.settle()

    assert answer.status != 500, answer.tree


PATCHED = [
    f"{PODS}/web",
    f"{PODS}/web/status",
    f"{DEPLOYMENTS}/web",
    f"{DEPLOYMENTS}/web/scale",
]
FIELDS = st.sampled_from(
    ["metadata", "spec", "status", "labels", "containers", "finalizers", "replicas", "conditions"]
)
PATCHES = st.dictionaries(FIELDS, TREES | st.dictionaries(FIELDS, TREES, max_size=2), max_size=2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
@given(
    st.sampled_from(PATCHED),
    st.sampled_from(["merge", "strategic", "apply", "json"]),
    PATCHES | TREES,
)
def test_patches(api: ServerInThread, url: str, kind: str, patch: Any) -> None:
    answer = api.patch(f"{url}?dryRun=All&fieldManager=me&force=true", patch, kind)

    assert answer.status != 500, answer.tree


@given(TREES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_delete_options(api: ServerInThread, options: Any) -> None:
    assert api.delete(f"{PODS}/web?dryRun=All", options).status != 500
