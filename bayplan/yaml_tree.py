"""YAML tree: YAML text to plain dicts, lists and scalars, as Kubernetes reads it.

Works on the parser's events, which is several times faster than the usual loader. Mirrors sigs.k8s.io/yaml: `y` and `n`
are booleans, dates and base-60 numbers are text, keys are text as JSON spells their value. Of equal keys the last
counts if the caller handles them, else they are refused, as are aliases that expand too much, too deep
nesting, and numbers that JSON does not have. `format_tree` is the way back. PyYAML is imported with the first text.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .errors import InputError

MAX_ALIASED = 100_000
"""Values that aliases of a document may stand for; a text counts once more for each 64 characters."""
MAX_DEPTH = 200
MERGE_KEY = "<<"
_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, type] = {
    f"{_TAG}null": type(None),
    f"{_TAG}bool": bool,
    f"{_TAG}int": int,
    f"{_TAG}float": float,
}
_TEXT = f"{_TAG}str"
_BINARY = f"{_TAG}binary"

_CONSTANTS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
for _truth, _words in ((True, ("true", "yes", "on", "y")), (False, ("false", "no", "off", "n"))):
    for _word in _words:
        _CONSTANTS.update(dict.fromkeys((_word, _word.capitalize(), _word.upper()), _truth))
_OCTAL = re.compile(r"[-+]?0[0-9]+")
_INTEGER = re.compile(r"[-+]?[0-9A-Za-z]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BOM = b"\xef\xbb\xbf"
_NOT_SPACE = re.compile(r"\S")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_PLAIN_BELOW = 1e21
"""Go writes smaller whole floats into JSON as integers."""
_CACHE_LIMIT = 1 << 16


class YamlError(InputError):
    """The text is not supported YAML; `line` and `column` count from 1 within the text; 0 if unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
        self.column = column


class UndefinedAliasError(YamlError):
    """An alias whose anchor is missing or incomplete."""


class RepeatedKey(NamedTuple):
    """A key that its mapping has already: keys and numbers of items that lead to it, and its line."""

    path: tuple[str | int, ...]
    line: int
    is_merged: bool
    """Whether it comes from a mapping under a merge key."""


OnRepeatedKey = Callable[[RepeatedKey], None]


def iter_trees(text: bytes | str, on_repeated_key: OnRepeatedKey | None = None) -> Iterator[Any]:
    """Yield the documents in `text` as plain data; an empty document is None.

    A repeated key is passed to `on_repeated_key`, and its last value counts; without that it is an error.
    """
    import yaml

    make_loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may lack libyaml
    loader = make_loader(text)
    try:
        builder = _Builder(yaml, loader, on_repeated_key)
        while (tree := builder.next_document()) is not _END:
            yield tree
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else ()
        raise YamlError(f"expected YAML; {error.problem}", *place) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"expected UTF-8 text; {error.reason} at byte {error.position}") from None
    finally:
        loader.dispose()


def iter_documents(text: bytes) -> Iterator[Any]:
    """Yield the documents in `text` as kubectl reads them: JSON in a row, YAML, or YAML after a first JSON text."""
    if text.removeprefix(_BOM).lstrip()[:1] != b"{":
        yield from iter_trees(text)
        return
    content = text.removeprefix(_BOM).decode(errors="replace")
    found, end = 0, 0
    while following := _NOT_SPACE.search(content, end):
        start = following.start()
        try:
            tree, end = _JSON.raw_decode(content, start)
        except (ValueError, RecursionError) as error:
            if found > 1:
                raise YamlError(f"document {found + 1}: expected JSON; {error}") from None
            yield from iter_trees(content[start:].encode())
            return
        found += 1
        yield tree


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"got {name}, which is no number of JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def format_tree(tree: Any) -> str:
    """Plain data as YAML that Kubernetes reads as the same data, in the order it has."""
    import yaml

    text: str = yaml.dump(tree, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=1000)
    return text


@functools.cache
def _dumper() -> Any:
    """A dumper that quotes text which Kubernetes reads as something else, and writes no references."""
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # PyYAML may come without libyaml

    class PlainDumper(base):  # type: ignore[misc]  # a base chosen at run time
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            tag = super().resolve(kind, value, implicit)
            is_plain = kind is yaml.ScalarNode and implicit[0] and tag == _TEXT
            if is_plain and resolve_plain(value) is not value:
                return f"{_TAG}float"  # another type than text, so that it is quoted
            return tag

    return PlainDumper


_END = object()
_NO_KEY = object()


