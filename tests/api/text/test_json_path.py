"""JSON paths of printer columns: values that they find, and texts that are none."""

from typing import Any

import pytest

from bayplan.api.text.json_path import JsonPathError, parse_json_path

READY = {"type": "Ready", "status": "True", "observed": 3}
STALLED = {"type": "Stalled", "status": "False", "observed": 5}
TREE = {
    "metadata": {"labels": {"example.com/a": "b"}},
    "spec": {"ports": [80, 443, 8080]},
    "status": {"conditions": [READY, STALLED], "ready": True},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".spec.ports[0]", [80], id="an index"),
        pytest.param("{.spec.ports[-1]}", [8080], id="an index from the end, in braces"),
        pytest.param(".spec.ports[7]", [], id="an index beyond the end"),
        pytest.param(".spec[0]", [], id="an index of an object"),
        pytest.param(".spec.ports[1:]", [443, 8080], id="a part of a list"),
        pytest.param(".spec.ports[:1]", [80], id="its beginning"),
        pytest.param(".spec[1:]", [], id="a part of an object"),
        pytest.param(".spec.ports[*]", [80, 443, 8080], id="all items"),
        pytest.param(".spec.*[0]", [80], id="all fields"),
        pytest.param(".status.ready[*]", [], id="all items of a value"),
        pytest.param(r".metadata.labels.example\.com/a", ["b"], id="a dot in a name"),
        pytest.param(".metadata.labels['example.com/a']", ["b"], id="a name in quotes"),
        pytest.param(".spec.none.more", [], id="a field that is not there"),
        pytest.param(".", [TREE], id="everything"),
        pytest.param('.status.conditions[?(@.type=="Ready")].status', ["True"], id="equal"),
        pytest.param(".status.conditions[?(@.type!='Ready')].status", ["False"], id="not equal"),
        pytest.param(".status.conditions[?(@.observed>=5)].type", ["Stalled"], id="at least"),
        pytest.param(".status.conditions[?(@.observed<4.5)].type", ["Ready"], id="less"),
        pytest.param(".status.conditions[?(@.observed)].type", ["Ready", "Stalled"], id="is there"),
        pytest.param(".status.conditions[?(@.gone)].type", [], id="is not there"),
        pytest.param(".status.conditions[?(@.gone==1)].type", [], id="a field no item has"),
        pytest.param(".status.conditions[?(@.type>3)].type", [], id="a text and a number"),
        pytest.param(".status.conditions[?(@.status==True)].type", ["Ready"], id="a bare word"),
        pytest.param(".status[?(@==true)]", [True], id="a truth value"),
    ],
)
def test_values_at_a_path(path: str, found: list[Any]) -> None:
    parsed = parse_json_path(path)

    assert parsed.find(TREE) == found
    assert parsed.first(TREE) == (found[0] if found else None)


@pytest.mark.parametrize("text", ["spec", ".spec[", ".spec[a]", "..", "[?(@.a=1)]"])
def test_texts_that_are_no_path(text: str) -> None:
    with pytest.raises(JsonPathError, match=r"expected a path as \.spec\.name or \[0\]; got "):
        parse_json_path(text)
