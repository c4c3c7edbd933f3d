"""Credentials: the API server's address, its certificate check, and our identity.

They come from a kubeconfig (its files, contexts, tokens, certificates and exec plugins) or from the
service account of the pod we run in. Expiring tokens are read or requested again, as in
k8s.io/client-go/transport/token_source.go and plugin/pkg/client/auth/exec.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from ..errors import InputError, os_errors_named
from .kubeconfig import Kubeconfig, Section, read_kubeconfig

REFRESH_S = 60.0
"""Seconds that a token is used before its file is read again."""
EXPIRY_MARGIN_S = 300.0
"""A token of a plugin is requested again this long before it expires."""
DEFAULT_KUBECONFIG = Path("~/.kube/config")
DEFAULT_NAMESPACE = "default"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder in which a pod has `token`, `ca.crt` and `namespace`."""


def is_cluster_configured() -> bool:
    """Whether kubectl would find a cluster to talk to, if no option named one."""
    return bool(
        os.environ.get("KUBECONFIG")
        or DEFAULT_KUBECONFIG.expanduser().exists()
        or os.environ.get("KUBERNETES_SERVICE_HOST")
    )


class Identity(NamedTuple):
    """The client's identity for the server."""

    authorization: str | None = None
    """The Authorization header."""
    certificate: bytes | None = None
    """The client certificate, PEM."""
    key: bytes | None = None
    expires_at: float | None = None
    """As seconds since the epoch."""
    valid_until: float = math.inf
    """The same, of a client certificate from a credential plugin."""


class Place(NamedTuple):
    """Address of the server, and the check of its certificate."""

    server: str
    authority: str | None = None
    """The trusted certificates, PEM; None for those of the system."""
    server_name: str | None = None
    """The name in the server's certificate, if it differs from the host."""
    proxy: str | None = None
    is_verified: bool = True
    context: str = ""
    namespace: str = DEFAULT_NAMESPACE


Identify = Callable[[], Awaitable[Identity]]


class Credentials:
    """The parameters of a connection; made by `load_credentials`."""

    def __init__(self, place: Place, identity: Identity, identify: Identify, source: str) -> None:
        self._place = place
        self._identity = identity
        self._identify = identify
        self._read_at = time.monotonic()
        self.plugin_calls: PluginCalls = Counter()
        """Calls of a credential plugin by exit status and result."""
        self.source = source
        """The kubeconfig's name, for messages."""
        self.server: str = place.server
        """The server's address, without a slash at its end."""
        self.server_name = place.server_name
        """The name in the server's certificate, if it differs from the host."""
        self.proxy = _checked_proxy(place.proxy or _proxy_for(self.server), source)
        self.ssl_context = _make_ssl_context(place, identity, source)

    @property
    def context(self) -> str:
        """The name of the kubeconfig's context; empty for a service account."""
        return self._place.context

    @property
    def namespace(self) -> str:
        """The namespace that kubectl uses when none is given."""
        return self._place.namespace

    @property
    def authorization(self) -> str | None:
        """The Authorization header; None with a client certificate, or without authentication."""
        return self._identity.authorization

    @property
    def certificate_ttl_s(self) -> float:
        """Seconds until the client certificate of a credential plugin expires; infinity without one."""
        return self._identity.valid_until - time.time()

    @property
    def is_stale(self) -> bool:
        """Whether `refresh` is due."""
        return time.monotonic() - self._read_at > REFRESH_S

    async def refresh(self, was_refused: bool = False) -> None:
        """Read tokens again that may have changed; after a refusal, all of them.

        Raises InputError when they cannot be read.
        """
        self._read_at = time.monotonic()
        old = self._identity
        is_due = old.expires_at is None or time.time() > old.expires_at - EXPIRY_MARGIN_S
        if not is_due and not was_refused:
            return
        self._identity = await self._identify()
        if (old.certificate, old.key) != (self._identity.certificate, self._identity.key):
            self.ssl_context = _make_ssl_context(self._place, self._identity, self.source)