class _Builder:
    """Builds documents from the parser's events."""

    def __init__(self, yaml: Any, loader: Any, on_repeated_key: OnRepeatedKey | None) -> None:
        self._yaml = yaml
        self._next_event = loader.get_event
        self._on_repeated_key = on_repeated_key
        self._plain: dict[str, Any] = dict(_CONSTANTS)
        self._keys: dict[str, str] = {}

    def next_document(self) -> Any:
        """The next document, or _END."""
        yaml = self._yaml
        while True:
            event = self._next_event()
            if event is None or type(event) is yaml.StreamEndEvent:
                return _END
            if type(event) is yaml.DocumentStartEvent:
                return self._build()

    def _build(self) -> Any:
        """Build one document. One flat loop: this runs once per event, millions of times."""
        next_event, plain, keys = self._next_event, self._plain, self._keys
        scalar = self._yaml.ScalarEvent
        mapping, sequence = self._yaml.MappingStartEvent, self._yaml.SequenceStartEvent
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliased = 0
        stack: list[tuple[Any, Any, str | None, int]] = []
        holder: Any = _END  # the collection being filled; _END outside of any
        key: Any = _NO_KEY
        count = 0  # number of values so far, those behind aliases included
        while True:
            event = next_event()
            kind = type(event)
            count += 1
            if kind is scalar:
                text = event.value
                count += len(text) >> 6
                if key is _NO_KEY and holder.__class__ is dict:
                    key = text if event.style else keys.get(text) or self._key(event)
                    if key in holder:
                        self._repeated(key, event, stack)
                    continue
                if event.style or event.tag is not None:
                    value = self._styled(event)
                else:
                    value = plain[text] if text in plain else self._resolve(event)
                if event.anchor:
                    self._anchors[event.anchor] = (value, 1 + (len(text) >> 6))
            elif kind is mapping or kind is sequence:
                _check_start(event, holder.__class__ is dict and key is _NO_KEY, len(stack))
                stack.append((holder, key, event.anchor, count))
                holder = {} if kind is mapping else []
                key = _NO_KEY
                continue
            elif kind is self._yaml.AliasEvent:
                value, size = self._find_alias(event)
                count += size
            else:  # the end of a collection
                value = holder
                if value.__class__ is dict and MERGE_KEY in value:
                    self._merge(value, event, stack)
                holder, key, anchor, start = stack.pop()
                if anchor:
                    self._anchors[anchor] = (value, count - start)
            if holder.__class__ is dict:
                holder[key] = value
                key = _NO_KEY
            elif holder is _END:
                next_event()  # the end of the document
                return value
            else:
                holder.append(value)

    def _find_alias(self, event: Any) -> tuple[Any, int]:
        """The value of an alias, and the number of values in it."""
        if event.anchor not in self._anchors:
            problem = f'expected an anchor "{event.anchor}" before its alias'
            raise UndefinedAliasError(problem, _line(event))
        value, size = self._anchors[event.anchor]
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            problem = f"expected aliases for at most {MAX_ALIASED} values; got more"
            raise YamlError(problem, _line(event))
        return value, size

    def _key(self, event: Any) -> str:
        """The text of a plain key: as JSON spells its value."""
        value = self._resolve(event)
        if value is None:
            raise YamlError("expected a key that is text; got null", _line(event))
        if isinstance(value, bool):
            value = "true" if value else "false"
        return self._keys.setdefault(event.value, str(value))

    def _repeated(self, key: str, event: Any, stack: list[Any], is_merged: bool = False) -> None:
        """Report a key that its mapping has already."""
        if self._on_repeated_key is None:
            raise YamlError(f'expected the key "{key}" once; got it twice', _line(event))
        path = [len(at) if at.__class__ is list else name for at, name, _, _ in stack[1:]]
        self._on_repeated_key(RepeatedKey((*path, key), _line(event), is_merged))

    def _merge(self, value: dict[str, Any], event: Any, stack: list[Any]) -> None:
        """Put in the mappings under the merge key, if it is one; entries that come after it count more."""
        merged = value[MERGE_KEY]
        if not isinstance(merged, dict | list):
            return
        names = list(value)
        before = set(names[: names.index(MERGE_KEY)])
        del value[MERGE_KEY]
        entries: dict[str, Any] = {}
        for part in merged if isinstance(merged, list) else [merged]:
            if not isinstance(part, dict):
                raise YamlError("expected a mapping to merge; got something else", _line(event))
            entries = part | entries
        for name, entry in entries.items():
            if name in value and self._on_repeated_key is not None:
                self._repeated(name, event, stack, is_merged=True)
            if name in before or name not in value:
                value[name] = entry

    def _styled(self, event: Any) -> Any:
        """The value of a scalar that is quoted or tagged."""
        if event.tag == _BINARY:
            try:
                return base64.b64decode(event.value, validate=False).decode()
            except ValueError:
                raise YamlError("expected text in base64 after !!binary", _line(event)) from None
        kind = _TYPES.get(event.tag)
        if kind is None:
            return event.value
        value = self._resolve(event)
        if kind is float and type(value) is int:
            return value
        if type(value) is not kind:
            raise YamlError(f"expected a value of its tag; got {event.value}", _line(event))
        return value

    def _resolve(self, event: Any) -> Any:
        text = event.value
        if _NO_NUMBER.fullmatch(text):
            raise YamlError(f"expected a number that JSON has; got {text}", _line(event))
        value = resolve_plain(text)
        if len(self._plain) < _CACHE_LIMIT:
            self._plain[text] = value
        return value


def resolve_plain(text: str) -> Any:
    """The value of an unquoted scalar: null, boolean, number or the text itself."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    plain = text.replace("_", "")
    number = _parse_integer(plain)
    if number is not None:
        return number
    if not _FLOAT.fullmatch(plain):
        return text
    value = float(plain)
    if math.isinf(value):
        return text  # JSON would write it as null: no value at all
    return int(value) if value.is_integer() and abs(value) < _PLAIN_BELOW else value


def _parse_integer(text: str) -> int | None:
    """A whole number of 64 bits, where a leading 0 means octal; without a sign it may be an unsigned one."""
    try:
        if _OCTAL.fullmatch(text):
            number = int(text, 8)
        elif _INTEGER.fullmatch(text):
            number = int(text, 0)
        else:
            return None
    except ValueError:
        return None
    return number if -(2**63) <= number < (2**63 if text[0] in "+-" else 2**64) else None


def _check_start(event: Any, is_key: bool, depth: int) -> None:
    """Reject a collection as a key, or nested too deeply."""
    if is_key:
        raise YamlError("expected a key that is text; got a collection", _line(event))
    if depth >= MAX_DEPTH:
        raise YamlError(f"expected at most {MAX_DEPTH} levels", _line(event))


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
