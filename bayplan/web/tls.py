"""TLS: the server's certificate, and metrics of the work that follows it and other settings."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from ..clock import Clock, SystemClock
from ..cluster.private_files import write_private
from ..errors import InputError, os_errors_named
from ..observe.families import CounterFamily, Family, GaugeFamily, HistogramFamily
from ..observe.series import exponential_buckets

if TYPE_CHECKING:
    from ..cluster.certificates import Certificate

LOOK_AGAIN_S = 60.0
"""Interval of the checks of the files for renewal."""

PAIR_NAME = "kube-scheduler"
TLS_VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
TLS13_CIPHERS = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")

log = logging.getLogger(__name__)
SERVING_FILES = "DynamicCABundle-serving-cert"
SERVING_CERTIFICATE = "DynamicServingCertificateController"
CLIENT_AUTHORITIES = "DynamicConfigMapCABundle-client-ca"
REQUEST_HEADERS = "RequestHeaderAuthRequestController"
BUCKETS_S = exponential_buckets(10e-9, 10, 10)


class ServingTls(msgspec.Struct, frozen=True):
    """The certificate of a server and its protocol versions, by the flags --tls-* and --cert-dir."""

    cert_file: Path | None = None
    key_file: Path | None = None
    folder: Path | None = None
    """Folder of the certificate, which is written if it is missing; used if no files are given."""
    min_version: str = ""
    ciphers: Sequence[str] = ()
    """Cipher suites of TLS up to 1.2, by their IANA names; those of 1.3 cannot be chosen."""
    by_name: Sequence[tuple[Path, Path, Sequence[str]]] = ()
    """Certificate and key for other names; a name may begin with `*.`."""


class ServerCertificate:
    """The SSL context of a server; without files, with a new self-signed certificate.

    Raises InputError when the files are not a certificate and its key.
    """

    def __init__(
        self,
        options: ServingTls | None = None,
        clock: Clock | None = None,
        work: WorkQueues | None = None,
    ) -> None:
        options = options or ServingTls()
        self._work = work or WorkQueues()
        cert_file, key_file = options.cert_file, options.key_file
        if (cert_file is None) != (key_file is None):
            given, missing = ("--tls-cert-file", "--tls-private-key-file")
            if cert_file is None:
                given, missing = missing, given
            raise InputError(f"{missing}: expected a file, as there is {given}; got nothing")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._clock = clock or SystemClock()
        self._checked_at = self._clock.monotonic()
        self._files: tuple[Path, Path] | None = None
        self._limit(options)
        if cert_file is None and options.folder is not None:
            cert_file, key_file = _made_in(options.folder)
        if cert_file is not None and key_file is not None:
            self._files = cert_file, key_file
            with self._work.working(SERVING_FILES):
                self._times = self._read_times()
            with self._work.working(SERVING_CERTIFICATE):
                _load(self.context, cert_file, key_file)
        else:
            _make().load_into(self.context)

    def _limit(self, options: ServingTls) -> None:
        if options.min_version:
            self.context.minimum_version = TLS_VERSIONS[options.min_version]
        if options.ciphers:
            names = [_openssl_name(name) for name in options.ciphers]
            try:
                self.context.set_ciphers(":".join(filter(None, names)) or "DEFAULT")
            except ssl.SSLError:
                problem = f"expected known cipher suites; got {', '.join(options.ciphers)}"
                raise InputError(f"--tls-cipher-suites: {problem}") from None
        contexts: dict[str, ssl.SSLContext] = {}
        for cert, key, names_of in options.by_name:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            _load(context, cert, key)
            contexts |= dict.fromkeys(names_of or _names_in(cert), context)
        if contexts:
            self.context.sni_callback = lambda connection, name, _: _choose(
                connection, name, contexts
            )

    def refresh(self) -> None:
        """Reload the files for new connections; invalid files keep the old certificate."""
        now = self._clock.monotonic()
        if self._files is None or now < self._checked_at + LOOK_AGAIN_S:
            return
        self._checked_at = now
        try:
            with self._work.working(SERVING_FILES):
                times = self._read_times()
            if times != self._times:
                with self._work.working(SERVING_CERTIFICATE):
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
            with os_errors_named(path, "a file to read"):
                found.append(path.stat().st_mtime_ns)
        return found


def _openssl_name(name: str) -> str | None:
    """OpenSSL's name of a cipher suite; None for a suite of TLS 1.3, as these are always on."""
    if name in TLS13_CIPHERS:
        return None
    exchange, joint, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not joint:
        raise InputError(f'--tls-cipher-suites: expected IANA names; got "{name}"')
    cipher = cipher.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    cipher = cipher.replace("_CBC_SHA", "_SHA").replace("3DES_EDE_SHA", "DES_CBC3_SHA")
    parts = [] if exchange == "RSA" else [exchange]
    return "-".join([*parts, cipher]).replace("_", "-")


