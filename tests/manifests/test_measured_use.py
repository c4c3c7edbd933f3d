"""Measured use: a PodMetricsList, the JSON of Prometheus and CSV give the highest use of pods."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import InputError
from bayplan.manifests.measured_use import read_use

LABELS = {"namespace": "shop", "pod": "web"}


def series(container: str, *values: float, **labels: str) -> dict[str, Any]:
    metric = {**LABELS, "container": container, **labels}
    return {"metric": metric, "values": [[i, str(value)] for i, value in enumerate(values)]}


def matrix(*found: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}})


METRICS_SERVER = (
    '{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[{"metadata":{"name":"web",'
    '"namespace":"shop","creationTimestamp":"2026-01-01T00:00:15Z","labels":{"app":"web"}},"timestamp":'
    '"2026-01-01T00:00:03Z","window":"15.27s","containers":[{"name":"a","usage":{"cpu":"259106n","memory":"650528Ki"'
    '}},{"name":"b","usage":{"cpu":"0","memory":"1032Ki"}}]}]}'
)
"""As metrics-server writes it."""
PODS = json.dumps(
    {
        "kind": "PodMetricsList",
        "items": [
            {
                "metadata": {"namespace": "shop", "name": "web"},
                "containers": [
                    {"name": "a", "usage": {"cpu": "250m", "memory": "64Mi"}},
                    {"name": "b", "usage": {"cpu": "50m", "memory": "32Mi"}},
                ],
            }
        ],
    }
)


def read(folder: Path, text: str, prefix: str = "") -> Any:
    file = folder / "use"
    file.write_text(text)
    return read_use([f"{prefix}{file}"])


@pytest.mark.parametrize(
    ("text", "prefix", "expected"),
    [
        pytest.param(
            METRICS_SERVER, "", {"cpu": 1, "memory": 651560 << 10}, id="of metrics-server"
        ),
        pytest.param(PODS, "", {"cpu": 300, "memory": 96 << 20}, id="metrics.k8s.io"),
        pytest.param(
            matrix(series("a", 0.1, 0.4), series("b", 0.3, 0.1), series("", 9), series("POD", 9)),
            "cpu=",
            {"cpu": 500},
            id="the containers of a pod at one moment",
        ),
        pytest.param(
            matrix(series("", 5e6, 7e6, __name__="container_memory_working_set_bytes")),
            "",
            {"memory": 7_000_000},
            id="a pod as a whole, by the name of the metric",
        ),
        pytest.param(
            "namespace,pod,cpu,memory\nshop,web,100m,1Gi\nshop,web,300m,\n",
            "",
            {"cpu": 300, "memory": 1 << 30},
            id="CSV",
        ),
    ],
)
def test_the_highest_use_of_a_pod(
    tmp_path: Path, text: str, prefix: str, expected: dict[str, int]
) -> None:
    use = read(tmp_path, text, prefix)

    assert use.of_pod("shop", "web") == expected
    assert use.of_pod("shop", "other") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("{", "got malformed JSON", id="no JSON"),
        pytest.param('{"kind": "Pod"}', "got another document", id="another object"),
        pytest.param(matrix(series("a", 1)), "give it as --usage cpu=FILE", id="no resource"),
        pytest.param("pod,cpu\nweb,1\n", "CSV with the columns", id="a column is missing"),
        pytest.param("namespace,pod,gpu\na,b,1\n", "got namespace, pod, gpu", id="another column"),
        pytest.param("namespace,pod,cpu\na,b,x\n", "line 2: expected quantities", id="no amount"),
        pytest.param("namespace,pod,cpu\n", "got none in", id="nothing"),
    ],
)
def test_wrong_files_are_refused_with_their_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)
