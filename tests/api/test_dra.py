"""Claims and slices: decoding errors name the field."""

from typing import Any

import pytest

from bayplan.errors import DecodeError
from bayplan.testing.builders import make_object
from bayplan.testing.devices import make_claim, make_device, make_request, make_slice


def claim(**request: Any) -> Any:
    tree = {"devices": {"requests": [{"name": "r", **request}]}}
    return make_object("ResourceClaim", "c", namespace="default", spec=tree)


@pytest.mark.parametrize(
    ("make", "where"),
    [
        pytest.param(
            lambda: claim(), "spec.devices.requests[0]", id="neither exactly nor firstAvailable"
        ),
        pytest.param(
            lambda: claim(exactly={}),
            "spec.devices.requests[0].exactly.deviceClassName",
            id="no class",
        ),
        pytest.param(
            lambda: make_claim("c", make_request(allocationMode="Most")),
            "spec.devices.requests[0].exactly.allocationMode",
            id="an unknown mode",
        ),
        pytest.param(
            lambda: make_claim("c", make_request(count=-1)),
            "spec.devices.requests[0].exactly.count",
            id="a negative count",
        ),
        pytest.param(
            lambda: make_claim("c", make_request(capacity={"requests": {"memory": "much"}})),
            "spec.devices.requests[0].exactly.capacity.requests.memory",
            id="no amount",
        ),
        pytest.param(
            lambda: make_claim("c", constraints=[{}]),
            "spec.devices.constraints[0]",
            id="a constraint without content",
        ),
        pytest.param(
            lambda: make_slice("s", make_device("d", capacity={"memory": "much"}), node="a"),
            "spec.devices[0].capacity[memory].value",
            id="a capacity that is no amount",
        ),
        pytest.param(
            lambda: make_slice("s", make_device("d", v={"version": "1.2"}), node="a"),
            "spec.devices[0].attributes[v].version",
            id="no version",
        ),
        pytest.param(
            lambda: make_slice("s", "d", node="a", allNodes=True), "spec", id="two places"
        ),
        pytest.param(lambda: make_slice("s", "d", driver=""), "spec.driver", id="no driver"),
        pytest.param(
            lambda: make_slice(
                "s",
                make_device(
                    "d",
                    capacity={
                        "m": {
                            "value": "9",
                            "requestPolicy": {"validRange": {"min": "1", "step": "0"}},
                        }
                    },
                ),
            ),
            "spec.devices[0].capacity[m].requestPolicy.validRange.step",
            id="a step of zero",
        ),
    ],
)
def test_errors_name_the_field(make: Any, where: str) -> None:
    with pytest.raises(DecodeError) as caught:
        make()

    assert where in str(caught.value)


def test_claims_with_equal_requests_have_equal_keys() -> None:
    assert make_claim("c").spec.key == make_claim("d").spec.key
    assert make_claim("c").spec.key != make_claim("c", make_request(count=2)).spec.key