def _names_in(cert: Path) -> list[str]:
    """The names in a certificate."""
    decoded = ssl._ssl._test_decode_cert(str(cert))  # type: ignore[attr-defined]  # not in typeshed
    names = [value for kind, value in decoded.get("subjectAltName", ()) if kind == "DNS"]
    return names or [v for part in decoded["subject"] for k, v in part if k == "commonName"]


def _choose(
    connection: ssl.SSLObject, name: str | None, contexts: dict[str, ssl.SSLContext]
) -> None:
    """Let the connection use the certificate for the name that the client sent."""
    if name is None:
        return
    wild = f"*.{name.partition('.')[2]}"
    found = contexts.get(name) or contexts.get(wild)
    if found is not None:
        connection.context = found


def _made_in(folder: Path) -> tuple[Path, Path]:
    """The certificate in a folder and its key; they are made if they are not there."""
    cert, key = folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key"
    if cert.exists() and key.exists():
        return cert, key
    made = _make()
    with os_errors_named(f"--cert-dir: {folder}", "a folder to write to"):
        folder.mkdir(parents=True, exist_ok=True)
        write_private(key, made.key)
        cert.write_bytes(made.cert)
    return cert, key


def _make() -> Certificate:
    from ..cluster.certificates import make_certificate  # its library takes 0.1 s to import

    return make_certificate()


def _load(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    for path in (cert_file, key_file):
        with os_errors_named(path, "a file to read"):
            path.open("rb").close()

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


class WorkQueues:
    """Metrics of work that is done from time to time, by name, under the names of client-go's work queues.

    Mirrors k8s.io/component-base/metrics/prometheus/workqueue/metrics.go. In kube-scheduler these are the queues of
    controllers that follow certificates and authentication settings. Here such work has no queue: it is done when it is
    due, so that nothing ever waits and the time in the queue is 0.
    """

    def __init__(self) -> None:
        self.adds = CounterFamily("workqueue_adds_total{name}", "Pieces of work.")
        self.retries = CounterFamily("workqueue_retries_total{name}", "Work that was tried again.")
        self.depth = GaugeFamily("workqueue_depth{name}", "Work that waits.")
        self.waited = HistogramFamily(
            "workqueue_queue_duration_seconds{name}", "How long work waited.", BUCKETS_S
        )
        self.worked = HistogramFamily(
            "workqueue_work_duration_seconds{name}", "How long work took.", BUCKETS_S
        )
        self.unfinished = GaugeFamily(
            "workqueue_unfinished_work_seconds{name}", "How long running work has taken so far."
        )
        self.longest = GaugeFamily(
            "workqueue_longest_running_processor_seconds{name}",
            "How long the longest running work has taken so far.",
        )

    @property
    def families(self) -> list[Family]:
        """Metrics to expose."""
        return list(vars(self).values())

    @contextmanager
    def working(self, name: str) -> Iterator[None]:
        """Count a piece of work, and how long it takes."""
        for gauge in (self.depth, self.unfinished, self.longest):
            gauge.labels(name)
        self.adds.labels(name).count += 1
        self.waited.labels(name).observe(0)
        started = perf_counter()
        try:
            yield
        finally:
            self.worked.labels(name).observe(perf_counter() - started)

    def retried(self, name: str) -> None:
        """Count that a piece of work is tried again."""
        self.retries.labels(name).count += 1
