"""Credentials: the server's certificate and the token of its clients, the same after a restart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from secrets import token_urlsafe
from typing import NamedTuple

from ...errors import InputError
from ..certificates import Certificate, make_certificate

TOKEN_BYTES = 24


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
        if folder is not None and _read(folder / "names") == listed:
            cert, key, token = (file.read_bytes() for file in files)
            return ServerCredentials(Certificate(cert, key), token.decode())
        made = ServerCredentials(make_certificate(names=names), token_urlsafe(TOKEN_BYTES))
        contents = (made.certificate.cert, made.certificate.key, made.token.encode())
        for file, content in zip(files, contents, strict=False):
            file.parent.mkdir(parents=True, exist_ok=True)
            _write_private(file, content)
        if folder is not None:  # last: only a complete set is used again
            _write_private(folder / "names", listed.encode())
    except OSError as error:
        expected = "expected a folder for the server's certificate and token"
        raise InputError(f"{folder}: {expected}; got {error.strerror}") from None
    return made


def _read(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


def _write_private(file: Path, content: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
