"""Pending pods on the page: grouped as on the command line, and filtered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .chromium import Tab
from .conftest import write
from .test_address import fragment
from .test_page import ROW, choose, ssd_node, web_pod

Open = Callable[..., Tab]


def owned(name: str, number: int, cpu: str, namespace: str = "shop") -> list[dict[str, Any]]:
    """Pods of a Deployment."""
    template = {"pod-template-hash": "5d4f", "app": name}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-5d4f", "uid": name}
    more: dict[str, Any] = {"labels": template, "namespace": namespace}
    more |= {"ownerReferences": [{**owner, "controller": True}]}
    return [web_pod(f"{name}-5d4f-{i}", cpu, **more) for i in range(number)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two full Deployments, and pods without an owner in two namespaces."""
    selecting: dict[str, Any] = web_pod("picky", namespace="lab")
    selecting["spec"]["nodeSelector"] = {"disk": "tape"}
    bare = [web_pod(f"big-{i}", "9", namespace="lab") for i in range(30)]
    objects = [ssd_node("a"), *owned("web", 5, "1500m"), *owned("api", 3, "8"), *bare, selecting]
    return write(tmp_path_factory.mktemp("waiting") / "report.html", *objects)


def names(tab: Tab) -> list[str]:
    return tab.texts(f"{ROW} .name")


def test_pods_of_a_workload_that_wait_for_the_same_are_one_row(open_page: Open, page: Path) -> None:
    tab = open_page(page)

    assert names(tab) == ["web", "api", "big-0 and 29 more", "picky"]
    assert tab.texts(f"{ROW} .state") == ["3 of 5 pods", "3 of 3 pods", "30 pods", "unschedulable"]
    assert tab.text(f"{ROW} .why") == "Insufficient cpu on 1 node"


def test_pods_without_an_owner_are_rows_by_devices(open_page: Open, tmp_path: Path) -> None:
    pods = [web_pod(f"p-{i}", "9") for i in range(9)]
    for i, pod in enumerate(pods[3:]):
        pod["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": str(1 + i % 2)}

    tab = open_page(write(tmp_path / "report.html", ssd_node("a"), *pods))

    assert names(tab) == ["p-0 and 2 more", "p-3 and 2 more", "p-4 and 2 more"]
    assert [why.partition(" · ")[0] for why in tab.texts(f"{ROW} .why")][1:] == ["gpu 1", "gpu 2"]


def test_a_group_opens_and_closes_by_keyboard(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    tab.run("document.getElementById('list').focus()")

    tab.press("ArrowDown", "Enter")
    opened = names(tab)
    tab.press("ArrowDown", "Enter")
    pod = tab.text("#details h2")
    tab.press("Escape", "ArrowUp", "Enter")

    assert opened[:5] == ["web", "api", "api-5d4f-0", "api-5d4f-1", "api-5d4f-2"]
    assert pod == "api-5d4f-0"
    assert names(tab)[:3] == ["web", "api", "big-0 and 29 more"]


@pytest.mark.parametrize(
    ("control", "value", "expected"),
    [
        pytest.param("filter-namespace", "lab", ["big-0 and 29 more", "picky"], id="a namespace"),
        pytest.param("filter-label", "app=api", ["api"], id="a label with its value"),
        pytest.param("filter-label", "app", ["web", "api"], id="a label with any value"),
        pytest.param(
            "filter-reason",
            "node(s) didn't match Pod's node affinity/selector",
            ["picky"],
            id="a reason",
        ),
    ],
)
def test_the_list_is_filtered_by(
    open_page: Open, page: Path, control: str, value: str, expected: list[str]
) -> None:
    tab = open_page(page)
    tab.run(f"document.getElementById('{control}').focus()")

    choose(tab, control, repr(value))
    filtered, fields = names(tab), fragment(tab)
    offered = tab.run("document.getElementById('filter-namespace').length")
    tab.click("#filter-clear")

    assert filtered == expected
    assert offered == 3, "all, and two namespaces"
    assert list(fields.values()) == [value]
    assert len(names(tab)) == 4


def test_a_filter_that_matches_nothing_says_so(open_page: Open, page: Path) -> None:
    tab = open_page(page.as_uri() + "#label=no=where")

    assert tab.text("#no-rows").startswith("No pod matches")
