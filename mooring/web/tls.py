"""TLS: the certificate that the server shows."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from ..cluster.certificates import make_certificate
from ..errors import InputError


def server_context(cert_file: Path | None = None, key_file: Path | None = None) -> ssl.SSLContext:
    """What a server needs for HTTPS; without files it is a certificate made on the spot, signed by itself.

    The arithmetic of `cluster.certificates` signs once, here; handshakes are OpenSSL's. Raises InputError when the
    files are not a certificate and its key.
    """
    if (cert_file is None) != (key_file is None):
        given, missing = ("--tls-cert-file", "--tls-private-key-file")
        if cert_file is None:
            given, missing = missing, given
        raise InputError(f"{missing}: expected a file, as there is {given}; got nothing")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if cert_file is not None and key_file is not None:
        _load(context, cert_file, key_file)
        return context
    certificate = make_certificate()
    with tempfile.TemporaryDirectory() as folder:
        cert, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
        cert.write_bytes(certificate.cert)
        key.touch(mode=0o600)
        key.write_bytes(certificate.key)
        context.load_cert_chain(cert, key)
    return context


def _load(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    for path in (cert_file, key_file):
        try:
            path.open("rb").close()
        except OSError as error:
            raise InputError(f"{path}: expected a file to read; got {error.strerror}") from None

    def refuse_password() -> str:
        # Without this OpenSSL would ask on the terminal, and a server would wait there for ever.
        raise InputError(f"{key_file}: expected a key without password; got an encrypted one")

    try:
        context.load_cert_chain(cert_file, key_file, refuse_password)
    except ssl.SSLError as error:
        problem = error.reason or "something else"
        if problem == "KEY_VALUES_MISMATCH":
            raise InputError(f"{key_file}: expected the key of {cert_file}; got another") from None
        raise InputError(
            f"{cert_file}, {key_file}: expected a certificate and its key, both PEM; got {problem}"
        ) from None
