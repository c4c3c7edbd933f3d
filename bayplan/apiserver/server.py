"""Server: an API server composed of store, registry, controllers and HTTP.

It listens on the loopback by default. Without a data folder all data is lost when it ends.
"""

from __future__ import annotations

import base64
import errno
import ipaddress
import os
import re
import ssl
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, NamedTuple

from ..api.custom import CustomResource
from ..api.pod_stages import StageRule
from ..api.schema.input_check import WrongTypeError, unknown_fields
from ..api.workloads import BUILT_IN_CLASSES
from ..clock import Clock, ManualClock, SystemClock
from ..cluster.certificates import Certificate, make_certificate
from ..cluster.private_files import make_private_folder, read_private, write_private
from ..errors import InputError, os_errors_named
from .access.authenticator import Authenticator, ServiceTokens, make_key
from .access.rbac import GROUP, RbacAuthorizer
from .control.embedded_cluster import LiveCluster
from .control.plane import ControlPlane
from .control.restoration import Restoration
from .registry.conversion import to_stored
from .registry.resource_table import BY_STORAGE, ApiResource, selectable_fields
from .registry.status_errors import StatusError, bad_request
from .store.journal import SqliteJournal
from .store.store import Store
from .web.http_server import HttpServer
from .web.request_handler import Api, RequestAccess

LOOPBACK = "127.0.0.1"
DEFAULT_CLASS, PROVISIONER = "standard", "bayplan.dev/simulated"
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
PRIORITY_CLASSES = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
}
"""The descriptions of the built-in classes."""

Tree = dict[str, Any]


class ApiServer:
    """An API server with its cluster. `data_dir` None means all in memory. Raises InputError when the folder
    cannot be used.

    With a manual clock the controllers run only in `plane.settle`, or after `plane.start`. With `runs_pods` False
    there are no fake kubelets: the test writes the statuses of pods and removes them; with `grace` False the kubelets
    remove a terminating pod at once. `stages` are how selected pods start and end. `gates` are the feature gates of
    API server and controllers; one that is not named is off. With `controllers` False there are none but kubelets.
    With `rbac`, roles and bindings limit users. It listens on `address`; `hosts` are the names that clients may use
    for it besides addresses and localhost.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        clock: Clock | None = None,
        token: str = "",
        certificate: Certificate | None = None,
        runs_pods: bool = True,
        grace: bool = True,
        stages: Sequence[StageRule] = (),
        gates: Mapping[str, bool] | None = None,
        rbac: bool = False,
        controllers: bool = True,
        address: str = LOOPBACK,
        hosts: Sequence[str] = (),
    ) -> None:
        self.address = address
        self.clock = clock or SystemClock()
        self.token = token
        self.certificate = certificate
        journal = SqliteJournal(data_dir) if data_dir is not None else None
        self.store = Store(journal, selectable_fields)
        self._is_new = not self.store.resource_version
        self._cluster = LiveCluster(self.store, self.clock, gates)
        self.registry = self._cluster.registry
        self.plane = ControlPlane(
            self._cluster, self.clock, runs_pods, gates, grace, stages, controllers
        )
        self.restoration = Restoration(self.registry, self.plane)
        self._has_rbac = rbac
        tokens = ServiceTokens(make_key(token), self.store, self.clock)
        self.api = Api(
            self.registry,
            self.clock,
            RequestAccess(bool(token), hosts),
            Authenticator(token, tokens, anonymous=rbac),
            RbacAuthorizer(self.store, is_on=rbac),
        )
        self._http = HttpServer(self.api)
        self.port = 0

    @property
    def url(self) -> str:
        """The address of the server, once started."""
        scheme = "https" if self.certificate is not None else "http"
        address = ipaddress.ip_address(self.address)
        if address.is_unspecified:
            address = ipaddress.ip_address("::1" if address.version == 6 else LOOPBACK)
        return f"{scheme}://{f'[{address}]' if address.version == 6 else address}:{self.port}"

    async def start(self, port: int = 0) -> None:
        """Start serving, on a free port if none is given; raises InputError on failure."""
        self._bootstrap()
        await self.store.safe()
        if not isinstance(self.clock, ManualClock):
            self.plane.start()
        try:
            self.port = await self._http.start(self.address, port, self.ssl_context())
        except OSError as error:
            await self.stop()
            problem = os.strerror(error.errno) if error.errno else str(error)
            if error.errno != errno.EADDRINUSE:
                where = f"address {self.address}, port {port}"
                raise InputError(f"{where}: expected ones to listen on; got {problem}") from None
            raise InputError(f"port {port}: expected a free port; got {problem}") from None

    async def stop(self) -> None:
        """Stop serving, and flush the journal."""
        self.plane.stop()
        await self.store.close()
        await self._http.stop()

    def follow_custom(self, resources: Iterable[CustomResource]) -> None:
        """Let plugins of a scheduler within the process find these objects."""
        for resource in resources:
            self._cluster.follow_custom(resource)

    def load(self, tree: Tree) -> bool:
        """Store an object of a manifest, unless one of its name exists; return whether it was new.

        Objects of a dump are complete after `restoration.complete`. Raises InputError when it is rejected.
        """
        try:
            resource = self.registry.catalog.of_manifest(tree)
            namespace = ""
            if resource.is_namespaced:
                namespace = str((tree.get("metadata") or {}).get("namespace") or "default")
                self._need_namespace(namespace)
            name = str((tree.get("metadata") or {}).get("name") or "")
            if self.store.get(resource.storage, (namespace, name)) is not None:
                return False
            _check_types(resource, tree)
            if self.restoration.takes(resource, tree):
                self.restoration.add(resource, namespace, to_stored(resource, dict(tree)))
                return True
            self.registry.create(resource, namespace, to_stored(resource, dict(tree)))
        except StatusError as error:
            raise InputError(str(error)) from None
        return True

    def _bootstrap(self) -> None:
        """Create the objects that every cluster has."""
        for name in NAMESPACES:
            self._need_namespace(name)
        for name, text in PRIORITY_CLASSES.items():
            head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            body = {"value": BUILT_IN_CLASSES[name], "description": text}
            self.load({**head, "metadata": {"name": name}, **body})
        spec = {
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
        }
        labels = {"component": "apiserver", "provider": "kubernetes"}
        metadata = {"name": "kubernetes", "namespace": "default", "labels": labels}
        self.load({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})

        if self._has_rbac:
            for tree in bootstrap_objects():
                self.load(tree)

    def add_default_class(self) -> None:
        """Give a new cluster a default StorageClass, unless it has storage classes of its own."""
        if not self._is_new or self.store.count("storageclasses.storage.k8s.io"):
            return
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
        head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
        metadata = {"name": DEFAULT_CLASS, "annotations": annotations}
        settings = {"volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True}
        self.load({**head, "metadata": metadata, "provisioner": PROVISIONER, **settings})

    def _need_namespace(self, name: str) -> None:
        if self.store.get("namespaces", ("", name)) is None:
            self.registry.create(BY_STORAGE["namespaces"], "", {"metadata": {"name": name}})

    def ssl_context(self) -> ssl.SSLContext | None:
        """The SSL context for the certificate; None without one."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certificate.load_into(context)
        return context


