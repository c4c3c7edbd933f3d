"""TLS: the server's certificate."""

from __future__ import annotations

import logging
import ssl
import tempfile
from pathlib import Path

from ..clock import Clock, SystemClock
from ..cluster.certificates import make_certificate
from ..errors import InputError

LOOK_AGAIN_S = 60.0
"""How often the files are checked for renewal."""

log = logging.getLogger(__name__)


class ServerCertificate:
    """The SSL context of a server; without files, with a new self-signed certificate.

    `cluster.certificates` signs once, here; handshakes use OpenSSL. Raises InputError when the
    files are not a certificate and its key.
    """

    def __init__(
        self,
        cert_file: Path | None = None,
        key_file: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        if (cert_file is None) != (key_file is None):
            given, missing = ("--tls-cert-file", "--tls-private-key-file")
            if cert_file is None:
                given, missing = missing, given
            raise InputError(f"{missing}: expected a file, as there is {given}; got nothing")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._clock = clock or SystemClock()
        self._checked_at = self._clock.monotonic()
        self._files: tuple[Path, Path] | None = None
        if cert_file is not None and key_file is not None:
            self._files = cert_file, key_file
            self._times = self._read_times()
            _load(self.context, cert_file, key_file)
        else:
            _load_made(self.context)

    def refresh(self) -> None:
        """Reload the files for new connections; invalid files keep the old certificate."""
        now = self._clock.monotonic()
        if self._files is None or now < self._checked_at + LOOK_AGAIN_S:
            return
        self._checked_at = now
        try:
            times = self._read_times()
            if times != self._times:
                _load(self.context, *self._files)
                self._times = times
                log.info("showing the certificate that is in %s now", self._files[0])
        except InputError as error:
            log.warning("keeping the old certificate: %s", error)

    def _read_times(self) -> list[int]:
        """Modification times of the files."""
        assert self._files is not None
        found = []
        for path in self._files:
            try:
                found.append(path.stat().st_mtime_ns)
            except OSError as error:
                raise InputError(f"{path}: expected a file to read; got {error.strerror}") from None
        return found


def _load_made(context: ssl.SSLContext) -> None:
    certificate = make_certificate()
    with tempfile.TemporaryDirectory() as folder:
        cert, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
        cert.write_bytes(certificate.cert)
        key.touch(mode=0o600)
        key.write_bytes(certificate.key)
        context.load_cert_chain(cert, key)


def _load(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    for path in (cert_file, key_file):
        try:
            path.open("rb").close()
        except OSError as error:
            raise InputError(f"{path}: expected a file to read; got {error.strerror}") from None

    def refuse_password() -> str:
        # Without this OpenSSL would prompt on the terminal, and a server would block for ever.
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
