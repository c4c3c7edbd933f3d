"""Templates: YAML with `{{...}}`, made into objects by number.

The text is parsed once, not once per object: each expression is replaced by a mark that YAML reads
as text, and the tree becomes JSON with gaps. Making an object then means filling the gaps and
decoding.

Mirrors getSpecFromTextTemplateFile in test/integration/scheduler_perf/operations.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from ...api.wire.decode import UnknownObject, decode
from ...cluster.objects.object_index import ClusterObject
from ...errors import InputError
from ...yaml_tree import YamlError, iter_trees
from .expressions import Env, Expression, evaluate, parse_expression

_BRACES = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
# Marks are private-use characters, which YAML and JSON pass through.
_MARK = "\ue000{}\ue001"
_MARKED = re.compile("\ue000(\\d+)\ue001")
_NUMERIC = "\ue002"
_NUMERIC_JSON = re.compile(f'"{_NUMERIC}([^"]*)"')
_FIRST_NUMBER = 1000


@dataclass
class Marked:
    """Parsed YAML with marks in place of expressions."""

    documents: list[Any]
    texts: list[str] = field(default_factory=list)
    """The text in braces, for errors."""
    expressions: dict[int, Expression] = field(default_factory=dict)

    def mark(self, text: str, expression: Expression | None = None) -> str:
        """A mark for one more expression, to be put into a tree."""
        number = len(self.texts)
        self.texts.append(text.strip())
        if expression is not None:
            self.expressions[number] = expression
        return _MARK.format(number)

    def parse(self) -> None:
        """Parse the expressions of the documents; raises InputError, without the place, if one is invalid.

        Those in comments are ignored.
        """
        for number in map(int, _MARKED.findall(msgspec.json.encode(self.documents).decode())):
            self.expressions[number] = parse_expression(self.texts[number])

    def fill(self, text: str, env: Env) -> str:
        """`text` with its marks replaced by values."""
        return _MARKED.sub(lambda mark: _shown(self.value(int(mark[1]), env)), text)

    def value(self, number: int, env: Env) -> Any:
        """The value of an expression; raises InputError, without its place in the file, if it has none."""
        return evaluate(self.expressions[number], self.texts[number], env)

    def evaluate(self, value: Any, env: Env) -> Any:
        """A parsed value with its marks resolved; unquoted numbers become numbers."""
        if not is_marked(value):
            return value
        text = self.fill(value.removeprefix(_NUMERIC), env)
        return json.loads(text) if value.startswith(_NUMERIC) else text


def parse_marked(text: str, source: str) -> Marked:
    """Parse YAML with expressions; raises InputError, with the place, if it is invalid."""
    marked = Marked([])
    try:
        numbers = iter(range(_FIRST_NUMBER, _FIRST_NUMBER + len(text)))
        with_marks = _BRACES.sub(lambda braces: marked.mark(braces[1]), text)
        with_numbers = _BRACES.sub(lambda _: str(next(numbers)), text)
        pairs = zip(iter_trees(with_marks), iter_trees(with_numbers), strict=True)
        marked.documents = [_settled(tree, numeric) for tree, numeric in pairs]
        marked.parse()
    except YamlError as error:
        raise InputError(f"{source}: {error}") from None
    except InputError as error:
        raise InputError(f"{source}: {{{{...}}}}: {error}") from None
    return marked


def is_marked(value: Any) -> bool:
    """Whether a parsed value has an expression in it."""
    return isinstance(value, str) and _MARKED.search(value) is not None


def shown(value: Any) -> Any:
    """A parsed value as shown in a message."""
    return _MARKED.sub("{{...}}", value.removeprefix(_NUMERIC)) if is_marked(value) else value


class Template:
    """Makes objects of one tree; `source` is its place, for errors."""

    def __init__(self, tree: Any, marked: Marked, source: str) -> None:
        text = _NUMERIC_JSON.sub(r"\1", msgspec.json.encode(tree).decode())
        parts = _MARKED.split(text)
        self._literals: list[str] = parts[::2]
        self._numbers = [int(number) for number in parts[1::2]]
        self._marked = marked
        self._source = source

    def make(self, env: Env) -> ClusterObject:
        """The object for the values in `env`; raises InputError, with the place, where it is
        invalid."""
        try:
            obj = decode(self.text(env))
        except InputError as error:
            raise InputError(f"{self._source}: {error}") from None
        if isinstance(obj, UnknownObject):
            kind = f"{obj.kind} ({obj.api_version})" if obj.api_version else obj.kind
            raise InputError(
                f"{self._source}: kind: expected a kind that affects scheduling; got {kind}"
            )
        return cast(ClusterObject, obj)

    def text(self, env: Env) -> bytes:
        """The object as JSON; raises InputError, without the place, where an expression has no
        value."""
        parts = list(self._literals)
        value = self._marked.value
        for i, number in enumerate(self._numbers):
            parts[i] += _shown(value(number, env))
        return "".join(parts).encode()


def compile_templates(
    trees: list[Any], marked: Marked, source: str, prepare: Callable[[dict[str, Any]], None]
) -> list[Template]:
    """Build templates from parsed trees. `prepare` may complete each tree; it is a copy."""
    templates = []
    for tree in trees:
        copy = msgspec.json.decode(msgspec.json.encode(tree))
        if not isinstance(copy, dict) or not isinstance(copy.setdefault("metadata", {}), dict):
            raise InputError(f"{source}: expected an object with a kind and metadata")
        prepare(copy)
        templates.append(Template(copy, marked, source))
    return templates


def _settled(tree: Any, numeric: Any) -> Any:
    """A copy of `tree` in which marked values that become numbers are marked separately."""
    if isinstance(tree, dict):
        pairs = zip(tree.items(), numeric.values(), strict=True)
        return {key: _settled(value, number) for (key, value), number in pairs}
    if isinstance(tree, list):
        return [_settled(value, number) for value, number in zip(tree, numeric, strict=True)]
    if is_marked(tree) and not isinstance(numeric, str):
        return _NUMERIC + tree
    return tree


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)[1:-1]
    return str(value)
