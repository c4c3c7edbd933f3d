"""Certificates: a self-signed certificate for local servers, for the loopback and given names.

ECDSA over P-256 and DER by hand: the embedded API server and the tests need a single certificate,
without a further package. The arithmetic is not constant-time; it runs once, when the certificate is
made. Connections are the TLS library's.
"""

import base64
import hashlib
import ipaddress
import secrets
from collections.abc import Sequence
from typing import NamedTuple

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Point = tuple[int, int] | None

SEQUENCE, SET, INTEGER, BITS, OCTETS, TEXT, TIME = 0x30, 0x31, 2, 3, 4, 0x0C, 0x18
CURVE = bytes.fromhex("06082a8648ce3d030107")
COMMON_NAME, ORGANIZATION = bytes.fromhex("0603550403"), bytes.fromhex("060355040a")
EC_KEY = bytes.fromhex("06072a8648ce3d0201")
ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")


class Certificate(NamedTuple):
    """A certificate and its key, both as PEM."""

    cert: bytes
    key: bytes


def make_certificate(
    common_name: str = "bayplan",
    organizations: Sequence[str] = (),
    names: Sequence[str] = ("localhost", "127.0.0.1", "::1"),
) -> Certificate:
    """A new self-signed certificate for these host names and addresses."""
    secret = secrets.randbelow(ORDER - 1) + 1
    point = multiply(secret, BASE)
    assert point is not None
    public = b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")
    body = certificate_body(public, _subject(common_name, organizations), names)
    signature = der(BITS, b"\0" + sign(secret, body))
    cert = der(SEQUENCE, body + ECDSA_SHA256 + signature)
    key = der(
        SEQUENCE,
        number(1)
        + der(OCTETS, secret.to_bytes(32, "big"))
        + der(0xA0, CURVE)
        + der(0xA1, der(BITS, b"\0" + public)),
    )
    return Certificate(pem("CERTIFICATE", cert), pem("EC PRIVATE KEY", key))


def _subject(common_name: str, organizations: Sequence[str]) -> bytes:
    parts = [(ORGANIZATION, text) for text in organizations] + [(COMMON_NAME, common_name)]
    return der(
        SEQUENCE,
        b"".join(der(SET, der(SEQUENCE, kind + der(TEXT, text.encode()))) for kind, text in parts),
    )


def _alternative_name(name: str) -> bytes:
    """A host name or an address among the names of a certificate."""
    try:
        return der(0x87, ipaddress.ip_address(name).packed)
    except ValueError:
        return der(0x82, name.encode("idna"))


def certificate_body(public: bytes, name: bytes, names: Sequence[str]) -> bytes:
    """The signed part: names, validity, the public key."""
    valid = der(SEQUENCE, der(TIME, b"20000101000000Z") + der(TIME, b"22000101000000Z"))
    key = der(SEQUENCE, der(SEQUENCE, EC_KEY + CURVE) + der(BITS, b"\0" + public))
    hosts = der(SEQUENCE, b"".join(map(_alternative_name, names)))
    is_ca = der(SEQUENCE, bytes.fromhex("0101ff"))
    extensions = der(
        SEQUENCE,
        der(SEQUENCE, bytes.fromhex("0603551d11") + der(OCTETS, hosts))
        + der(SEQUENCE, bytes.fromhex("0603551d130101ff") + der(OCTETS, is_ca)),
    )
    version = der(0xA0, number(2))
    return der(
        SEQUENCE,
        version
        + number(secrets.randbits(63) | 1)
        + ECDSA_SHA256
        + name
        + valid
        + name
        + key
        + der(0xA3, extensions),
    )


def sign(secret: int, message: bytes) -> bytes:
    """An ECDSA signature, as DER."""
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    while True:
        nonce = secrets.randbelow(ORDER - 1) + 1
        point = multiply(nonce, BASE)
        assert point is not None
        r = point[0] % ORDER
        s = pow(nonce, -1, ORDER) * (digest + r * secret) % ORDER
        if r and s:
            return der(SEQUENCE, number(r) + number(s))


def multiply(times: int, point: Point) -> Point:
    """Multiple of `point` on the curve."""
    total: Point = None
    while times:
        if times & 1:
            total = add(total, point)
        point = add(point, point)
        times >>= 1
    return total


def add(first: Point, second: Point) -> Point:
    """The sum of two points of the curve; None is the neutral element."""
    if first is None or second is None:
        return first or second
    (x1, y1), (x2, y2) = first, second
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    if first == second:
        slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, P) % P
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, P) % P
    x3 = (slope * slope - x1 - x2) % P
    return x3, (slope * (x1 - x3) - y1) % P


def der(tag: int, content: bytes) -> bytes:
    """A value with its tag and length."""
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def number(value: int) -> bytes:
    """A non-negative INTEGER."""
    return der(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def pem(what: str, content: bytes) -> bytes:
    """The content as PEM."""
    text = base64.encodebytes(content).decode()
    return f"-----BEGIN {what}-----\n{text}-----END {what}-----\n".encode()
