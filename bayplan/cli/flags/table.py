"""Table: every flag of kube-scheduler v1.36, those of v1.19 to v1.22 that are gone, and our own.

The names, kinds and defaults are kube-scheduler's; a test compares them with its list.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class FlagKind(Enum):
    """Notation of the value of a flag."""

    BOOL = "true|false"
    INT = "NUMBER"
    FLOAT = "NUMBER "
    DURATION = "DURATION"
    STRING = "TEXT"
    LIST = "A,B"
    MAP = "KEY=VALUE"


class Flag(NamedTuple):
    """A flag. One with `unused` has no effect here; the remark at the start has the reason."""

    name: str
    kind: FlagKind
    default: str
    help: str
    unused: str
    metavar: str
    """The word for its value."""

    @classmethod
    def of(cls, notation: str, help: str) -> Flag:
        """The flag in the notation of the table: its name, a word for its value, and its default."""
        name, word, default = f"{notation}  ".split(" ", 2)
        metavar = word.removesuffix("*")
        kind = KINDS.get(word, FlagKind.STRING)
        if word != metavar:
            kind = FlagKind.LIST
        elif "=" in word:
            kind = FlagKind.MAP
        if name in FLOATS:
            kind = FlagKind.FLOAT
        return cls(name, kind, default.strip(), help, UNUSED.get(name, ""), metavar)


KINDS = {kind.value: kind for kind in FlagKind}
FLOATS = ("kube-api-qps",)
HTTP1 = "only HTTP/1.1 is served"
OURS = "no metric or label is switched on or off"
AT_ONCE = "each line is written at once"
GONE = "the insecure port is gone, here as in Kubernetes v1.23; see --secure-port"
UNUSED = {
    "min-compatibility-version": "it matters for API servers only",
    "kube-api-content-type": "requests are written in JSON",
    "tls-curve-preferences": "OpenSSL's choice is used",
    "disable-http2-serving": HTTP1,
    "http2-max-streams-per-connection": HTTP1,
    "contention-profiling": "Python has no profile of locks",
    "log-flush-frequency": AT_ONCE,
    "log-text-info-buffer-size": AT_ONCE,
    "log-json-info-buffer-size": AT_ONCE,
    "show-hidden-metrics-for-version": OURS,
    "allow-metric-labels": OURS,
    "allow-metric-labels-manifest": OURS,
    "address": GONE,
    "port": GONE,
}
"""Flags without effect, and why."""

TABLE: dict[str, dict[str, str]] = {
    "Configuration": {
        "config FILE": "A KubeSchedulerConfiguration or Policy file of any version.",
        "write-config-to FILE": "Write the configuration to this file and exit.",
        "feature-gates A=true,B=false": "Feature gates to switch on or off.",
        "kubernetes-version 1.36": "The release whose decisions are taken, 1.33 to 1.37. Default: that of the API "
        "server.",
        "plugins FILE*": "Python files with plugins of your own.",
        "decisions FILE": "Write a JSON line per attempt to this file, which is rotated; - for standard output.",
        "usage live|FILE*": "Measured use of pods that the page shows beside their requests: files, or live for "
        "metrics.k8s.io.",
        "emulated-version 1.36*": "The version whose feature gates apply, at most three before the release.",
        "min-compatibility-version A,B": "For --emulated-version.",
    },
    "Version": {
        "version true|raw false": "Print the version and exit; raw: with its parts.",
    },
    "Cluster": {
        "kubeconfig FILE": "How to reach the cluster. Default: clientConnection.kubeconfig of the configuration, "
        "KUBECONFIG, ~/.kube/config, or the service account of the pod it runs in.",
        "context NAME": "The context of the kubeconfig.",
        "master URL": "Address of the API server, instead of that in the kubeconfig.",
        "kube-api-qps NUMBER 50": "Requests per second to the API server; without --config.",
        "kube-api-burst NUMBER 100": "Requests at once to the API server; without --config.",
        "kube-api-content-type TEXT application/vnd.kubernetes.protobuf": "Content type of requests.",
    },
    "Leader election": {
        "leader-elect true|false true": "Wait for the lease before scheduling.",
        "leader-elect-lease-duration DURATION 15s": "How long a lease lasts.",
        "leader-elect-renew-deadline DURATION 10s": "How long the leader tries to renew the lease.",
        "leader-elect-retry-period DURATION 2s": "Wait between tries to get or renew the lease.",
        "leader-elect-resource-lock leases leases": "Kind of the lock; only leases.",
        "leader-elect-resource-name NAME kube-scheduler": "Name of the lease.",
        "leader-elect-resource-namespace NAME kube-system": "Namespace of the lease.",
    },
    "Scheduling": {
        "pod-max-in-unschedulable-pods-duration DURATION 5m0s": "How long a pod stays unschedulable before it is "
        "tried again without an event.",
    },
    "Serving": {
        "bind-address ADDRESS 0.0.0.0": "Address that serves probes, metrics, the configuration and the page. "
        "Except on the loopback, "
        "clients need a token or a certificate.",
        "secure-port NUMBER 10259": "Port for HTTPS; 0: nothing is served.",
        "cert-dir FOLDER": "Folder for the certificate kube-scheduler.crt and its key, which are made if they are "
        "not there.",
        "tls-cert-file FILE": "Certificate for HTTPS, PEM. Default: a new self-signed one.",
        "tls-private-key-file FILE": "The certificate's key, PEM.",
        "tls-min-version VERSION": "VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13.",
        "tls-cipher-suites A,B": "Cipher suites of TLS up to 1.2, by their IANA names.",
        "tls-curve-preferences A,B": "Key exchanges, by Go's numbers.",
        "tls-sni-cert-key CERT,KEY[:NAME]*": "Another certificate and its key for some names: cert.pem,key.pem[:name].",
        "disable-http2-serving true|false false": "Serve without HTTP/2.",
        "http2-max-streams-per-connection NUMBER 0": "Streams of an HTTP/2 connection.",
        "permit-port-sharing true|false false": "Bind the port with SO_REUSEPORT.",
        "permit-address-sharing true|false false": "Bind the port with SO_REUSEADDR.",
        "profiling true|false true": "Serve /debug/pprof; without --config.",
        "contention-profiling true|false true": "Profile locks.",
    },
    "Authentication and authorization": {
        "authentication-kubeconfig FILE": "Who creates TokenReviews. Default: as for scheduling.",
        "authentication-skip-lookup true|false false": "Do not read missing settings from the ConfigMap "
        "extension-apiserver-authentication.",
        "authentication-tolerate-lookup-failure true|false true": "Go on when that ConfigMap cannot be read.",
        "authentication-token-webhook-cache-ttl DURATION 10s": "How long the answer about a token is kept.",
        "client-ca-file FILE": "Authorities of client certificates; their common name is the user.",
        "requestheader-client-ca-file FILE": "Authorities of proxies that say who the user is.",
        "requestheader-allowed-names A,B": "Common names of such proxies; none: all that the authorities signed.",
        "requestheader-username-headers A,B x-remote-user": "Headers with the user.",
        "requestheader-uid-headers A,B": "Headers with the user's uid.",
        "requestheader-group-headers A,B x-remote-group": "Headers with the user's groups.",
        "requestheader-extra-headers-prefix A,B x-remote-extra-": "Beginning of further headers about the user.",
        "authorization-kubeconfig FILE": "Who creates SubjectAccessReviews. Default: as for scheduling.",
        "authorization-always-allow-paths A,B /healthz,/readyz,/livez": "Paths for all; a * at the end matches the "
        "rest.",
        "authorization-webhook-cache-authorized-ttl DURATION 10s": "How long a permission is kept.",
        "authorization-webhook-cache-unauthorized-ttl DURATION 10s": "How long a refusal is kept.",
    },
    "Log and metrics": {
        "v NUMBER 0": "Detail of the log: 2 for each pod, 4 for each step, 10 for scores.",
        "logging-format FORMAT text": "text or json.",
        "log-flush-frequency DURATION 5s": "Time between writes of the log.",
        "vmodule KEY=VALUE": "Detail for some modules: NAME=NUMBER.",
        "log-text-split-stream true|false false": "Errors to standard error, the rest to standard output.",
        "log-text-info-buffer-size TEXT 0": "Buffer of the log.",
        "log-json-split-stream true|false false": "The same for JSON.",
        "log-json-info-buffer-size TEXT 0": "Buffer of the log.",
        "show-hidden-metrics-for-version TEXT": "Show metrics that this version has hidden.",
        "disabled-metrics A,B": "Metrics that are not shown.",
        "allow-metric-labels KEY=VALUE": "Values of labels that are shown.",
        "allow-metric-labels-manifest TEXT": "A file with the same.",
    },
    "Flags of Kubernetes v1.19 to v1.22": {
        "algorithm-provider NAME": "An algorithm provider: DefaultProvider or ClusterAutoscalerProvider.",
        "policy-config-file FILE": "A Policy file.",
        "policy-configmap NAME": "A ConfigMap with a Policy under policy.cfg.",
        "policy-configmap-namespace NAME kube-system": "Its namespace.",
        "use-legacy-policy-config true|false false": "Prefer --policy-config-file to --policy-configmap.",
        "scheduler-name NAME default-scheduler": "Name of the scheduler that a Policy describes.",
        "hard-pod-affinity-symmetric-weight NUMBER 1": "Weight of required affinity of others, with an algorithm "
        "provider.",
        "address TEXT 0.0.0.0": "Address of the insecure port.",
        "port NUMBER 10251": "The insecure port.",
        "lock-object-name NAME kube-scheduler": "The older name of --leader-elect-resource-name.",
        "lock-object-namespace NAME kube-system": "The older name of --leader-elect-resource-namespace.",
    },
}
"""By group: each flag with the word for its value, * for a list, and its default; and its help."""
FLAGS: dict[str, tuple[Flag, ...]] = {
    group: tuple(Flag.of(*entry) for entry in entries.items()) for group, entries in TABLE.items()
}
BY_NAME: dict[str, Flag] = {flag.name: flag for group in FLAGS.values() for flag in group}
