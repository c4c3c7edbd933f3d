"""Text formats: the functions about URLs and named formats that Kubernetes adds to CEL.

Mirrors staging/src/k8s.io/apiserver/pkg/cel/library/{urls,format}.go. A URL or a format is a map with one entry. The
result of `validate` is one, too, with the methods of an optional value: functions in Python cannot return those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..text.formats import has_format
from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    label_1035_faults,
    subdomain_faults,
    value_faults,
)
from ..text.urls import GoUrl, parse_url
from .device_expressions import Function

URL, FORMAT, OPTIONAL = "@url", "@format", "@optional"
Faults = tuple[str, ...]


def format_functions(cel: Any) -> list[Function]:
    """The functions in the form in which they are declared."""
    kind = cel.Type
    text, dyn, yes, texts = kind.STRING, kind.DYN, kind.BOOL, kind.Map(kind.STRING, kind.DYN)
    return [
        ("url", dyn, [text], False, _url),
        ("isURL", yes, [text], False, lambda given: not _url_faults(given)),
        ("getScheme", text, [dyn], True, lambda url: _parts(url).scheme),
        ("getHost", text, [dyn], True, lambda url: _parts(url).host),
        ("getHostname", text, [dyn], True, lambda url: _parts(url).host_name),
        ("getPort", text, [dyn], True, lambda url: _parts(url).port),
        ("getEscapedPath", text, [dyn], True, lambda url: _parts(url).escaped_path),
        ("getQuery", dyn, [dyn], True, lambda url: _parts(url).values),
        *((f"format.{name}", dyn, [], False, _constant(name)) for name in _FORMATS),
        ("format.named", dyn, [text], False, _named),
        ("validate", dyn, [dyn, text], True, _validate),
        ("hasValue", yes, [texts], True, lambda found: bool(_found(found))),
        ("value", dyn, [texts], True, _value),
        ("orValue", dyn, [texts, dyn], True, lambda found, other: (_found(found) or [other])[0]),
    ]


def _url(text: str) -> dict[str, str]:
    try:
        parse_url(text)
    except ValueError as error:
        raise ValueError(f"URL parse error during conversion from string: {error}") from None
    return {URL: text}


def _url_faults(text: str) -> Faults:
    try:
        parse_url(text)
    except ValueError as error:
        return (str(error),)
    return ()


def _parts(value: Any) -> GoUrl:
    if not isinstance(value, dict) or URL not in value:
        raise TypeError("no such overload")
    return parse_url(value[URL])


def _as_prefix(check: Callable[[str], Faults]) -> Callable[[str], Faults]:
    """The check of a name to which something is appended: a hyphen at its end does not count."""
    return lambda text: check(f"{text[:-2]}a" if len(text) > 1 and text[-1] == "-" else text)


def _as_format(name: str, fault: str) -> Callable[[str], Faults]:
    return lambda text: () if has_format(text, name) else (fault,)


_FORMATS: Mapping[str, Callable[[str], Faults]] = {
    "dns1123Label": dns_label_faults,
    "dns1123Subdomain": subdomain_faults,
    "dns1035Label": label_1035_faults,
    "qualifiedName": key_faults,
    "dns1123LabelPrefix": _as_prefix(dns_label_faults),
    "dns1123SubdomainPrefix": _as_prefix(subdomain_faults),
    "dns1035LabelPrefix": _as_prefix(label_1035_faults),
    "labelValue": value_faults,
    "uri": _url_faults,
    "uuid": _as_format("uuid", "does not match the UUID format"),
    "byte": _as_format("byte", "invalid base64"),
    "date": _as_format("date", "invalid date"),
    "datetime": _as_format("datetime", "invalid datetime"),
}


def _constant(name: str) -> Callable[[], dict[str, str]]:
    return lambda: {FORMAT: name}


def _named(name: str) -> dict[str, list[Any]]:
    return {OPTIONAL: [{FORMAT: name}] if name in _FORMATS else []}


def _validate(form: Any, text: str) -> dict[str, list[Any]]:
    if not isinstance(form, dict) or FORMAT not in form:
        raise TypeError("no such overload")
    faults = _FORMATS[form[FORMAT]](text)
    return {OPTIONAL: [list(faults)] if faults else []}


def _found(value: Any) -> list[Any]:
    if OPTIONAL not in value:
        raise TypeError("no such overload")
    return list(value[OPTIONAL])


def _value(value: Any) -> Any:
    found = _found(value)
    if not found:
        raise ValueError("optional.none() dereference")
    return found[0]
