"""Host names: whether a request was sent to this machine under a name that only it can have."""

from __future__ import annotations

import ipaddress


def host_of(netloc: str) -> str:
    """The name or address in a Host header, in lower case, without its port."""
    name, colon, port = netloc.rpartition(":")
    name = (name if colon and port.isdecimal() else netloc).lower()
    return name.removeprefix("[").removesuffix("]")


def is_unforgeable(host: str) -> bool:
    """Whether this is an address or localhost: no other name can have been pointed at this machine (DNS rebinding)."""
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
