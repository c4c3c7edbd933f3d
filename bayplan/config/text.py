"""Text: YAML or JSON to plain data, with every repeated key reported by its path.

Reads YAML 1.1 as Kubernetes does: `y` and `n` are booleans too, numbers may have an exponent without a point, dates
and base-60 numbers are text, of equal keys the last counts, only the first document counts, and a text that begins with
`{` must be JSON.
"""

import json
import math
import re
from collections import Counter
from typing import Any

import yaml

from .decode import JsonFloat
from .problems import Literally, ProblemKind, Problems, child

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

_TAG = "tag:yaml.org,2002:"
_MERGE_TAG = f"{_TAG}merge"
_TAGS: dict[type, str] = {
    type(None): f"{_TAG}null",
    bool: f"{_TAG}bool",
    int: f"{_TAG}int",
    float: f"{_TAG}float",
    str: f"{_TAG}str",
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {"": None, "~": None} | {
    form: value
    for value, words in (
        (None, ("null",)),
        (True, ("y", "yes", "true", "on")),
        (False, ("n", "no", "false", "off")),
    )
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


# A small text with nested aliases can expand to a very large tree.
_MAX_NODES = 1_000_000
_MAX_DEPTH = 300


class _Pairs(list[tuple[str, Any]]):
    """A mapping before its keys are checked for duplicates."""


class _Loader(_SafeLoader):
    """The safe loader, used for nodes only."""

    nodes_left = _MAX_NODES

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a node; that of a plain scalar comes from how it is written."""
        if kind is yaml.ScalarNode and implicit[0]:
            return _MERGE_TAG if value == "<<" else _TAGS[type(_scalar(value))]
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


def parse_text(text: str | bytes, problems: Problems) -> Any:
    """Returns `text` as dicts, lists and scalars; None, with a problem noted, if it is neither
    YAML nor JSON."""
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        tree = _read_json(decoded) if decoded.lstrip().startswith("{") else _read_yaml(decoded)
        return _plain(tree, "", problems)
    except UnicodeError as error:
        problems.add("", "UTF-8 text", Literally(error), ProblemKind.SYNTAX)
    except json.JSONDecodeError as error:
        where = Literally(f"{error.msg} (line {error.lineno}, column {error.colno})")
        problems.add("", "JSON", where, ProblemKind.SYNTAX)
    except yaml.YAMLError as error:
        problems.add("", "YAML", _yaml_fault(error), ProblemKind.SYNTAX)
    except ValueError as error:  # such as a number of very many digits
        problems.add("", "JSON or YAML", Literally(error), ProblemKind.SYNTAX)
    except RecursionError:
        problems.add("", "less nesting", Literally("too much of it"), ProblemKind.SYNTAX)
    return None


def _read_json(text: str) -> Any:
    """Returns JSON `text` as a tree of _Pairs, lists and scalars."""
    return json.loads(
        text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant, parse_float=JsonFloat
    )


def _refuse_constant(name: str) -> None:
    """Reject NaN and the infinities, which Python reads although JSON does not have them."""
    raise ValueError(f"{name} is not JSON")


def _read_yaml(text: str) -> Any:
    """Returns the first document of YAML `text` as a tree of _Pairs, lists and scalars."""
    _check_depth(text)
    loader = _Loader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        return None if node is None else _tree(node, loader)
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    """Raise RecursionError when the first document is nested so deeply that libyaml, which recurses
    for each level, would crash."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        match event:
            case yaml.CollectionStartEvent():
                depth += 1
                if depth > _MAX_DEPTH:
                    raise RecursionError
            case yaml.CollectionEndEvent():
                depth -= 1
            case yaml.DocumentEndEvent():
                return


def _yaml_fault(error: yaml.YAMLError) -> Literally:
    """Return the YAML parser's problem and its place."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return Literally(f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})")
    return Literally(" ".join(str(error).split()))


def _tree(node: yaml.Node, loader: _Loader) -> Any:
    """Returns a YAML node as a tree of _Pairs, lists and scalars."""
    loader.nodes_left -= 1
    if loader.nodes_left < 0:
        raise yaml.MarkedYAMLError(
            problem="the references stand for too much", problem_mark=node.start_mark
        )
    if isinstance(node, yaml.MappingNode):
        return _Pairs(_pairs(node, loader))
    if isinstance(node, yaml.SequenceNode):
        return [_tree(item, loader) for item in node.value]
    return _tagged(node)


def _tagged(node: yaml.Node) -> Any:
    """Returns the value of a scalar, whose tag may be an explicit one."""
    value = _scalar(node.value)
    if node.tag == _TAGS[float] and type(value) is int:
        return float(value)
    if node.tag not in _TAGS.values() or node.tag == _TAGS[str]:
        text: str = node.value
        return text
    if node.tag != _TAGS[type(value)]:
        problem = f"{node.value} is not what its tag says"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return value


def _scalar(text: str) -> Any:
    """What a plain scalar stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _NO_NUMBER.fullmatch(text):
        return float(text.replace(".", ""))
    if not text[0].isdigit() and text[0] not in "+-.":
        return text
    plain = text.replace("_", "")
    whole = _whole(plain)
    if whole is not None:
        return whole
    if _FLOAT.fullmatch(plain) and math.isfinite(float(plain)):
        return float(plain)
    return text


def _whole(text: str) -> int | None:
    """A whole number of 64 bits; a leading 0 makes it octal."""
    try:
        if re.fullmatch(r"[-+]?0[0-9]+", text):
            number = int(text, 8)
        elif re.fullmatch(r"[-+]?[0-9A-Za-z]+", text):
            number = int(text, 0)
        else:
            return None
    except ValueError:
        return None
    has_sign = text[0] in "+-"
    return number if -(2**63) <= number < (2**63 if has_sign else 2**64) else None


def _pairs(node: yaml.MappingNode, loader: _Loader) -> list[tuple[str, Any]]:
    """Returns the entries of a mapping, those of merged mappings among them."""
    pairs: list[tuple[str, Any]] = []
    for key, value in node.value:
        if key.tag == _MERGE_TAG:
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for mapping in reversed(merged):  # of these the first counts
                if not isinstance(mapping, yaml.MappingNode):
                    raise yaml.MarkedYAMLError(
                        problem="a merge key needs a mapping", problem_mark=mapping.start_mark
                    )
                pairs += _pairs(mapping, loader)
        elif isinstance(key, yaml.ScalarNode):
            pairs.append((_key(_tree(key, loader)), _tree(value, loader)))
        else:
            raise yaml.MarkedYAMLError(
                problem="a key must be a scalar", problem_mark=key.start_mark
            )
    return pairs


def _key(key: Any) -> str:
    """Returns a mapping's key as JSON would spell it."""
    return key if isinstance(key, str) else json.dumps(key, default=str)


def _plain(tree: Any, path: str, problems: Problems) -> Any:
    """Returns the tree with its _Pairs as dicts; the last of several equal keys wins."""
    if isinstance(tree, list) and not isinstance(tree, _Pairs):
        return [_plain(item, f"{path}[{i}]", problems) for i, item in enumerate(tree)]
    if not isinstance(tree, _Pairs):
        return tree
    times = Counter(key for key, _ in tree)
    result: dict[str, Any] = {}
    for key, value in tree:
        where = child(path, key)
        if times[key] > 1 and key not in result:
            found = Literally(f"it {times[key]} times")
            problems.add(where, "the field once", found, ProblemKind.DUPLICATE_FIELD)
        result[key] = _plain(value, where, problems)
    return result
