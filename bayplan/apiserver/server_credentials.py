"""Server credentials: the server's certificate and the token of its clients, the same after a restart."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Sequence
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, NamedTuple

from ..cluster.certificates import Certificate, make_certificate
from ..cluster.private_files import make_private_folder, read_private, write_private
from ..errors import InputError

TOKEN_BYTES = 24
TOKEN_LENGTH = 32
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{%d}" % TOKEN_LENGTH)
ADVICE = "Try: remove the file names beside it, for new ones"


class ServerCredentials(NamedTuple):
    """A certificate, and the token that requests must carry."""

    certificate: Certificate
    token: str


def make_credentials(folder: Path | None, names: Sequence[str]) -> ServerCredentials:
    """New credentials for a server with these names; with a `folder`, those of its last run if they
    were for the same names. Raises InputError when the folder cannot be used."""
    files = [] if folder is None else [folder / part for part in ("tls.crt", "tls.key", "token")]
    listed = "\n".join(names)
    try:
        if folder is not None:
            make_private_folder(folder)
            if read_private(folder / "names") == listed.encode():
                return _read(files)
        made = ServerCredentials(make_certificate(names=names), token_urlsafe(TOKEN_BYTES))
        contents = (made.certificate.cert, made.certificate.key, made.token.encode())
        for file, content in zip(files, contents, strict=False):
            write_private(file, content)
        if folder is not None:  # last: only a complete set is used again
            write_private(folder / "names", listed.encode())
    except OSError as error:
        expected = "expected a folder for the server's certificate and token"
        raise InputError(f"{folder}: {expected}; got {error.strerror}") from None
    return made


def _read(files: Sequence[Path]) -> ServerCredentials:
    """The certificate, key and token of an earlier run; raises InputError if one is missing or damaged."""
    cert, key, token = ((read_private(file) or b"") for file in files)
    if not _TOKEN.fullmatch(token):
        expected = f"expected the token of an earlier run, {TOKEN_LENGTH} letters, digits, - and _"
        raise InputError(f"{files[2]}: {expected}; got {_found(token)}. {ADVICE}")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files[0], files[1], password="")  # "": never a prompt
    except (FileNotFoundError, ssl.SSLError) as error:
        expected = "expected the certificate of an earlier run and its key"
        got = error.reason if isinstance(error, ssl.SSLError) and error.reason else "none"
        raise InputError(f"{files[0]}, {files[1]}: {expected}; got {got}. {ADVICE}") from None
    return ServerCredentials(Certificate(cert, key), token.decode())


def _found(token: bytes) -> str:
    return f"{len(token)} bytes" if token else "none"


NAME = "bayplan"


def make_kubeconfig(url: str, certificate: bytes | None = None, token: str = "") -> dict[str, Any]:
    """The configuration for one cluster; with HTTPS, `certificate` is its certificate authority."""
    cluster: dict[str, Any] = {"server": url}
    if certificate is not None:
        cluster["certificate-authority-data"] = base64.b64encode(certificate).decode()
    user = {"token": token} if token else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
        "preferences": {},
    }
