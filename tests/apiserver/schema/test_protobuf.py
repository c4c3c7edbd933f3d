"""Protobuf: objects as Go clients send them, encoded by hand."""

from typing import Any

import pytest

from bayplan.apiserver.schema.protobuf import MAGIC, ProtobufError, decode_object
from bayplan.apiserver.web.openapi import _message, _text, _varint


def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & (1 << 64) - 1)


def sent(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + _message(1, _text(1, api_version) + _text(2, kind)) + _message(2, raw)


METADATA = _message(1, _text(1, "web") + _message(11, _text(1, "app") + _text(2, "web")))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            sent("v1", "Namespace", METADATA + _message(2, b"")),
            {"metadata": {"name": "web", "labels": {"app": "web"}}},
            id="labels, and an empty spec",
        ),
        pytest.param(
            sent("apps/v1", "Deployment", _message(2, number(1, 0))),
            {"spec": {"replicas": 0}},
            id="zero replicas are not absent",
        ),
        pytest.param(
            sent("v1", "Pod", _message(2, _text(10, "node-1") + number(11, 0))),
            {"spec": {"nodeName": "node-1"}},
            id="a false that is always written",
        ),
        pytest.param(
            sent(
                "v1", "Pod", _message(2, _message(1, _text(1, "v") + _message(2, _message(2, b""))))
            ),
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            id="the source of a volume is inlined",
        ),
        pytest.param(
            sent("v1", "DeleteOptions", number(1, 5) + _message(2, _text(1, "some-uid"))),
            {"gracePeriodSeconds": 5, "preconditions": {"uid": "some-uid"}},
            id="options",
        ),
        pytest.param(
            sent(
                "coordination.k8s.io/v1",
                "Lease",
                _message(2, _message(4, number(1, 1) + number(2, 5000))),
            ),
            {"spec": {"renewTime": "1970-01-01T00:00:01.000005Z"}},
            id="a moment to the microsecond",
        ),
        pytest.param(
            sent("v1", "Pod", _message(2, number(25, -7))),
            {"spec": {"priority": -7}},
            id="a negative number",
        ),
    ],
)
def test_decode(data: bytes, expected: dict[str, Any]) -> None:
    tree = decode_object(data)

    assert {key: tree[key] for key in tree if key not in ("kind", "apiVersion")} == expected


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{}", id="JSON"),
        pytest.param(sent("v1", "Thing", b""), id="unknown kind"),
        pytest.param(sent("v1", "Pod", METADATA[:-3]), id="cut off"),
        pytest.param(sent("v1", "Pod", b"\xff"), id="a number without end"),
        pytest.param(sent("v1", "Pod", b"\x0b"), id="unknown form"),
    ],
)
def test_refused(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_object(data)
