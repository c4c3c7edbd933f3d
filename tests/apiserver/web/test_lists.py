"""Lists over HTTP: selectors, pages, versions, and their other forms."""

import pytest

from tests.rig.api_server import PODS, ServerInThread, config_map_tree
from tests.rig.trees import pod_tree

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


def test_a_list_has_a_kind_and_its_items_have_none(api: ServerInThread) -> None:
    made = api.make(MAPS, config_map_tree("b"), config_map_tree("a"))

    tree = api.get(MAPS).tree

    assert (tree["kind"], tree["apiVersion"]) == ("ConfigMapList", "v1")
    assert [item["metadata"]["name"] for item in tree["items"]] == ["a", "b"]
    assert all("kind" not in item for item in tree["items"])
    assert tree["metadata"] == {"resourceVersion": made["metadata"]["resourceVersion"]}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("labelSelector=name%3Da", ["a"], id="by label"),
        pytest.param("labelSelector=name+in+(a,c)", ["a", "c"], id="by a set of labels"),
        pytest.param("fieldSelector=metadata.name!%3Da", ["b", "c"], id="by field"),
        pytest.param("labelSelector=none", [], id="none"),
    ],
)
def test_selectors(api: ServerInThread, query: str, names: list[str]) -> None:
    api.make(MAPS, *(config_map_tree(name) for name in "abc"))

    assert api.get(f"{MAPS}?{query}").names == names
    assert api.get(f"/api/v1/configmaps?{query}").names == names


@pytest.mark.parametrize(
    "query", ["labelSelector=a+b", "fieldSelector=spec.x%3D1", "limit=many", "resourceVersion=x"]
)
def test_invalid_queries(api: ServerInThread, query: str) -> None:
    assert api.get(f"{MAPS}?{query}").status == 400


def test_pages_are_consistent(api: ServerInThread) -> None:
    api.make(MAPS, *(config_map_tree(name) for name in "abcde"))

    first = api.get(f"{MAPS}?limit=2").tree
    api.delete(f"{MAPS}/c")
    api.make(MAPS, config_map_tree("bb"))
    second = api.get(f"{MAPS}?limit=2&continue={first['metadata']['continue']}").tree
    third = api.get(f"{MAPS}?limit=2&continue={second['metadata']['continue']}").tree

    pages = (first, second, third)
    names = [item["metadata"]["name"] for page in pages for item in page["items"]]
    assert names == list("abcde"), "as it was when the first page was read"
    assert [page["metadata"].get("remainingItemCount") for page in pages] == [3, 1, None]
    assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1


def test_a_continue_token_expires(api: ServerInThread) -> None:
    api.make(MAPS, *(config_map_tree(name) for name in "abc"))
    token = api.get(f"{MAPS}?limit=1").tree["metadata"]["continue"]
    api.advance(301)

    answer = api.get(f"{MAPS}?limit=1&continue={token}")

    assert (answer.status, answer.tree["reason"]) == (410, "Expired")
    assert api.get(f"{MAPS}?continue=nonsense").status == 400


def test_versions_from_the_future(api: ServerInThread) -> None:
    answer = api.get(f"{MAPS}?resourceVersion=99999&resourceVersionMatch=NotOlderThan")

    assert answer.status == 504
    assert answer.tree["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert api.get(f"{MAPS}?resourceVersion=0").status == 200
    assert api.get(f"{MAPS}?resourceVersion=1&resourceVersionMatch=Exact").status == 410


def test_tables(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("web"))
    api.advance(90)

    table = api.get(PODS, Accept=TABLE).tree

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = [(c["name"], c["priority"]) for c in table["columnDefinitions"]]
    assert columns[:5] == [("Name", 0), ("Ready", 0), ("Status", 0), ("Restarts", 0), ("Age", 0)]
    assert columns[5:7] == [("IP", 1), ("Node", 1)]
    row = table["rows"][0]
    assert row["cells"] == ["web", "0/1", "Pending", "0", "90s", *["<none>"] * 4]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    whole = api.get(f"{PODS}/web?includeObject=Object", Accept=TABLE).tree
    assert whole["rows"][0]["object"]["kind"] == "Pod"


def test_every_kind_has_a_table(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("web"))
    api.settle()

    for path in ("/api/v1/namespaces", "/api/v1/services", "/api/v1/events", "/api/v1/nodes"):
        table = api.get(path, Accept=TABLE).tree
        width = len(table["columnDefinitions"])
        assert all(len(row["cells"]) == width for row in table["rows"])


def test_metadata_only(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a", x="1"))

    tree = api.get(MAPS, Accept=PARTIAL).tree

    assert tree["kind"] == "PartialObjectMetadataList"
    assert "data" not in tree["items"][0]
    assert tree["items"][0]["metadata"]["name"] == "a"


def test_forms_that_are_not_served(api: ServerInThread) -> None:
    assert api.get(MAPS, Accept="application/vnd.kubernetes.protobuf").status == 406
    both = "application/vnd.kubernetes.protobuf,application/json"
    assert api.get(MAPS, Accept=both).status == 200
