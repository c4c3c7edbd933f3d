"""Address rules: IP addresses and blocks of them that kube-apiserver refuses.

Mirrors IsValidIPForLegacyField and IsValidCIDRForLegacyField of k8s.io/apimachinery/pkg/util/validation/ip.go, as they
are with the gate StrictIPCIDRValidation, which v1.36 has on.
"""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import msgspec

from .field_causes import Part

Address = IPv4Address | IPv6Address

_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])", re.ASCII)
_BITS = re.compile(r"[0-9]{1,3}", re.ASCII)
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_LINK_MULTICAST = {4: ip_network("224.0.0.0/24"), 6: ip_network("ff02::/16")}
_BLOCK_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def address_faults(value: Any) -> tuple[str, ...]:
    """The faults of an address."""
    text = str(value)
    address = lenient_address(text)
    if address is None:
        return (_ADDRESS_RULE,)
    if _strict(text) is None:
        return ("must not have leading 0s",)
    return ("must not be an IPv4-mapped IPv6 address",) if _is_mapped(address) else ()


def block_faults(value: Any) -> tuple[str, ...]:
    """The faults of a block of addresses."""
    begin, _, bits = str(value).partition("/")
    address = lenient_address(begin)
    is_whole = address is not None and _BITS.fullmatch(bits) is not None
    if address is None or not is_whole or int(bits) > address.max_prefixlen:
        return (_BLOCK_RULE,)
    if _strict(begin) is None or str(int(bits)) != bits:
        return ("must not have leading 0s in IP or prefix length",)
    if _is_mapped(address):
        return ("must not have an IPv4-mapped IPv6 address",)
    if ip_network((address, int(bits)), strict=False).network_address != address:
        return ("must not have bits set beyond the prefix length",)
    return ()


def endpoint_faults(value: str) -> tuple[str, ...]:
    """The faults of an address that must be reachable from other hosts."""
    address = lenient_address(value)
    if address is None or address_faults(value):
        return address_faults(value)
    places = (
        (address.is_unspecified, f"be unspecified ({value})"),
        (address.is_loopback, "be in the loopback range (127.0.0.0/8, ::1/128)"),
        (address.is_link_local, "be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (
            address in _LINK_MULTICAST[address.version],
            "be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    )
    return tuple(f"may not {place}" for is_there, place in places if is_there)


def check_block(block: Part) -> None:
    """Check a block of a NetworkPolicy, without others."""
    if not block.needs("cidr"):
        return
    whole = block.get("cidr")
    block.check("cidr", block_faults)
    for name, part in block.items("except"):
        block.check(name, block_faults, part)
        is_valid = not block_faults(whole) and not block_faults(part)
        if is_valid and not _is_part(str(part), str(whole)):
            block.invalid(name, "must be a strict subset of `cidr`", part)


def _strict(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id is not None else address


def lenient_address(text: str) -> Address | None:
    """The address; decimal numbers may have leading zeros."""
    return _strict(_ZEROS.sub("", text) if "." in text else text)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _is_part(part: str, whole: str) -> bool:
    one, other = ip_network(part), ip_network(whole)
    if one.version != other.version or one.prefixlen <= other.prefixlen:
        return False
    return one.network_address in other


def quoted(text: str) -> str:
    """The text in double quotes, as in Go's messages."""
    return msgspec.json.encode(text).decode()


def warn_of_address(part: Part, name: str, value: Any, what: str = "IPv6 address") -> None:
    """Warn of an address that is not written in its canonical form."""
    text = str(value or "")
    begin, slash, size = text.partition("/")
    try:
        address = ipaddress.IPv6Address(begin)
    except ValueError:
        return  # an IPv4 address, or a refused one
    form = f"{address}{slash}{size}"
    if form != text:
        rule = f"should be in RFC 5952 canonical format ({quoted(form)})"
        part.warn(name, f"{what} {quoted(text)} {rule}")


def warn_of_block(part: Part, name: str, value: Any) -> None:
    """Warn of a block of addresses that is not written in its canonical form."""
    warn_of_address(part, name, value, "IPv6 CIDR value")
