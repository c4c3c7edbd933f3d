"""ImageLocality: images that need not be pulled."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import CycleState
from bayplan.plugins.image_locality import ImageLocality, normalized_name
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance, check_rows_agree

MIB = 1024 * 1024
APP = "app:v1"


def cluster(size: int, with_image: int, without: int = 0, image: str = APP) -> NodeTable:
    """A table whose first nodes have an image of `size` MiB."""
    having = [make_node(f"h{i}", images={image: size * MIB}) for i in range(with_image)]
    return make_table(*having, *(make_node(f"n{i}") for i in range(without)))


def scores(pod: Pod, table: NodeTable) -> list[int]:
    plugin = ImageLocality.from_args(None, make_handle(table))
    check_rows_agree(plugin, pod, table)
    found = plugin.score_rows(CycleState(), pod, table, ALL)
    assert plugin.normalize(found) is found  # scores are final
    points: list[int] = found.tolist()
    return points


def containers(count: int) -> Pod:
    """A pod with `count` containers, the first of which uses the image."""
    return make_pod(images=[APP] + ["other"] * (count - 1))


@pytest.mark.parametrize(
    ("pod", "table", "expected"),
    [
        pytest.param(containers(1), cluster(500, 1, 1), [23, 0], id="500MiB on one of two nodes"),
        pytest.param(containers(1), cluster(1000, 2), [100, 100], id="1000MiB on all nodes"),
        pytest.param(
            containers(2),
            cluster(300, 3, 7),
            [3] * 3 + [0] * 7,
            id="300MiB on 3 of 10, two containers",
        ),
        pytest.param(containers(1), cluster(20, 1), [0], id="too small to matter"),
        pytest.param(containers(1), cluster(23, 1), [0], id="just the lower threshold"),
        pytest.param(containers(1), cluster(32, 1), [0], id="not one percent above it"),
        pytest.param(containers(1), cluster(33, 1), [1], id="one percent above it"),
        pytest.param(containers(1), cluster(5000, 1), [100], id="above the upper threshold"),
        pytest.param(containers(4), cluster(2000, 1), [49], id="the upper one grows by container"),
        pytest.param(make_pod(images=["none:v1"]), cluster(500, 1, 1), [0, 0], id="no node has it"),
        pytest.param(
            make_pod(images=[APP, APP]), cluster(500, 1), [49], id="two containers of one image"
        ),
    ],
)
def test_score(pod: Pod, table: NodeTable, expected: list[int]) -> None:
    assert scores(pod, table) == expected


def test_images_on_one_node_add_up() -> None:
    both = make_node("both", images={"a:1": 400 * MIB, "b:1": 200 * MIB})
    table = make_table(both, make_node("one", images={"a:1": 400 * MIB}))

    # 400MiB on every node and 200MiB on half of them: 500MiB and 400MiB, of 23MiB to 2000MiB
    assert scores(make_pod(images=["a:1", "b:1"]), table) == [24, 19]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"initContainers": [{"name": "i", "image": APP}]}, 24, id="an init container"),
        pytest.param(
            {"volumes": [{"name": "v", "image": {"reference": APP}}]},
            48,
            id="an image volume counts, but raises no threshold",
        ),
    ],
)
def test_what_else_has_images(spec: dict[str, Any], expected: int) -> None:
    assert scores(make_pod(spec=spec), cluster(500, 1)) == [expected]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        pytest.param("nginx", "nginx:latest", id="no tag"),
        pytest.param("nginx:1.27", "nginx:1.27", id="a tag"),
        pytest.param("registry:5000/nginx", "registry:5000/nginx:latest", id="a port is no tag"),
        pytest.param("registry:5000/nginx:1", "registry:5000/nginx:1", id="a port and a tag"),
        pytest.param("nginx@sha256:ab", "nginx@sha256:ab", id="a digest"),
        pytest.param("", ":latest", id="no image at all"),
    ],
)
def test_normalized_name(image: str, name: str) -> None:
    assert normalized_name(image) == name


@pytest.mark.parametrize(
    ("wanted", "on_node", "found"),
    [
        pytest.param("nginx", "nginx:latest", True, id="no tag is latest"),
        pytest.param("nginx", "nginx", False, id="the node's name is taken as it is"),
        pytest.param("nginx:v1", "nginx:v2", False, id="another tag"),
    ],
)
def test_names_of_pod_and_node(wanted: str, on_node: str, found: bool) -> None:
    score = scores(make_pod(images=[wanted]), cluster(500, 1, image=on_node))[0]

    assert (score > 0) is found


def test_conformance() -> None:
    pods = [containers(1), containers(2), make_pod("r", images=["nginx"])]
    table = make_table(
        make_node("a", images={APP: 500 * MIB, "nginx:latest": 90 * MIB}),
        make_node("b", images={APP: 500 * MIB}),
        make_node("c"),
    )

    check_conformance(ImageLocality, pods, table)
