"""Functions that Kubernetes adds to CEL: each rule has the answer of kube-apiserver v1.36.4.

The rules were those of the fields of one definition, the values those of an object of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.cel.device_expressions import CelError
from bayplan.api.cel.object_rules import UnavailableError, compile_rule

pytest.importorskip("cel_expr_python")

CASES = json.loads((Path(__file__).parent / "cel_library.json").read_text())
REFUSED = "refused"


def answer_to(rule: str, value: Any) -> Any:
    """The value of a rule, or that its definition is refused."""
    try:
        compiled = compile_rule(rule)
    except UnavailableError as error:
        return f"not available: {error}"
    except CelError:
        return REFUSED
    return compiled.evaluate(value)


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c['rule']} {c['self']}") for c in CASES])
def test_the_answer_is_that_of_kube_apiserver(case: Any) -> None:
    assert answer_to(case["rule"], case["self"]) == case["answer"]


def test_the_cases_have_all_answers() -> None:
    answers = [case["answer"] for case in CASES]

    assert {kind: answers.count(kind) > 4 for kind in (True, False, REFUSED)} == {
        True: True,
        False: True,
        REFUSED: True,
    }


def test_an_unknown_function_is_named_with_its_place() -> None:
    with pytest.raises(CelError) as caught:
        compile_rule("self.nosuch()")

    fault = "ERROR: <input>:1:12: undeclared reference to 'nosuch' (in container '')"
    assert str(caught.value) == f"{fault}\n | self.nosuch()\n | ...........^"


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("ip(self).family() == 4", "10.0.0"),
        ("cidr(self).prefixLength() == 4", "10.0.0.0/99"),
        ("url(self).getPort() == ''", "a b"),
        ("url('http://a').family() == 4", "x"),
        ("format.named(self).value().validate('a').hasValue()", "nope"),
        ("self.split(',').slice(1, 5) == []", "a,b"),
        ("lists.range(100000000) == []", "a"),
    ],
)
def test_a_value_that_cannot_be_read_is_an_error(rule: str, value: str) -> None:
    with pytest.raises(CelError):
        compile_rule(rule).evaluate(value)
