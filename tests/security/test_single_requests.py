"""Single requests: none stops the server, whatever is in it."""

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.api.cel.device_expressions import CelError
from bayplan.api.cel.object_rules import TOO_COSTLY, compile_rule
from bayplan.api.text.patterns import PatternError, compile_pattern
from bayplan.api.wire.protobuf_fields import ProtobufError
from bayplan.apiserver.schema import json_patch as patches
from bayplan.apiserver.schema.json_patch import MAX_DEPTH
from bayplan.apiserver.schema.protobuf import MAGIC, MIME, decode_object
from bayplan.apiserver.store.store import Store
from tests.rig.api_server import PATCH_TYPES, PODS, ServerInThread
from tests.rig.trees import pod_tree

from .rig import CORE

MAPS = f"{CORE}/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def define(api: ServerInThread, **spec: Any) -> None:
    """Serve widgets, whose spec has this schema."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    tree = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    api.make(DEFINITIONS, tree)
    api.settle()


def widget(spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    return {**head, "metadata": {"name": "w"}, "spec": spec}


def nested(levels: int) -> Any:
    tree: Any = {}
    for _ in range(levels - 1):
        tree = {"a": tree}
    return tree


def is_alive(api: ServerInThread) -> bool:
    return api.get(PODS).status == 200 and api.post(MAPS, {"metadata": {"name": "x"}}).status == 201


FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_a_patch_that_builds_depth_is_refused_and_reads_go_on(api: ServerInThread) -> None:
    define(api, **FREE)
    api.make(WIDGETS, widget({}))
    piece = nested(150)
    deep = [{"op": "add", "path": "/spec/a", "value": piece}]
    for _ in range(20):
        deep += [
            {"op": "add", "path": "/spec/b", "value": piece},
            {"op": "move", "from": "/spec/a", "path": "/spec/b" + "/a" * 150},
            {"op": "move", "from": "/spec/b", "path": "/spec/a"},
        ]

    answer = api.patch(f"{WIDGETS}/w", deep, "json")

    assert (answer.status, answer.tree["reason"]) == (422, "Invalid")
    assert "levels" in answer.tree["message"]
    assert is_alive(api)


@pytest.mark.parametrize("method", ["POST", "PUT", "merge", "apply"])
def test_bodies_have_as_many_levels_as_the_documentation_says(
    api: ServerInThread, method: str
) -> None:
    define(api, **FREE)

    def send(levels: int) -> tuple[int, str]:
        tree = widget(nested(levels - 1))
        if method in PATCH_TYPES:
            path = f"{WIDGETS}/w?fieldManager=m&force=true"
            answer = api.patch(path, tree, method)
        else:
            answer = api.request(method, f"{WIDGETS}/w" if method == "PUT" else WIDGETS, tree)
        return answer.status, str(answer.tree.get("message"))

    status, message = send(MAX_DEPTH + 1)
    assert status == 400
    assert f"{MAX_DEPTH} levels" in message
    assert send(MAX_DEPTH)[0] in (201, 404)  # those that do not create find nothing
    assert is_alive(api)


def test_copies_are_limited(api: ServerInThread) -> None:
    api.make(MAPS, {"metadata": {"name": "a"}, "data": {"x": "x" * 1000}})
    doubling = [{"op": "copy", "from": "", "path": f"/copy{i}"} for i in range(22)]

    answer = api.patch(f"{MAPS}/a", doubling, "json")

    assert (answer.status, answer.tree["reason"]) == (422, "Invalid")
    copied = re.search(r"of copy is (\d+), exceeding the limit 3145728", answer.tree["message"])
    assert copied is not None
    assert int(copied[1]) < 2.5 * 3145728, "the first copy beyond the limit is the last"


def test_operations_are_counted(api: ServerInThread) -> None:
    api.make(MAPS, {"metadata": {"name": "a"}})
    many = [{"op": "test", "path": "/x"}] * (patches.MAX_OPERATIONS + 1)

    answer = api.patch(f"{MAPS}/a", many, "json")

    assert (answer.status, answer.tree["reason"]) == (413, "RequestEntityTooLarge")
    assert "maximum operations in a JSON patch is 10000, got 10001" in answer.tree["message"]
    assert api.patch(f"{MAPS}/a", many[:-1], "json").status == 200


def test_an_object_that_cannot_be_encoded_leaves_the_version_as_it_was() -> None:
    store = Store()
    tree: dict[str, Any] = {"metadata": {"uid": "1", "name": "a"}, "spec": nested(3000)}

    with pytest.raises(RecursionError):
        store.put("pods", ("default", "a"), tree)

    heard: list[Any] = []
    store.when_safe(heard.append)
    assert (store.resource_version, heard) == (0, [None])


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("^(a+)+$", False),
        ("(a|aa)+$", False),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", False),
        ("(.*a){25}", True),
        ("^(a?){30}a{30}$", False),
    ],
)
def test_patterns_on_which_backtracking_does_not_end(pattern: str, matches: bool) -> None:
    assert bool(compile_pattern(pattern).search("a" * 50_000 + "!")) is matches


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a{1001}", r"(a)\1", "((a{100}){100}){100}"])
def test_patterns_that_go_does_not_take(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PatternError, match="error parsing regexp"):
        compile_pattern(pattern)

    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        pytest.param("^[a-z]+$", "abc\n", False, id="the end is the end of the text"),
        pytest.param("^[[:alpha:]]+$", "abC", True, id="classes of POSIX"),
        pytest.param("(?i)^ABC$", "abc", True, id="flags"),
        pytest.param(r"^\d+$", "\u0663", False, id="digits are ASCII"),
        pytest.param(r"^\pL+$", "ü", True, id="classes of Unicode"),
        pytest.param("^.{3}$", "äöü", True, id="characters, not bytes"),
    ],
)
def test_patterns_match_as_in_go(pattern: str, text: str, matches: bool) -> None:
    assert bool(compile_pattern(pattern).search(text)) is matches


def test_a_pattern_of_a_definition_does_not_stop_the_server(api: ServerInThread) -> None:
    define(api, type="object", properties={"name": {"type": "string", "pattern": "^(a+)+$"}})

    answer = api.post(WIDGETS, widget({"name": "a" * 1000 + "!"}))

    assert answer.status == 422


COSTLY = [
    ("self.all(x, self.all(y, x + y >= 0))", list(range(200))),
    ("self.replace('a', self).replace('a', self) == ''", "a" * 3000),
    ("self.replace('a', 'aaaaaaaaaa')" + ".replace('a', 'aaaaaaaaaa')" * 9 + " == ''", "aaaa"),
    ("self.map(x, self[0]).join('') == ''", ["a" * 100_000] * 2000),
    ("sets.contains(self, self)", list(range(20_000))),
]


@pytest.mark.parametrize(("text", "value"), COSTLY, ids=[text[:40] for text, _ in COSTLY])
def test_expressions_that_cost_too_much_are_refused(text: str, value: Any) -> None:
    pytest.importorskip("cel_expr_python")
    with pytest.raises(CelError, match=TOO_COSTLY):
        compile_rule(text).evaluate(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("self.find('^(a+)+$') == ''", "a" * 1000 + "!", id="no backtracking"),
        pytest.param("[true].exists(x, " * 20 + "x" + ")" * 20, 1, id="loops of one element"),
    ],
)
def test_expressions_that_only_seem_costly_are_evaluated(text: str, value: Any) -> None:
    pytest.importorskip("cel_expr_python")
    assert compile_rule(text).evaluate(value) is True


def test_the_budget_of_an_expression_is_the_clients_problem(api: ServerInThread) -> None:
    pytest.importorskip("cel_expr_python")
    rule = {"rule": "self.n.all(x, self.n.all(y, x + y >= 0))"}
    numbers = {"type": "array", "items": {"type": "integer"}, "maxItems": 500}
    define(api, type="object", properties={"n": numbers}, **{"x-kubernetes-validations": [rule]})

    answer = api.post(WIDGETS, widget({"n": list(range(300))}))

    assert answer.status == 422
    assert "cost limit exceeded" in answer.tree["message"]


POD = b"k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12"
BROKEN = [
    pytest.param(b"k8s\x00\x08\x01", id="a number as the head"),
    pytest.param(b"k8s\x00\n\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", id="a number as kind"),
    pytest.param(POD + b"\x02\x08\x05", id="a number as metadata"),
    pytest.param(POD + b"\x09\n\x07\x08\xff\xff\xff\xff\x7f\x00", id="a number as a name"),
    pytest.param(POD + b"\x05\n\x03\n\x05a", id="a name that ends early"),
    pytest.param(POD + b"\x05\n\x03\n\x01\xff", id="a name that is no text"),
    pytest.param(POD + b"\x03\n\x01\x09", id="a fixed number that ends early"),
    pytest.param(
        POD + b"\x0f\n\x0dB\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10", id="a time too late"
    ),
]


@pytest.mark.parametrize("data", BROKEN)
def test_broken_protobuf_is_a_bad_request(api: ServerInThread, data: bytes) -> None:
    answer = api.request("POST", PODS, data, MIME)

    assert answer.status == 400, answer.tree


@settings(max_examples=1500, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=60)
    | st.binary(max_size=60).map(lambda tail: POD + bytes([len(tail)]) + tail)
)
def test_protobuf_is_decoded_or_refused(tail: bytes) -> None:
    data = tail if tail.startswith(MAGIC) else MAGIC + tail
    with suppress(ProtobufError):
        assert isinstance(decode_object(data), dict)


def test_deep_protobuf_is_refused(api: ServerInThread) -> None:
    schema = b""
    for _ in range(3000):  # JSONSchemaProps.not is field 27
        schema = b"\xda\x01" + _size(len(schema)) + schema
    spec = b"B" + _size(len(schema)) + schema
    raw = b"\x12" + _size(len(spec)) + spec
    head = b"\n\x17apiextensions.k8s.io/v1\x12\x18CustomResourceDefinition"
    data = MAGIC + b"\n" + _size(len(head)) + head + b"\x12" + _size(len(raw)) + raw

    assert api.request("POST", DEFINITIONS, data, MIME).status < 500
    assert is_alive(api)


def _size(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def test_a_pod_still_goes_through(api: ServerInThread) -> None:
    assert api.post(PODS, pod_tree("a")).status == 201
