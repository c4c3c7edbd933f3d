"""Expressions that would build much or take long are refused before they are evaluated."""

from typing import Any

import pytest

from bayplan.api.cel.device_expressions import CelError
from bayplan.api.cel.object_rules import TOO_COSTLY, WorkBudget, compile_rule

pytest.importorskip("cel_expr_python")

TEXT = "a" * 2_000_000
NAMED = [{"name": f"n{i}"} for i in range(9_000)]


class Unevaluated:
    """A compiled expression that must not be evaluated."""

    def __init__(self, compiled: Any) -> None:
        self.serialize = compiled.serialize

    def eval(self, data: Any) -> Any:
        raise AssertionError("the cost is checked before")


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.split('').join(self).size() > 0", TEXT),
        ("self.replace('a', self).size() > 0", TEXT),
        ("[self]" + ".map(x, x + x)" * 25 + "[0].size() > 0", TEXT),
        ("self.split('').all(x, self.contains(x))", TEXT),
        ("self.split('').sort().size() > 0", TEXT),
        ("self.map(x, x.name).size() > 0", NAMED),
        ("self.all(x, self.all(y, y.name.size() > 0))", NAMED),
        ("self.map(x, self).map(x, self).size() > 0", NAMED),
    ],
)
def test_what_would_explode_is_not_evaluated(
    rule: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_rule(rule)
    monkeypatch.setattr(compiled, "_compiled", Unevaluated(compiled._compiled))

    with pytest.raises(CelError, match=TOO_COSTLY):
        compiled.evaluate(value)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.split('').size() == 200000", TEXT[:200_000]),
        ("'%s%s'.format([self, self]).size() == 4000000", TEXT),
        ("(self + self).size() == 4000000", TEXT),
        ("self.matches('^(a+)+$')", TEXT),
        ("self.all(x, x.name.size() > 0)", NAMED),
        ("self.map(x, x.name).join(',').size() > 0", NAMED[:1000]),
        ("self.all(x, self.exists_one(y, y.name == x.name))", NAMED[:60]),
    ],
)
def test_what_real_rules_do_is_evaluated(rule: str, value: Any) -> None:
    assert compile_rule(rule).evaluate(value) is True


def test_the_rules_of_one_object_share_a_budget() -> None:
    rule, budget = compile_rule("self.split('').size() > 0"), WorkBudget()

    rule.evaluate(TEXT[:500_000], budget=budget)
    budget.left = 1_000_000
    with pytest.raises(CelError, match=TOO_COSTLY):
        rule.evaluate(TEXT[:500_000], budget=budget)
