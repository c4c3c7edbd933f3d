"""Certificates: a self-signed certificate for local servers, for the loopback and given names."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# Host names: whether a request was sent to this machine under a name that only it can have.


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


VALID_FROM = datetime(2000, 1, 1, tzinfo=UTC)
"""Far in the past, because the clock of a client may be wrong."""
VALID_UNTIL = datetime(2200, 1, 1, tzinfo=UTC)


class Certificate(NamedTuple):
    """A certificate and its key, both as PEM."""

    cert: bytes
    key: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        """Let a context show the certificate, for which OpenSSL needs a file; it is removed at once."""
        with tempfile.NamedTemporaryFile() as file:  # readable for this user alone
            file.write(self.cert + b"\n" + self.key)
            file.flush()
            context.load_cert_chain(file.name)


def make_certificate(
    common_name: str = "bayplan",
    organizations: Sequence[str] = (),
    names: Sequence[str] = ("localhost", "127.0.0.1", "::1"),
) -> Certificate:
    """A new self-signed certificate for these host names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, text) for text in organizations),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(VALID_FROM)
        .not_valid_after(VALID_UNTIL)
        .add_extension(x509.SubjectAlternativeName([_host(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    # The format that kube-apiserver takes for --service-account-signing-key-file, too.
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return Certificate(
        signed.public_bytes(pem), key.private_bytes(pem, form, serialization.NoEncryption())
    )


def _host(name: str) -> x509.GeneralName:
    """A host name or an address among the names of a certificate."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name.encode("idna").decode())
