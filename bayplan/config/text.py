"""Text: YAML or JSON to plain data, with every repeated key reported by its path.

Reads as Kubernetes does: of equal keys the last counts, only the first document counts, and a text that begins with `{`
must be JSON.
"""

import json
from collections import Counter
from typing import Any

from ..api.text.template_actions import first_action
from ..yaml_tree import RepeatedKey, YamlError, iter_trees
from .decode import JsonFloat
from .problems import Literally, Problems, child


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON before its keys are checked for duplicates."""


def parse_text(text: str | bytes, problems: Problems) -> Any:
    """Returns `text` as dicts, lists and scalars; None, with a problem noted, if it is neither
    YAML nor JSON."""
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        if decoded.lstrip().startswith("{"):
            return _plain(_read_json(decoded), "", problems)
        return _read_yaml(decoded, problems)
    except UnicodeError as error:
        problems.add("", "UTF-8 text", Literally(error))
    except json.JSONDecodeError as error:
        where = Literally(f"{error.msg} (line {error.lineno}, column {error.colno})")
        problems.add("", *(_template_fault(decoded) or ("JSON", where)))
    except YamlError as error:
        problems.add("", *(_template_fault(decoded) or _yaml_fault(error)))
    except ValueError as error:  # such as a number of very many digits
        problems.add("", "JSON or YAML", Literally(error))
    except RecursionError:
        problems.add("", "less nesting", Literally("too much of it"))
    return None


def _read_json(text: str) -> Any:
    """Returns JSON `text` as a tree of _Pairs, lists and scalars."""
    return json.loads(
        text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant, parse_float=JsonFloat
    )


def _refuse_constant(name: str) -> None:
    """Reject NaN and the infinities, which Python reads although JSON does not have them."""
    raise ValueError(f"{name} is not JSON")


def _read_yaml(text: str, problems: Problems) -> Any:
    """Returns the first document of YAML `text`."""
    times: Counter[str] = Counter()

    def count(repeated: RepeatedKey) -> None:
        times[_path(repeated.path)] += 1

    tree = next(iter_trees(text, count), None)
    for path, again in times.items():
        _report(path, again + 1, problems)
    return tree


def _path(parts: tuple[str | int, ...]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else child(path, part)
    return path


def _report(path: str, times: int, problems: Problems) -> None:
    found = Literally(f"it {times} times")
    problems.add(path, "the field once", found)


def _template_fault(text: str) -> tuple[str, Literally] | None:
    """The expected and the found part for a text with an action of a template, of Helm or another program."""
    action = first_action(text.encode(errors="replace"))
    if not action:
        return None
    return "a configuration", Literally(f"a template that is not rendered ({action})")


def _yaml_fault(error: YamlError) -> tuple[str, Literally]:
    """Return the expected value, and the found one with its place."""
    expected, _, found = error.problem.removeprefix("expected ").partition("; got ")
    if not found:
        expected, found = "YAML", error.problem.removeprefix("expected YAML; ")
    place = f"line {error.line}" + (f", column {error.column}" if error.column else "")
    return expected, Literally(f"{found} ({place})" if error.line else found)


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
            _report(where, times[key], problems)
        result[key] = _plain(value, where, problems)
    return result
