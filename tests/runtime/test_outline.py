"""Outline: values that do not depend on a spec's amounts are equal for all specs of an outline."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.api.pod import PodSpec
from bayplan.runtime.spec_answers import of_outline
from bayplan.testing.builders import make_pod

SPEC = make_pod("p", cpu="1", memory="1Gi", host_ports=[80]).spec


def cpu(spec: PodSpec) -> Any:
    assert spec.containers is not None
    resources = spec.containers[0].resources
    assert resources is not None
    assert resources.requests is not None
    return resources.requests["cpu"]


def swallowing(spec: PodSpec) -> int:
    try:
        return int(spec.requests["cpu"])
    except Exception:
        return 0


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda spec: spec.requests["cpu"] > 64_000, id="a comparison"),
        pytest.param(lambda spec: bool(spec.requests), id="whether there are amounts"),
        pytest.param(cpu, id="an amount of a container"),
        pytest.param(lambda spec: spec, id="the spec itself"),
        pytest.param(lambda spec: spec.key, id="its bytes"),
        pytest.param(lambda spec: spec.containers, id="the containers"),
        pytest.param(lambda spec: spec.resource_key, id="the key of its amounts"),
        pytest.param(swallowing, id="an amount, with the exception caught"),
        pytest.param(lambda spec: {spec: 1}[spec], id="a cache by spec"),
        pytest.param(lambda spec: spec.missing, id="a mistake"),
    ],
)
def test_reading_amounts_is_noticed(make: Callable[[PodSpec], Any]) -> None:
    assert of_outline(SPEC, make) is None


@pytest.mark.parametrize(
    ("make", "found"),
    [
        pytest.param(lambda spec: spec.requested_names, {"cpu", "memory"}, id="names of resources"),
        pytest.param(lambda spec: tuple(spec.tolerations or ()), (), id="tolerations"),
        pytest.param(lambda spec: len(spec.host_ports), 1, id="host ports"),
        pytest.param(lambda spec: spec.device_resources, (), id="resources of devices"),
        pytest.param(lambda spec: spec.images, SPEC.images, id="images"),
    ],
)
def test_the_rest_can_be_read(make: Callable[[PodSpec], Any], found: Any) -> None:
    assert of_outline(SPEC, make) == found
