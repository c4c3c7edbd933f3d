"""Pod resources: requests and limits per pod, as in kube-scheduler's /metrics/resources."""

from typing import Any

import pytest

from bayplan.testing.builders import make_pod
from bayplan.web.scheduler_routes import render_pod_resources


def amounts(text: str, metric: str) -> dict[str, str]:
    """Resource and unit to amount, of one metric."""
    found = {}
    for line in text.splitlines():
        if line.startswith(f"kube_pod_resource_{metric}{{"):
            labels, _, amount = line.rpartition(" ")
            resource, unit = labels.split('resource="')[1].removesuffix('"}').split('",unit="')
            found[f"{resource} {unit}".strip()] = amount
    return found


def container(name: str, limits: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": limits, "requests": limits}, **more}


@pytest.mark.parametrize(
    ("spec", "requests", "limits"),
    [
        pytest.param({}, {}, {}, id="no requests, no lines"),
        pytest.param(
            {"containers": [container("a", {"cpu": "100m"}), container("b", {"cpu": "1"})]},
            {"cpu cores": "1.1"},
            {"cpu cores": "1.1"},
            id="containers add up",
        ),
        pytest.param(
            {
                "containers": [container("a", {"memory": "1Ki"})],
                "initContainers": [container("i", {"memory": "2Ki"})],
            },
            {"memory bytes": "2048"},
            {"memory bytes": "2048"},
            id="an init container may need more",
        ),
        pytest.param(
            {
                "containers": [container("a", {"cpu": "1"})],
                "initContainers": [container("s", {"cpu": "2"}, restartPolicy="Always")],
            },
            {"cpu cores": "3"},
            {"cpu cores": "3"},
            id="a sidecar keeps running",
        ),
        pytest.param(
            {
                "containers": [container("a", {"cpu": "1"})],
                "overhead": {"cpu": "250m", "memory": "1Ki"},
            },
            {"cpu cores": "1.25", "memory bytes": "1024"},
            {"cpu cores": "1.25"},
            id="overhead raises a limit, but makes none",
        ),
        pytest.param(
            {
                "containers": [container("a", {"cpu": "1", "example.com/gpu": "2"})],
                "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
            },
            {"cpu cores": "3", "example.com/gpu": "2"},
            {"cpu cores": "4", "example.com/gpu": "2"},
            id="pod-level requests take precedence",
        ),
        pytest.param(
            {
                "containers": [
                    container("a", {"hugepages-2Mi": "4Mi", "attachable-volumes-csi": "1"})
                ]
            },
            {"attachable-volumes-csi integer": "1", "hugepages-2Mi bytes": "4194304"},
            {"attachable-volumes-csi integer": "1", "hugepages-2Mi bytes": "4194304"},
            id="units by name",
        ),
    ],
)
def test_amounts(spec: dict[str, Any], requests: dict[str, str], limits: dict[str, str]) -> None:
    text = render_pod_resources([make_pod("a", spec=spec)])

    assert amounts(text, "request") == requests
    assert amounts(text, "limit") == limits


def test_a_pod_that_ended_on_its_node_is_left_out() -> None:
    ended = make_pod("b", cpu="1", node_name="n", status={"phase": "Failed"})
    waiting = make_pod("c", cpu="1", status={"phase": "Failed"})

    text = render_pod_resources([ended, waiting])

    assert 'pod="b"' not in text
    assert 'pod="c"' in text


def test_labels_are_escaped() -> None:
    pod = make_pod("a", cpu="1", spec={"schedulerName": 'x"} 1\n\\'})

    assert 'scheduler="x\\"} 1\\n\\\\"' in render_pod_resources([pod])
