"""Text formats: the functions about URLs and named formats that Kubernetes adds to CEL.

Mirrors staging/src/k8s.io/apiserver/pkg/cel/library/{urls,format}.go. A URL or a format is a map with one entry. The
result of `validate` is one, too, with the methods of an optional value: functions in Python cannot return those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from ..rules.address_rules import quoted
from ..text.formats import GoUrl, has_format, parse_url
from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    label_1035_faults,
    subdomain_faults,
    value_faults,
)
from .device_expressions import Function, is_parsed

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


def _tagged(value: Any, tag: str) -> Any:
    """The content of a value of one of the types here."""
    if not isinstance(value, dict) or tag not in value:
        raise TypeError("no such overload")
    return value[tag]


def _parts(value: Any) -> GoUrl:
    return parse_url(_tagged(value, URL))


def _as_prefix(check: Callable[[str], Faults]) -> Callable[[str], Faults]:
    """Make the check of a name that is used as a prefix, and may end with a hyphen."""
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
    faults = _FORMATS[_tagged(form, FORMAT)](text)
    return {OPTIONAL: [list(faults)] if faults else []}


def _found(value: Any) -> list[Any]:
    return list(_tagged(value, OPTIONAL))


def _value(value: Any) -> Any:
    found = _found(value)
    if not found:
        raise ValueError("optional.none() dereference")
    return found[0]


IP, CIDR = "@ip", "@cidr"
Address = IPv4Address | IPv6Address
_BITS = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)
_BROADCAST = IPv4Address("255.255.255.255")


def address_functions(cel: Any) -> list[Function]:
    """The functions in the form in which they are declared."""
    kind = cel.Type
    text, dyn, yes, number = kind.STRING, kind.DYN, kind.BOOL, kind.INT
    return [
        ("ip", dyn, [text], False, lambda given: {IP: str(parse_address(given))}),
        ("ip", dyn, [dyn], True, lambda cidr: {IP: str(_prefix(cidr)[0])}),
        ("ip.isCanonical", yes, [text], False, lambda given: str(parse_address(given)) == given),
        ("isIP", yes, [text], False, partial(is_parsed, parse_address)),
        ("family", number, [dyn], True, lambda ip: _address(ip).version),
        ("isUnspecified", yes, [dyn], True, lambda ip: _address(ip).is_unspecified),
        ("isLoopback", yes, [dyn], True, lambda ip: _address(ip).is_loopback),
        ("isLinkLocalMulticast", yes, [dyn], True, lambda ip: _is_local_group(_address(ip))),
        ("isLinkLocalUnicast", yes, [dyn], True, lambda ip: _address(ip).is_link_local),
        ("isGlobalUnicast", yes, [dyn], True, lambda ip: _is_global(_address(ip))),
        ("cidr", dyn, [text], False, lambda given: _network(*parse_prefix(given))),
        ("isCIDR", yes, [text], False, partial(is_parsed, parse_prefix)),
        ("containsIP", yes, [dyn, dyn], True, _contains_address),
        ("containsCIDR", yes, [dyn, dyn], True, _contains_network),
        ("prefixLength", number, [dyn], True, lambda cidr: _prefix(cidr)[1]),
        ("masked", dyn, [dyn], True, lambda cidr: _network(*_masked(*_prefix(cidr)))),
        ("string", text, [kind.Map(text, dyn)], False, _shown),
    ]


def parse_address(text: str) -> Address:
    """The address; raises ValueError for zones and IPv4 addresses in IPv6, too."""
    try:
        found = ip_address(text)
    except ValueError:
        fault = f"ParseAddr({quoted(text)}): unable to parse IP"
        shown = f"IP Address {quoted(text)} parse error during conversion from string"
        raise ValueError(f"{shown}: {fault}") from None
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            raise ValueError(f"IP address {quoted(text)} with zone value is not allowed")
        if found.ipv4_mapped is not None:
            raise ValueError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return found


def parse_prefix(text: str) -> tuple[Address, int]:
    """The address and the length of a network, whose address may have bits behind it."""
    address, slash, bits = text.rpartition("/")
    fault = "network address parse error during conversion from string"
    try:
        found = parse_address(address)
    except ValueError as error:
        shown = (
            str(error) if "mapped" in str(error) else f"{fault}: netip.ParsePrefix({quoted(text)})"
        )
        raise ValueError(f"{fault}: {shown}") from None
    if not slash or not _BITS.fullmatch(bits) or int(bits) > found.max_prefixlen:
        raise ValueError(f"{fault}: {fault}: netip.ParsePrefix({quoted(text)}): bad bits") from None
    return found, int(bits)


def _address(value: Any) -> Address:
    return ip_address(_tagged(value, IP))


def _prefix(value: Any) -> tuple[Address, int]:
    address, _, bits = _tagged(value, CIDR).partition("/")
    return ip_address(address), int(bits)


def _network(address: Address, bits: int) -> dict[str, str]:
    return {CIDR: f"{address}/{bits}"}


def _masked(address: Address, bits: int) -> tuple[Address, int]:
    return ip_network((address, bits), strict=False).network_address, bits


def _shown(value: Any) -> str:
    return str(_tagged(value, IP if IP in value else CIDR))


def _is_local_group(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in ip_network("224.0.0.0/24")
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _is_global(address: Address) -> bool:
    is_special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not is_special and not address.is_link_local and address != _BROADCAST


def _contains_address(cidr: Any, other: Any) -> bool:
    address = parse_address(other) if isinstance(other, str) else _address(other)
    network, bits = _prefix(cidr)
    same = network.version == address.version
    return same and _masked(address, bits) == _masked(network, bits)


def _contains_network(cidr: Any, other: Any) -> bool:
    within, length = parse_prefix(other) if isinstance(other, str) else _prefix(other)
    network, bits = _prefix(cidr)
    same = network.version == within.version and bits <= length
    return same and _masked(within, bits) == _masked(network, bits)
