"""CBOR: the bytes that kube-scheduler v1.36.4 answered, from the same trees in the same order of keys."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.web.zpages import encode_cbor

RECORDED = json.loads((Path(__file__).parent / "cbor_answers.json").read_text())


@pytest.mark.parametrize("answer", [pytest.param(one, id=one["tree"]["kind"]) for one in RECORDED])
def test_the_bytes_of_kube_scheduler(answer: dict[str, Any]) -> None:
    assert encode_cbor(answer["tree"]).hex() == answer["hex"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0, "00", id="the least number"),
        pytest.param(23, "17", id="the last number of one byte"),
        pytest.param(24, "1818", id="the first of two"),
        pytest.param(255, "18ff", id="the last of two"),
        pytest.param(256, "190100", id="two more bytes"),
        pytest.param(65536, "1a00010000", id="four"),
        pytest.param(2**32, "1b0000000100000000", id="eight"),
        pytest.param("ü", "42c3bc", id="a text is its bytes"),
        pytest.param([[], {}], "8280a0", id="nothing in them"),
        pytest.param({"b": 1, "a": 2}, "a2416201416102", id="keys in order"),
    ],
)
def test_every_length(value: Any, expected: str) -> None:
    assert encode_cbor(value).hex() == "d9d9f7" + expected


@pytest.mark.parametrize("value", [None, True, -1, 1.5, b"", {1, 2}])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="cbor: expected"):
        encode_cbor({"key": value})
