"""Addresses of the web as Go's package net/url reads them.

Mirrors ParseRequestURI and the accessors of its type URL.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
    rest, _, _ = rest.partition("#")
    rest, _, query = rest.partition("?")
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