async def load_credentials(
    kubeconfig: Path | str | None = None, context: str | None = None
) -> Credentials:
    """Read the kubeconfig: the given one, those in KUBECONFIG, the user's; or use the pod's service account.

    Raises InputError when there is none, or when it is invalid.
    """
    source = str(kubeconfig or os.environ.get("KUBECONFIG") or "")
    if not source and DEFAULT_KUBECONFIG.expanduser().exists():
        source = str(DEFAULT_KUBECONFIG.expanduser())
    if not source:
        place, identify = _service_account()
        return Credentials(place, await identify(), identify, "service account")
    files = [Path(name).expanduser() for name in source.split(os.pathsep) if name]
    if not any(file.exists() for file in files):
        raise InputError(f"{source}: expected a kubeconfig; got no such file")
    read = read_kubeconfig(files, source, context)
    calls: PluginCalls = Counter()
    identify = _user(read.user, calls)
    credentials = Credentials(_place(read), await identify(), identify, source)
    credentials.plugin_calls = calls
    return credentials


def _place(read: Kubeconfig) -> Place:
    cluster = read.cluster
    server = cluster.text("server")
    if server is None:
        raise cluster.wrong("server", "an address", "none")
    authority = cluster.data("certificate-authority")
    return Place(
        server.rstrip("/"),
        None if authority is None else authority.decode("ascii", "ignore"),
        cluster.text("tls-server-name"),
        cluster.text("proxy-url"),
        not cluster.flag("insecure-skip-tls-verify"),
        read.context,
        read.namespace or DEFAULT_NAMESPACE,
    )


def _user(user: Section, calls: PluginCalls) -> Identify:
    """Function that reads the identity of a user, each time anew."""
    if "auth-provider" in user:
        got = "auth-provider, which Kubernetes has replaced by exec plugins"
        raise user.wrong("auth-provider", "a token, a client certificate or exec", got)

    async def plugin() -> Identity:
        status = await run_plugin(user.part("exec"), calls)
        return Identity(
            f"Bearer {status.token}" if status.token else None,
            status.client_certificate_data.encode() or None,
            status.client_key_data.encode() or None,
            status.expires_at or math.inf,  # without a time: until it is refused
            _valid_until(status.client_certificate_data),
        )

    async def static() -> Identity:
        certificate, key = user.data("client-certificate"), user.data("client-key")
        return Identity(_authorization(user), certificate, key)

    return plugin if "exec" in user else static


def _valid_until(certificate: str) -> float:
    """The end of the certificate, as seconds since the epoch; infinity when there is none to read."""
    if not certificate:
        return math.inf
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(certificate)
        file.flush()
        try:
            decoded = ssl._ssl._test_decode_cert(file.name)  # type: ignore[attr-defined]  # not in typeshed
        except ssl.SSLError:  # loading it reports the problem
            return math.inf
    return float(ssl.cert_time_to_seconds(decoded["notAfter"]))


def _authorization(user: Section) -> str | None:
    stored = user.file("tokenFile")
    token = stored.decode().strip() if stored else user.text("token")
    if token:
        return f"Bearer {token.strip()}"
    name, password = user.text("username"), user.text("password")
    if name is None or password is None:
        return None
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def _service_account() -> tuple[Place, Identify]:
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    token_file = SERVICE_ACCOUNT / "token"
    if not host or not token_file.exists():
        raise InputError(
            f"kubeconfig: expected --kubeconfig, KUBECONFIG, {DEFAULT_KUBECONFIG} "
            "or the service account of a pod; got none"
        )

    async def identify() -> Identity:
        return Identity(f"Bearer {_read(token_file)}")

    host = f"[{host}]" if ":" in host else host  # IPv6
    namespace = SERVICE_ACCOUNT / "namespace"
    place = Place(
        f"https://{host}:{port}",
        _read(SERVICE_ACCOUNT / "ca.crt"),
        namespace=(_read(namespace) if namespace.exists() else "") or DEFAULT_NAMESPACE,
    )
    return place, identify


