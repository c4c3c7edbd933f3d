"""Templates: text with expressions becomes objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.errors import InputError
from bayplan.sim.bench.expressions import evaluate, parse_expression
from bayplan.sim.bench.templates import Template, parse_marked

ENV = {"Index": 7, "Count": 10, "initNodes": 5, "zone": 'a"b'}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(".Index", 7, id="a value"),
        pytest.param("-3", -3, id="a number"),
        pytest.param("Mod .Index 4", 3, id="a function"),
        pytest.param("Mod -7 4", -3, id="a remainder has the sign of the dividend"),
        pytest.param("AddInt 1 (MultiplyInt 2 .Index) 3", 18, id="a function within"),
        pytest.param("DivideInt .Index 2", 3, id="whole numbers"),
        pytest.param("DivideInt -7 2", -3, id="towards zero"),
        pytest.param("DivideFloat .Index 2", 3.5, id="fractions"),
        pytest.param("SubtractInt .Count .Index", 3, id="a parameter"),
        pytest.param('printf "%03d-%d" .Index .initNodes', "007-5", id="a form"),
        pytest.param("(.Index)", 7, id="parentheses"),
    ],
)
def test_expression_has_a_value(text: str, value: object) -> None:
    assert evaluate(parse_expression(text), text, ENV) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "expected .Index or a function", id="nothing"),
        pytest.param("if .Index", "expected one of AddFloat", id="a statement"),
        pytest.param(".Index 3", 'expected the end of ".Index 3"; got "3"', id="too much"),
        pytest.param("Mod (.Index 4", "closing parenthesis", id="an open parenthesis"),
        pytest.param("Mod .Index |", "expected .Index or a function", id="a pipe"),
        pytest.param("AddInt )", 'expected the end of "AddInt )"; got ")"', id="closed only"),
        pytest.param("Mod .Index 0", "divisor other than 0", id="by zero"),
        pytest.param("Mod .Index", "expected numbers", id="an argument is missing"),
        pytest.param(".Nodes", "expected a known value (Index, Count", id="an unknown value"),
        pytest.param('printf "%d" "a"', "expected values that fit", id="another form"),
    ],
)
def test_invalid_expressions_are_rejected(text: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        evaluate(parse_expression(text), text, ENV)

    assert problem in str(error.value)


NODE = """
apiVersion: v1
kind: Node
metadata:
  name: node-{{.Index}} # {{ignored}}
  labels:
    number: "{{.Index}}"
    gpu-{{Mod .Index 2}}: x
    gpu-{{AddInt 5 .Index}}: "{{.zone}}"
status:
  capacity: {cpu: {{.Index}}, memory: {{.Index}}Gi}
"""


def make(text: str) -> Any:
    marked = parse_marked(text, "t.yaml")
    return Template(marked.documents[0], marked, "t.yaml").make(ENV)


def test_object_is_made_by_number() -> None:
    node = make(NODE)

    assert node.name == "node-7"
    assert node.labels == {"number": "7", "gpu-1": "x", "gpu-12": 'a"b'}
    assert (node.capacity["cpu"], node.capacity["memory"]) == (7000, 7 << 30)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: {{Modulo .Index 2}}", "t.yaml: {{...}}: expected one of", id="function"),
        pytest.param("a: [", "t.yaml: line 2: expected YAML", id="no YAML"),
        pytest.param("kind: Node", "t.yaml: node: metadata.name", id="no name"),
        pytest.param(
            "metadata: {name: a}", "t.yaml: object a: kind: expected a kind", id="no kind"
        ),
        pytest.param(
            "{apiVersion: v1, kind: Wagon}",
            "t.yaml: wagon: apiVersion: expected a kind of v1",
            id="kind",
        ),
        pytest.param("{kind: Node, metadata: {name: {{.Wagon}}}}", '".Wagon": expected', id="env"),
    ],
)
def test_errors_name_the_place(text: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        make(text)

    assert str(error.value).startswith("t.yaml: ")
    assert problem in str(error.value)


@given(st.integers(0, 10**6), st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_any_text_survives_a_template(index: int, text: str) -> None:
    marked = parse_marked(
        "{kind: Pod, metadata: {name: p, annotations: {a: x{{.text}}, b: '{{.Index}}'}}}", "t.yaml"
    )

    pod: Any = Template(marked.documents[0], marked, "t.yaml").make({"Index": index, "text": text})

    assert pod.annotations == {"a": f"x{text}", "b": str(index)}
