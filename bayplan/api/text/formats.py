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
from typing import NamedTuple

from .name_faults import dns_label_faults, subdomain_faults

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


def _is_address(version: int) -> Callable[[str], bool]:
    return lambda text: ipaddress.ip_address(text).version == version


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "byte": lambda text: base64.b64decode(text, validate=True) is not None,
    "cidr": lambda text: "/" in text and ipaddress.ip_interface(text) is not None,
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
    "uri": lambda text: parse_url(text) is not None,
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


_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_HOST = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"]|[^\x00-\x7f]|%[89A-Fa-f][0-9A-Fa-f])*")
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*", re.ASCII)
_SAFE = re.compile(r"[A-Za-z0-9$&+,/:;=@\-_.~]", re.ASCII)
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


class GoUrl(NamedTuple):
    """The parts of an address: host with its port, path and query as they were written."""

    scheme: str
    host: str
    path: str
    query: str

    @property
    def host_name(self) -> str:
        """The host without its port and brackets."""
        name = self.host.removesuffix(f":{self.port}") if ":" in self.host else self.host
        name = name.removesuffix(":") if name.endswith(":") and not self.port else name
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name

    @property
    def port(self) -> str:
        """The port, empty without one."""
        found = re.search(r":([0-9]*)$", self.host)
        return found[1] if found else ""

    @property
    def escaped_path(self) -> str:
        """The path with the escapes that it needs."""
        if _PATH.fullmatch(self.path):
            return self.path
        letters = (chr(byte) for byte in _unescaped(self.path))
        return "".join(c if _SAFE.fullmatch(c) else f"%{ord(c):02X}" for c in letters)

    @property
    def values(self) -> dict[str, list[str]]:
        """The values of the query by their names; pairs that cannot be read are left out."""
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
                name, _, value = pair.partition("=")
                found.setdefault(_value(name), []).append(_value(value))
        return found


def parse_url(text: str) -> GoUrl:
    """The parts of an absolute address or of a path; raises ValueError with Go's words."""
    fault = _fault(text)
    if fault:
        raise ValueError(f'parse "{text}": {fault}')
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("#")[0].partition("?")
    host, path = "", rest
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, below = rest[2:].partition("/")
        host, path = _text(authority.rpartition("@")[2]), slash + below
    return GoUrl(scheme, host, path if path.startswith("/") or not scheme else "", query)


def _unescaped(text: str) -> bytes:
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), text.encode())


def _text(text: str) -> str:
    return _unescaped(text).decode(errors="replace")


def _value(text: str) -> str:
    """A name or value of a query, in which a plus is a space."""
    return _text(text.replace("+", " "))


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    return (match["scheme"].lower(), text[match.end() :]) if match else ("", text)


def _fault(text: str) -> str:
    """The reason why the address is refused, empty if it is not."""
    if _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    if text.startswith(":"):
        return "missing protocol scheme"
    scheme, rest = _scheme(text)
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return "" if scheme or text == "*" else "invalid URI for request"
    path = rest
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, below = rest[2:].partition("/")
        path = slash + below
        fault = _authority_fault(authority)
        if fault:
            return fault
    found = _BAD_ESCAPE.search(path)
    return f'invalid URL escape "{path[found.start() : found.start() + 3]}"' if found else ""


def _authority_fault(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and (not _USER.fullmatch(user) or _BAD_ESCAPE.search(user)):
        return "net/url: invalid userinfo"
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        port = host[end + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        return f'invalid port "{port}" after host'
    found = _HOST.match(host)
    if found is not None and found.end() < len(host):
        return f'invalid character "{host[found.end()]}" in host name'
    return ""
