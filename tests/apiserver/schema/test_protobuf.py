"""Protobuf: objects as Go clients send them, encoded by hand."""

from typing import Any

import pytest

from bayplan.api.wire.protobuf_fields import ProtobufError
from bayplan.apiserver.schema.protobuf import MAGIC, decode_object
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
        pytest.param(
            sent("v1", "Secret", _message(2, _text(1, "a") + _text(2, "b")) + _text(3, "Opaque")),
            {"data": {"a": "Yg=="}, "type": "Opaque"},
            id="bytes are base64",
        ),
        pytest.param(
            sent("policy/v1", "PodDisruptionBudget", _message(2, _message(1, number(2, 3)))),
            {"spec": {"minAvailable": 3}},
            id="a number or a text, a number",
        ),
        pytest.param(
            sent(
                "policy/v1",
                "PodDisruptionBudget",
                _message(2, _message(3, number(1, 1) + _text(3, "30%"))),
            ),
            {"spec": {"maxUnavailable": "30%"}},
            id="a number or a text, a text",
        ),
        pytest.param(
            sent(
                "v1", "Node", _message(3, _message(1, _text(1, "cpu") + _message(2, _text(1, "4"))))
            ),
            {"status": {"capacity": {"cpu": "4"}}},
            id="a quantity",
        ),
        pytest.param(
            sent("v1", "Node", _message(3, _message(1, _text(1, "cpu")))),
            {"status": {"capacity": {"cpu": "0"}}},
            id="a quantity of nothing",
        ),
        pytest.param(
            sent("v1", "Pod", _message(1, _text(1, "p") + _message(8, number(1, -62135596800)))),
            {"metadata": {"name": "p"}},
            id="the zero time is no time",
        ),
        pytest.param(
            sent(
                "v1",
                "Pod",
                _message(1, _message(17, _text(1, "m") + _message(7, _text(1, '{"f:a":{}}')))),
            ),
            {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}]}},
            id="JSON within",
        ),
        pytest.param(
            sent("v1", "Pod", METADATA + _text(99, "later")),
            {"metadata": {"name": "web", "labels": {"app": "web"}}},
            id="a field of a later release is left out",
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
        pytest.param(sent("v1", "Pod", b"\x09\x01\x02"), id="a fixed number that is cut off"),
        pytest.param(sent("v1", "Pod", number(1, 5)), id="a number as metadata"),
        pytest.param(sent("v1", "Pod", _message(2, _text(25, "x"))), id="a text as a number"),
    ],
)
def test_refused(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_object(data)
