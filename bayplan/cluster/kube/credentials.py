"""Credentials: the API server's address, its certificate check, and our identity.

They come from a kubeconfig (its files, contexts, tokens, certificates and exec plugins) or from the
service account of the pod we run in; kubernetes_asyncio reads them. Expiring tokens are read or
requested again, as in k8s.io/client-go/transport/token_source.go and plugin/pkg/client/auth/exec.
"""

from __future__ import annotations

import os
import ssl
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from ...errors import InputError

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration

REFRESH_S = 60.0
"""How long a token is used before its file or plugin is read again."""
DEFAULT_KUBECONFIG = Path("~/.kube/config")
DEFAULT_NAMESPACE = "default"
POD_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def is_cluster_configured() -> bool:
    """Whether kubectl would find a cluster to talk to, if no option named one."""
    return bool(
        os.environ.get("KUBECONFIG")
        or DEFAULT_KUBECONFIG.expanduser().exists()
        or os.environ.get("KUBERNETES_SERVICE_HOST")
    )


class Credentials:
    """The parameters of a connection; made by `load_credentials`."""

    def __init__(self, configuration: Configuration, loader: Any = None, source: str = "") -> None:
        self._configuration = configuration
        self._loader = loader
        self._read_at = time.monotonic()
        self.source = source
        """The kubeconfig's name, for messages."""
        self.server: str = (configuration.host or "").rstrip("/")
        """The server's address, without a slash at its end."""
        self.server_name: str | None = configuration.tls_server_name
        """The name in the server's certificate, if it differs from the host."""
        self.proxy = configuration.proxy or _proxy_for(self.server)
        self.ssl_context = _make_ssl_context(configuration, source)
        self._cert_file = configuration.cert_file

    @property
    def context(self) -> str:
        """The name of the kubeconfig's context; empty for a service account."""
        return str(self._context().get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace that kubectl uses when none is given."""
        if self._loader is None:
            try:
                return POD_NAMESPACE_FILE.read_text().strip() or DEFAULT_NAMESPACE
            except OSError:
                return DEFAULT_NAMESPACE
        details = self._context().get("context")
        found = details.get("namespace") if isinstance(details, dict) else None
        return str(found or DEFAULT_NAMESPACE)

    def _context(self) -> dict[str, Any]:
        found = self._loader.current_context if self._loader is not None else None
        return found if isinstance(found, dict) else {}

    @property
    def authorization(self) -> str | None:
        """The Authorization header; None with a client certificate, or without authentication."""
        token = self._configuration.api_key.get("BearerToken")
        return token if token is None else token.strip()

    @property
    def is_stale(self) -> bool:
        """Whether `refresh` is due."""
        return time.monotonic() - self._read_at > REFRESH_S

    async def refresh(self, was_refused: bool = False) -> None:
        """Read tokens again that may have changed; after a refusal, all of them."""
        self._read_at = time.monotonic()
        hook: Any = self._configuration.refresh_api_key_hook
        if hook is not None:
            hook(self._configuration)
        if self._loader is None:
            return
        user = self._loader._user
        has_exec = user is not None and "exec" in user
        if has_exec and not was_refused and not hasattr(self._loader, "exec_plugin_expiry"):
            return  # the plugin's token is valid until it is refused
        if has_exec and was_refused and hasattr(self._loader, "exec_plugin_expiry"):
            del self._loader.exec_plugin_expiry
        for name in ("cert_file", "key_file"):
            self._loader.__dict__.pop(name, None)
        with _faults(self.source):
            await self._loader.load_and_set(self._configuration)
        if self._configuration.cert_file != self._cert_file:
            self._cert_file = self._configuration.cert_file
            self.ssl_context = _make_ssl_context(self._configuration, self.source)


async def load_credentials(
    kubeconfig: Path | str | None = None, context: str | None = None
) -> Credentials:
    """Read the kubeconfig: the given one, those in KUBECONFIG, the user's; or use the pod's service account.

    Raises InputError when there is none, or when it is invalid.
    """
    source = str(kubeconfig or os.environ.get("KUBECONFIG") or "")
    if not source and DEFAULT_KUBECONFIG.expanduser().exists():
        source = str(DEFAULT_KUBECONFIG.expanduser())
    from kubernetes_asyncio.client import Configuration

    configuration = Configuration()
    if not source:
        return _from_service_account(configuration)
    files = [Path(name).expanduser() for name in source.split(os.pathsep) if name]
    if not any(file.exists() for file in files):
        raise InputError(f"{source}: expected a kubeconfig; got no such file")
    from kubernetes_asyncio.config import load_kube_config

    with _faults(source):
        loader = await load_kube_config(source, context, configuration, persist_config=False)
    return Credentials(configuration, loader, source)


def _from_service_account(configuration: Configuration) -> Credentials:
    from kubernetes_asyncio.config import ConfigException, load_incluster_config

    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        raise InputError(
            f"kubeconfig: expected --kubeconfig, KUBECONFIG, {DEFAULT_KUBECONFIG} "
            "or the service account of a pod; got none"
        ) from None
    return Credentials(configuration, source="service account")


class _faults:  # noqa: N801  # reads like a function where it is used
    """Translates exceptions of kubernetes_asyncio about a kubeconfig."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, InputError):
            return
        if isinstance(error, yaml.YAMLError):
            problem = "expected YAML; got " + " ".join(str(error).split())
        elif isinstance(error, OSError):
            problem = (
                f"expected a file that can be read; got {error.filename or ''} {error.strerror}"
            )
        elif isinstance(error, AttributeError | TypeError | AssertionError | KeyError):
            problem = "expected clusters, users and contexts as kubectl writes them"
        else:
            problem = str(error) or type(error).__name__
        raise InputError(f"{self._source}: {problem}") from None


def _make_ssl_context(configuration: Configuration, source: str) -> ssl.SSLContext | None:
    """The SSL context with certificate check and client certificate; None without TLS."""
    if not (configuration.host or "").startswith("https:"):
        return None
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{source}: expected certificates and a key; got {error}") from None
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_for(server: str) -> str | None:
    """The proxy for the server from the environment."""
    address = urlsplit(server)
    if not address.hostname or urllib.request.proxy_bypass(address.hostname):
        return None
    return urllib.request.getproxies().get(address.scheme)
