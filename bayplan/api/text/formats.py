"""Formats: whether a text has the format that a schema names.

Mirrors k8s.io/kube-openapi/pkg/validation/strfmt, as far as the formats are used.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime

from .name_faults import dns_label_faults, subdomain_faults
from .urls import parse_url

_DURATION = re.compile(
    r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h)(?:[\d.]+(?:ns|us|µs|ms|s|m|h))*"
)
_WORDS = re.compile(
    r"\d+\s*(?:nanoseconds?|ns|microseconds?|µs|us|milliseconds?|ms|seconds?|s|minutes?|m|hours?|h|days?|d|weeks?|w)"
    r"(?:\s+\d+\s*\w+)*"
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[-+]\d\d:\d\d)")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_MAC = re.compile(r"(?i)[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}")
_MAIL = re.compile(r"[^@\s]+@[^@\s]+")


def has_format(text: str, name: str) -> bool:
    """Whether the text has the format; unknown formats are not checked."""
    check = _CHECKS.get(name)
    if check is None:
        return True
    try:
        return check(text)
    except (ValueError, binascii.Error):
        return False


def _is_time(text: str) -> bool:
    return bool(_TIME.fullmatch(text) and datetime.fromisoformat(text.upper()))


def _is_bytes(text: str) -> bool:
    return base64.b64decode(text, validate=True) is not None


def _is_address(version: int) -> Callable[[str], bool]:
    return lambda text: ipaddress.ip_address(text).version == version


def _is_network(text: str) -> bool:
    return "/" in text and ipaddress.ip_interface(text) is not None


def _is_uri(text: str) -> bool:
    return parse_url(text) is not None


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "byte": _is_bytes,
    "cidr": _is_network,
    "date": lambda text: bool(date.fromisoformat(text)) and len(text) == 10,
    "date-time": _is_time,
    "datetime": _is_time,
    "duration": lambda text: bool(
        _DURATION.fullmatch(text) or _WORDS.fullmatch(text) or text == "0"
    ),
    "email": lambda text: bool(_MAIL.fullmatch(text)),
    "hexcolor": lambda text: bool(re.fullmatch(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})", text)),
    "hostname": lambda text: not subdomain_faults(text.lower()),
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "k8s-long-name": lambda text: not subdomain_faults(text),
    "k8s-short-name": lambda text: not dns_label_faults(text),
    "mac": lambda text: bool(_MAC.fullmatch(text)),
    "uri": _is_uri,
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
}
_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}
UNCHECKED = frozenset(
    {
        "bsonobjectid",
        "creditcard",
        "isbn",
        "isbn10",
        "isbn13",
        "password",
        "rgbcolor",
        "ssn",
        "uuid3",
        "uuid4",
        "uuid5",
    }
)
"""Formats of Kubernetes that are not checked here."""


def is_format(name: str, kind: str) -> bool:
    """Whether Kubernetes has the format for values of this type, empty for any."""
    if kind in ("", "string"):
        return name.replace("-", "") in _TEXTS
    return name in _NUMBERS.get(kind, ())


_TEXTS = frozenset(name.replace("-", "") for name in (*_CHECKS, *UNCHECKED))