def _check_types(resource: ApiResource, tree: Tree) -> None:
    """Reject values of the wrong type; raises StatusError."""
    try:
        if resource.custom is None:
            unknown_fields(tree, resource.schema)
        else:
            unknown_fields(tree.get("metadata"), "meta.v1.ObjectMeta")
    except WrongTypeError as error:
        raise bad_request(str(error)) from None


API_VERSION = f"{GROUP}/v1"
AGGREGATE = f"{GROUP}/aggregate-to-"
_VERBS = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def bootstrap_objects() -> list[Tree]:
    """The roles, each followed by its binding if it has one."""
    found: list[Tree] = []
    for line in files(__package__).joinpath("roles.txt").read_text().splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if line.startswith(" "):
            role = next(tree for tree in reversed(found) if tree["kind"] == "ClusterRole")
            role["rules"].append(_rule(words))
        else:
            found += _role(words[1], dict(word.split("=", 1) for word in words[2:]))
    return found


def _role(name: str, settings: dict[str, str]) -> list[Tree]:
    labels = dict(_LABELS)
    if "to" in settings:
        labels[AGGREGATE + settings["to"]] = "true"
    role = {**_head("ClusterRole", name, labels), "rules": []}
    if "from" in settings:
        selector = {"matchLabels": {AGGREGATE + settings["from"]: "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    subjects = [("Group", each) for each in settings.get("bound", "").split(",") if each]
    subjects += [("User", each) for each in settings.get("user", "").split(",") if each]
    if not subjects:
        return [role]
    binding = {
        **_head("ClusterRoleBinding", name, _LABELS),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": kind, "name": each} for kind, each in subjects],
    }
    return [role, binding]


def _rule(words: list[str]) -> Tree:
    verbs = [verb for word in words[0].split(",") for verb in _VERBS.get(word, (word,))]
    if words[1].startswith("/"):
        urls = ["*" if url == "/*" else url for url in words[1].split(",")]
        return {"verbs": verbs, "nonResourceURLs": urls}
    groups = ["" if group == "core" else group for group in words[1].split(",")]
    rule: Tree = {"verbs": verbs, "apiGroups": groups, "resources": words[2].split(",")}
    if len(words) > 3:
        rule["resourceNames"] = words[3].removeprefix("names=").split(",")
    return rule


def _head(kind: str, name: str, labels: dict[str, str]) -> Tree:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "labels": dict(labels)},
    }


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
    with os_errors_named(folder, "a folder for the server's certificate and token"):
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
    return made


def _read(files: Sequence[Path]) -> ServerCredentials:
    """The certificate, key and token of an earlier run; raises InputError if one is missing or damaged."""
    cert, key, token = ((read_private(file) or b"") for file in files)
    if not _TOKEN.fullmatch(token):
        expected = f"expected the token of an earlier run, {TOKEN_LENGTH} letters, digits, - and _"
        raise InputError(
            f"{files[2]}: {expected}; got {f'{len(token)} bytes' if token else 'none'}. {ADVICE}"
        )
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files[0], files[1], password="")  # "": never a prompt
    except (FileNotFoundError, ssl.SSLError) as error:
        expected = "expected the certificate of an earlier run and its key"
        got = error.reason if isinstance(error, ssl.SSLError) and error.reason else "none"
        raise InputError(f"{files[0]}, {files[1]}: {expected}; got {got}. {ADVICE}") from None
    return ServerCredentials(Certificate(cert, key), token.decode())


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
