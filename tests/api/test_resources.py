"""Resources: requests and usage of a pod, and the resource names that count."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.pod import Container, Pod, PodSpec, ResourceRequirements, intern_spec
from bayplan.api.resources import (
    DEFAULT_MEMORY_REQUEST,
    allocatable_units,
    is_extended,
    is_native,
    is_scalar,
    non_zero_units,
    pod_amounts,
    scoring_units,
    to_units,
)
from bayplan.testing.builders import make_object

MIB = 2**20


def make_container(name: str = "c", **requests: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


def make_sidecar(name: str = "s", **requests: Any) -> dict[str, Any]:
    return {**make_container(name, **requests), "restartPolicy": "Always"}


def decoded_pod(status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    spec.setdefault("containers", [make_container(cpu="1")])
    pod: Pod = make_object("Pod", "p", spec=spec, status=status or {})
    return pod


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        pytest.param(
            {"containers": [make_container(cpu="250m", memory="64Mi"), make_container(cpu=1)]},
            {"cpu": 1250, "memory": 64 * MIB},
            id="containers add up",
        ),
        pytest.param(
            {"containers": [make_container(cpu="0.5m"), make_container(cpu="500u")]},
            {"cpu": 1},
            id="rounding happens after the sum",
        ),
        pytest.param(
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": "4"}}}]},
            {},
            id="limits are not requests",
        ),
        pytest.param({"containers": [make_container(cpu="0")]}, {}, id="zero is left out"),
        pytest.param(
            {"initContainers": [make_container(cpu="3"), make_container(cpu="2")]},
            {"cpu": 3000},
            id="the largest init container sets the floor",
        ),
        pytest.param(
            {"initContainers": [make_container(cpu="500m", memory="1Gi")]},
            {"cpu": 1000, "memory": 1024 * MIB},
            id="the floor is set per resource",
        ),
        pytest.param(
            {"initContainers": [make_sidecar(cpu="500m")]},
            {"cpu": 1500},
            id="a sidecar keeps running",
        ),
        pytest.param(
            {"initContainers": [make_sidecar(cpu="500m"), make_container(cpu="2")]},
            {"cpu": 2500},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {"initContainers": [make_container(cpu="2"), make_sidecar(cpu="500m")]},
            {"cpu": 2000},
            id="but not beside the sidecars after it",
        ),
        pytest.param(
            {"initContainers": [make_sidecar(cpu="2"), make_sidecar(cpu="3")]},
            {"cpu": 6000},
            id="sidecars add up",
        ),
        pytest.param(
            {"overhead": {"cpu": "100m", "memory": "1Mi"}},
            {"cpu": 1100, "memory": MIB},
            id="overhead comes on top",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}},
            {"cpu": 5000},
            id="requests of the pod replace the sum, then overhead",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "500m"}}},
            {"cpu": 500},
            id="requests of the pod replace a larger sum too",
        ),
        pytest.param(
            {"resources": {"requests": {"example.com/gpu": "1", "hugepages-2Mi": "2Mi"}}},
            {"cpu": 1000, "hugepages-2Mi": 2 * MIB},
            id="only cpu, memory and huge pages may be requested at pod level",
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"example.com/gpu": "2", "foo": "1"}}}]},
            {"example.com/gpu": 2},
            id="names without a meaning are left out",
        ),
    ],
)
def test_requests(spec: dict[str, Any], requests: dict[str, int]) -> None:
    pod = decoded_pod(**spec)

    assert pod.requests == requests
    assert pod.usage is pod.requests
    assert pod.balanced_requests == requests


def test_requests_come_in_a_fixed_order() -> None:
    requests = {"z.io/b": "1", "a.io/b": "1", "memory": "1", "ephemeral-storage": "1", "cpu": "1"}
    pod = decoded_pod(containers=[{"name": "c", "resources": {"requests": requests}}])

    assert list(pod.requests) == ["cpu", "memory", "ephemeral-storage", "a.io/b", "z.io/b"]


@pytest.mark.parametrize(
    ("spec", "scoring", "nonzero"),
    [
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"cpu": 200, "memory": 2 * DEFAULT_MEMORY_REQUEST},
            {"cpu": 200, "memory": 2 * DEFAULT_MEMORY_REQUEST},
            id="each container without a request gets the default",
        ),
        pytest.param(
            {"containers": [make_container(cpu="0"), make_container(memory="1Mi")]},
            {"cpu": 100, "memory": DEFAULT_MEMORY_REQUEST + MIB},
            {"cpu": 100, "memory": DEFAULT_MEMORY_REQUEST + MIB},
            id="an explicit zero stays zero",
        ),
        pytest.param(
            {"containers": [make_container(cpu="0", memory="0")]},
            {},
            {"cpu": 0, "memory": 0},
            id="all explicit zeros",
        ),
        pytest.param(
            {"initContainers": [{"name": "i"}], "containers": [make_container(cpu="50m")]},
            {"cpu": 100, "memory": DEFAULT_MEMORY_REQUEST},
            {"cpu": 100, "memory": DEFAULT_MEMORY_REQUEST},
            id="init containers get the default, too",
        ),
        pytest.param(
            {"containers": [{"name": "a"}], "resources": {"requests": {"cpu": "2"}}},
            {"cpu": 100, "memory": DEFAULT_MEMORY_REQUEST},
            {"cpu": 2000, "memory": DEFAULT_MEMORY_REQUEST},
            id="the incoming pod's own requests are not scored, but counted on its node",
        ),
        pytest.param(
            {
                "containers": [make_container(memory="1Mi"), {"name": "b"}],
                "resources": {"requests": {"cpu": "2"}},
            },
            {"cpu": 200, "memory": DEFAULT_MEMORY_REQUEST + MIB},
            {"cpu": 2000, "memory": MIB},
            id="with pod-level requests, a default applies only where no container has a request",
        ),
        pytest.param(
            {"containers": [{"name": "a"}], "overhead": {"cpu": "10m"}},
            {"cpu": 110, "memory": DEFAULT_MEMORY_REQUEST},
            {"cpu": 110, "memory": DEFAULT_MEMORY_REQUEST},
            id="overhead comes on top",
        ),
    ],
)
def test_non_zero_requests(
    spec: dict[str, Any], scoring: dict[str, int], nonzero: dict[str, int]
) -> None:
    pod = decoded_pod(**spec)

    assert pod.scoring_requests == scoring
    assert pod.nonzero_usage == pod.spec.nonzero_requests == nonzero
    assert pod.scoring_usage == {**pod.requests, **nonzero}


def make_status(name: str = "c", *, actual: str, allocated: str | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {"name": name, "resources": {"requests": {"cpu": actual}}}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": allocated}
    return status


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


@pytest.mark.parametrize(
    ("status", "milli_cpu"),
    [
        pytest.param({"containerStatuses": [make_status(actual="2")]}, 2000, id="shrinking"),
        pytest.param({"containerStatuses": [make_status(actual="500m")]}, 1000, id="growing"),
        pytest.param(
            {"containerStatuses": [make_status(actual="500m", allocated="3")]}, 3000, id="granted"
        ),
        pytest.param(
            {"containerStatuses": [make_status(actual="500m")], "conditions": [INFEASIBLE]},
            500,
            id="an infeasible resize does not count",
        ),
        pytest.param(
            {"containerStatuses": [make_status(actual="500m")], "conditions": [DEFERRED]},
            1000,
            id="a deferred resize counts",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}]},
            1000,
            id="a grant counts only with resources in effect",
        ),
        pytest.param(
            {"containerStatuses": [make_status("other", actual="9")]}, 1000, id="unknown container"
        ),
    ],
)
def test_usage_follows_a_resize(status: dict[str, Any], milli_cpu: int) -> None:
    pod = decoded_pod(status)

    assert pod.usage == {"cpu": milli_cpu}
    assert pod.balanced_requests == {"cpu": milli_cpu}
    assert pod.nonzero_usage == {"cpu": milli_cpu, "memory": DEFAULT_MEMORY_REQUEST}
    assert pod.scoring_usage == pod.nonzero_usage
    assert pod.requests == {"cpu": 1000}


def test_usage_reads_the_status_of_sidecars_only() -> None:
    status = {"initContainerStatuses": [make_status("s", actual="5"), make_status("i", actual="9")]}
    pod = decoded_pod(status, initContainers=[make_sidecar(cpu="1"), make_container("i", cpu="1")])

    assert pod.usage == {"cpu": 6000}


def test_usage_reads_the_status_of_the_pod() -> None:
    status = {
        "resources": {"requests": {"cpu": "3"}},
        "allocatedResources": {"cpu": "4"},
    }

    assert decoded_pod(status, resources={"requests": {"cpu": "2"}}).usage == {"cpu": 4000}
    assert decoded_pod(status).usage == {"cpu": 1000}


def test_usage_is_computed_once_for_equal_pods() -> None:
    status = {"containerStatuses": [make_status(actual="2")]}
    first, second = decoded_pod(status), decoded_pod(status)

    assert first.usage is second.usage
    assert first.usage is first.usage


@pytest.mark.parametrize(
    ("name", "native", "extended", "scalar"),
    [
        pytest.param("cpu", True, False, False, id="cpu"),
        pytest.param("foo", True, False, False, id="a bare name is native"),
        pytest.param("example.com/gpu", False, True, True, id="extended"),
        pytest.param("requests.example.com/gpu", False, False, False, id="a quota name"),
        pytest.param("example.com/", False, False, False, id="no name"),
        pytest.param("kubernetes.io/foo", True, False, True, id="prefixed native"),
        pytest.param("x.kubernetes.io/foo", True, False, True, id="below kubernetes.io"),
        pytest.param("hugepages-2Mi", True, False, True, id="huge pages"),
        pytest.param("attachable-volumes-csi-x", True, False, True, id="attachable volumes"),
    ],
)
def test_names(name: str, native: bool, extended: bool, scalar: bool) -> None:
    assert (is_native(name), is_extended(name), is_scalar(name)) == (native, extended, scalar)


def test_allocatable_keeps_what_is_counted() -> None:
    quantities = {"cpu": "3920m", "memory": "1Gi", "pods": "110", "foo": "1", "a.io/b": "0"}

    assert allocatable_units(quantities) == {
        "cpu": 3920,
        "memory": 1024 * MIB,
        "pods": 110,
        "a.io/b": 0,
    }


named = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "1", "250m", "1u"]),
        "memory": st.sampled_from([0, "64Mi", "1500m"]),
        "example.com/gpu": st.integers(0, 2),
    },
)
containers = st.lists(st.builds(lambda requests: make_container(**requests), named), max_size=3)
init_containers = st.lists(
    st.one_of(
        st.builds(lambda requests: make_container(**requests), named),
        st.builds(lambda requests: make_sidecar(**requests), named),
    ),
    max_size=2,
)


@given(containers, init_containers, st.booleans(), st.booleans())
def test_measured_amounts_equal_the_separate_sums(
    running: list[Any], first: list[Any], overhead: bool, as_a_whole: bool
) -> None:
    spec = decoded_pod(
        containers=running,
        initContainers=first,
        overhead={"cpu": "10m"} if overhead else None,
        resources={"requests": {"cpu": "4"}} if as_a_whole else None,
    ).spec

    assert spec.requests == to_units(pod_amounts(spec))
    assert spec.scoring_requests == scoring_units(spec)
    assert spec.nonzero_requests == non_zero_units(spec)
    assert spec.scoring_usage == {**spec.requests, **spec.nonzero_requests}


@given(containers, containers)
def test_specs_with_equal_amounts_have_equal_resource_keys(
    one: list[Any], other: list[Any]
) -> None:
    first, second = decoded_pod(containers=one).spec, decoded_pod(containers=other).spec

    amounts = [(spec.requests, spec.scoring_requests) for spec in (first, second)]
    assert (first.resource_key == second.resource_key) == (amounts[0] == amounts[1])


def test_a_quantity_that_cannot_be_read_is_reported_when_it_is_needed() -> None:
    spec = intern_spec(
        PodSpec(containers=(Container(resources=ResourceRequirements(requests={"cpu": "much"})),))
    )

    with pytest.raises(ValueError, match='"much" is not a quantity'):
        _ = spec.requests