def _read(file: Path) -> str:
    with os_errors_named(file, "a file that can be read"):
        return file.read_text("ascii", "ignore").strip()


def _make_ssl_context(place: Place, identity: Identity, source: str) -> ssl.SSLContext | None:
    """The SSL context with certificate check and client certificate; None without TLS."""
    if not place.server.startswith("https:"):
        return None
    try:
        context = ssl.create_default_context(cadata=place.authority)
        if identity.certificate:  # OpenSSL needs a file for it
            pem = identity.certificate + b"\n" + (identity.key or b"")
            with tempfile.NamedTemporaryFile() as file:  # readable for this user alone
                file.write(pem)
                file.flush()
                context.load_cert_chain(file.name)
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: expected certificates and a key; got {error}") from None
    if not place.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_for(server: str) -> str | None:
    """The proxy for the server from the environment."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # With the clients for HTTP and mail that it has, this takes longer to import than a connection to be made.
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(server)
    if not address.hostname or proxy_bypass(address.hostname):
        return None
    return getproxies().get(address.scheme)


def _checked_proxy(proxy: str | None, source: str) -> str | None:
    if proxy is not None and urlsplit(proxy).scheme not in ("http", "https"):
        raise InputError(f"{source}: proxy: expected an http or https address; got {proxy}")
    return proxy


API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INFO = "KUBERNETES_EXEC_INFO"
PluginCalls: TypeAlias = Counter[tuple[str, str]]
"""Calls by exit status and result, in client-go's words."""


class ExecStatus(msgspec.Struct, rename="camel"):
    """The plugin's result."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""

    @property
    def expires_at(self) -> float | None:
        """Time when it expires, as seconds since the epoch; None if it has no such time."""
        if not self.expiration_timestamp:
            return None
        return datetime.fromisoformat(self.expiration_timestamp).timestamp()


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: ExecStatus


async def run_plugin(settings: Section, calls: PluginCalls) -> ExecStatus:
    """Run the command, which is counted; raises InputError when it fails, or returns neither token nor certificate."""
    command, version = settings.text("command"), settings.text("apiVersion")
    if command is None:
        raise settings.wrong("command", "a command", "none")
    if version not in API_VERSIONS:
        raise settings.wrong("apiVersion", " or ".join(API_VERSIONS), version or "none")
    spec: dict[str, Any] = {"interactive": sys.stdin is not None and sys.stdin.isatty()}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    variables = {str(item.get("name")): str(item.get("value")) for item in settings.trees("env")}
    environment = {**os.environ, **variables, INFO: msgspec.json.encode(info).decode()}
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *settings.texts("args"),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        calls["1", "plugin_not_found_error"] += 1
        hint = settings.text("installHint")
        problem = f"{command}: {error.strerror}" + (f". {hint}" if hint else "")
        raise settings.wrong("command", "a command that can be run", problem) from None
    printed, complaint = await process.communicate()
    outcome = "plugin_execution_error" if process.returncode else "no_error"
    calls[str(process.returncode), outcome] += 1
    if process.returncode:
        problem = f"exit status {process.returncode}. {complaint.decode(errors='replace').strip()}"
        raise settings.wrong("command", "exit status 0", problem)
    return _read_status(printed, version, settings)


def _read_status(printed: bytes, version: str, settings: Section) -> ExecStatus:
    expected = f"an ExecCredential of {version}, printed by the command"
    try:
        credential = msgspec.json.decode(printed, type=_ExecCredential)
        _ = credential.status.expires_at
    except (msgspec.MsgspecError, ValueError) as error:
        raise settings.wrong("command", expected, str(error)) from None
    if (credential.api_version, credential.kind) != (version, "ExecCredential"):
        got = f"{credential.kind} of {credential.api_version}"
        raise settings.wrong("command", expected, got)
    status = credential.status
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise settings.wrong("command", expected, "a certificate or a key without the other")
    if not status.token and not status.client_certificate_data:
        raise InputError(
            f"{settings.path}.command: expected a token or a client certificate; got neither"
        )
    return status
