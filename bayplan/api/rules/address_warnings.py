"""Address warnings: IP addresses and blocks of them that kube-apiserver accepts and warns of.

Mirrors GetWarningsForIP and GetWarningsForCIDR of k8s.io/apimachinery/pkg/util/validation/ip.go, without those about
values that are refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

import msgspec


def quoted(text: str) -> str:
    """The text in double quotes, as in Go's messages."""
    return msgspec.json.encode(text).decode()


def address_warnings(value: Any, path: str) -> Iterator[str]:
    """Yield the warnings about an address."""
    yield from _form_warnings(value, path, "IPv6 address")


def block_warnings(value: Any, path: str) -> Iterator[str]:
    """Yield the warnings about a block of addresses."""
    yield from _form_warnings(value, path, "IPv6 CIDR value")


def _form_warnings(value: Any, path: str, what: str) -> Iterator[str]:
    text = str(value or "")
    begin, slash, size = text.partition("/")
    try:
        address = ipaddress.IPv6Address(begin)
    except ValueError:
        return  # an IPv4 address, or a refused one
    if f"{address}{slash}{size}" != text:
        form = quoted(f"{address}{slash}{size}")
        yield f"{path}: {what} {quoted(text)} should be in RFC 5952 canonical format ({form})"
