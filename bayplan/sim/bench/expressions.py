"""Expressions: the text between `{{` and `}}` in a template.

A value (`.Index`), or a function with its arguments (`Mod .Index 4`), which can be expressions in
parentheses. These are the forms and the functions that the templates of Kubernetes' scheduler_perf
use.

Mirrors getTemplateFuncs in test/integration/scheduler_perf/operations.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ...errors import InputError

Env: TypeAlias = Mapping[str, Any]
Expression: TypeAlias = Callable[[Env], Any]
"""Returns the value for the template's variables: Index, Count, and the workload's parameters."""

_TOKEN = re.compile(
    r'\s*(?:(?P<value>\.\w+)|(?P<number>-?\d+(?:\.\d+)?)|(?P<text>"[^"]*")|(?P<name>\w+)|(?P<sign>[()]))'
)


def _divide(dividend: float, divisor: float) -> float:
    if divisor == 0:
        raise InputError("expected a divisor other than 0")
    return dividend / divisor


def _mod(dividend: float, divisor: float) -> int:
    """The remainder with the sign of the dividend, as in Go."""
    _divide(dividend, divisor)
    return int(math.fmod(int(dividend), int(divisor)))


def _printf(form: str, *values: Any) -> str:
    try:
        return form % values
    except (TypeError, ValueError) as error:
        raise InputError(f'expected values that fit the form "{form}"; {error}') from None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "AddFloat": lambda *numbers: float(sum(numbers)),
    "AddInt": lambda *numbers: int(sum(numbers)),
    "DivideFloat": _divide,
    "DivideInt": lambda i, j: int(_divide(i, j)),
    "Mod": _mod,
    "MultiplyFloat": lambda *numbers: float(math.prod(numbers)),
    "MultiplyInt": lambda *numbers: int(math.prod(numbers)),
    "SubtractFloat": lambda i, j: float(i - j),
    "SubtractInt": lambda i, j: int(i - j),
    "printf": _printf,
}


def parse_expression(text: str) -> Expression:
    """Parse an expression; raises InputError, without the place, if it is invalid."""
    tokens = _tokens(text)
    expression = _call(tokens, text)
    if tokens:
        raise InputError(f'expected the end of "{text}"; got "{tokens[0][1]}"')
    return expression


def evaluate(expression: Expression, text: str, env: Env) -> Any:
    """The value of an expression; raises InputError, without its place in the file, if it has none."""
    try:
        return expression(env)
    except TypeError as error:
        raise InputError(f'expected numbers that "{text}" can work with; {error}') from None
    except InputError as error:
        raise InputError(f'"{text}": {error}') from None


def _tokens(text: str) -> list[tuple[str, str]]:
    """Pairs of kind and text; all input is consumed."""
    tokens: list[tuple[str, str]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position, end)
        if match is None or match.lastgroup is None:
            raise InputError(f'expected .Index or a function; got "{text[position:end].strip()}"')
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens


def _call(tokens: list[tuple[str, str]], text: str) -> Expression:
    """Read a value, or a function and the arguments after it."""
    if tokens and tokens[0][0] == "name":
        name = tokens.pop(0)[1]
        function = FUNCTIONS.get(name)
        if function is None:
            raise InputError(f'expected one of {", ".join(FUNCTIONS)}; got "{name}"')
        arguments: list[Expression] = []
        while tokens and tokens[0] != ("sign", ")"):
            arguments.append(_operand(tokens, text))
        return lambda env: function(*[argument(env) for argument in arguments])
    return _operand(tokens, text)


def _operand(tokens: list[tuple[str, str]], text: str) -> Expression:
    """Read a value, a constant, or an expression in parentheses."""
    if not tokens:
        raise InputError(f'expected .Index or a function; got "{text.strip()}"')
    sort, token = tokens.pop(0)
    match sort:
        case "value":
            return _variable(token[1:])
        case "number":
            number = float(token) if "." in token else int(token)
            return lambda env: number
        case "text":
            return lambda env: token[1:-1]
    if token != "(":
        raise InputError(f'expected a value in "{text.strip()}"; got "{token}"')
    inner = _call(tokens, text)
    if not tokens or tokens.pop(0)[1] != ")":
        raise InputError(f'expected a closing parenthesis in "{text.strip()}"; got none')
    return inner


def _variable(name: str) -> Expression:
    def value(env: Env) -> Any:
        if name not in env:
            known = ", ".join(env) or "there is none"
            raise InputError(f"expected a known value ({known}); got .{name}")
        return env[name]

    return value
