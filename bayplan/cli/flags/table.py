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
    unused: str = ""
    metavar: str = ""


BOOL, INT, FLOAT, DURATION, STRING, LIST, MAP = FlagKind

SERVING = "Serving"
HTTP1 = "only HTTP/1.1 is served"
OURS = "no metric or label is switched on or off"
GONE = "the insecure port is gone, here as in Kubernetes v1.23; see --secure-port"

FLAGS: dict[str, tuple[Flag, ...]] = {
    "Configuration": (
        Flag(
            "config",
            STRING,
            "",
            "A KubeSchedulerConfiguration or Policy file of any version.",
            metavar="FILE",
        ),
        Flag(
            "write-config-to",
            STRING,
            "",
            "Write the configuration to this file and exit.",
            metavar="FILE",
        ),
        Flag(
            "feature-gates", MAP, "", "Feature gates to switch on or off.", metavar="A=true,B=false"
        ),
        Flag(
            "kubernetes-version",
            STRING,
            "",
            "The release whose decisions are taken, 1.33 to 1.37. Default: that of the API server.",
            metavar="1.36",
        ),
        Flag("plugins", LIST, "", "Python files with plugins of your own.", metavar="FILE"),
        Flag(
            "decisions",
            STRING,
            "",
            "Write a JSON line per attempt to this file, which is rotated; - for standard output.",
            metavar="FILE",
        ),
        Flag(
            "usage",
            LIST,
            "",
            "Measured use of pods that the page shows beside their requests: files, or live for metrics.k8s.io.",
            metavar="live|FILE",
        ),
        Flag(
            "emulated-version",
            LIST,
            "",
            "The version whose feature gates apply, at most three before the release.",
            metavar="1.36",
        ),
        Flag(
            "min-compatibility-version",
            LIST,
            "",
            "For --emulated-version.",
            "it matters for API servers only",
        ),
    ),
    "Version": (
        Flag(
            "version",
            STRING,
            "false",
            "Print the version and exit; raw: with its parts.",
            metavar="true|raw",
        ),
    ),
    "Cluster": (
        Flag(
            "kubeconfig",
            STRING,
            "",
            "How to reach the cluster. Default: clientConnection.kubeconfig of the configuration, KUBECONFIG, "
            "~/.kube/config, or the service account of the pod it runs in.",
            metavar="FILE",
        ),
        Flag("context", STRING, "", "The context of the kubeconfig.", metavar="NAME"),
        Flag(
            "master",
            STRING,
            "",
            "Address of the API server, instead of that in the kubeconfig.",
            metavar="URL",
        ),
        Flag(
            "kube-api-qps", FLOAT, "50", "Requests per second to the API server; without --config."
        ),
        Flag("kube-api-burst", INT, "100", "Requests at once to the API server; without --config."),
        Flag(
            "kube-api-content-type",
            STRING,
            "application/vnd.kubernetes.protobuf",
            "Content type of requests.",
            "requests are written in JSON",
        ),
    ),
    "Leader election": (
        Flag("leader-elect", BOOL, "true", "Wait for the lease before scheduling."),
        Flag("leader-elect-lease-duration", DURATION, "15s", "How long a lease lasts."),
        Flag(
            "leader-elect-renew-deadline",
            DURATION,
            "10s",
            "How long the leader tries to renew the lease.",
        ),
        Flag(
            "leader-elect-retry-period",
            DURATION,
            "2s",
            "Wait between tries to get or renew the lease.",
        ),
        Flag(
            "leader-elect-resource-lock",
            STRING,
            "leases",
            "FlagKind of the lock; only leases.",
            metavar="leases",
        ),
        Flag(
            "leader-elect-resource-name",
            STRING,
            "kube-scheduler",
            "Name of the lease.",
            metavar="NAME",
        ),
        Flag(
            "leader-elect-resource-namespace",
            STRING,
            "kube-system",
            "Namespace of the lease.",
            metavar="NAME",
        ),
    ),
    "Scheduling": (
        Flag(
            "pod-max-in-unschedulable-pods-duration",
            DURATION,
            "5m0s",
            "How long a pod stays unschedulable before it is tried again without an event.",
        ),
    ),
    SERVING: (
        Flag(
            "bind-address",
            STRING,
            "0.0.0.0",
            "Address that serves probes, metrics, the configuration and the page. Except on the loopback, clients "
            "need a token or a certificate.",
            metavar="ADDRESS",
        ),
        Flag("secure-port", INT, "10259", "Port for HTTPS; 0: nothing is served."),
        Flag(
            "cert-dir",
            STRING,
            "",
            "Folder for the certificate kube-scheduler.crt and its key, which are made if they are not there.",
            metavar="FOLDER",
        ),
        Flag(
            "tls-cert-file",
            STRING,
            "",
            "Certificate for HTTPS, PEM. Default: a new self-signed one.",
            metavar="FILE",
        ),
        Flag("tls-private-key-file", STRING, "", "The certificate's key, PEM.", metavar="FILE"),
        Flag(
            "tls-min-version",
            STRING,
            "",
            "VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13.",
            metavar="VERSION",
        ),
        Flag("tls-cipher-suites", LIST, "", "Cipher suites of TLS up to 1.2, by their IANA names."),
        Flag(
            "tls-curve-preferences",
            LIST,
            "",
            "Key exchanges, by Go's numbers.",
            "OpenSSL's choice is used",
        ),
        Flag(
            "tls-sni-cert-key",
            LIST,
            "",
            "Another certificate and its key for some names: cert.pem,key.pem[:name].",
            metavar="CERT,KEY[:NAME]",
        ),
        Flag("disable-http2-serving", BOOL, "false", "Serve without HTTP/2.", HTTP1),
        Flag(
            "http2-max-streams-per-connection", INT, "0", "Streams of an HTTP/2 connection.", HTTP1
        ),
        Flag("permit-port-sharing", BOOL, "false", "Bind the port with SO_REUSEPORT."),
        Flag("permit-address-sharing", BOOL, "false", "Bind the port with SO_REUSEADDR."),
        Flag("profiling", BOOL, "true", "Serve /debug/pprof; without --config."),
        Flag(
            "contention-profiling", BOOL, "true", "Profile locks.", "Python has no profile of locks"
        ),
    ),
    "Authentication and authorization": (
        Flag(
            "authentication-kubeconfig",
            STRING,
            "",
            "Who creates TokenReviews. Default: as for scheduling.",
            metavar="FILE",
        ),
        Flag(
            "authentication-skip-lookup",
            BOOL,
            "false",
            "Do not read missing settings from the ConfigMap extension-apiserver-authentication.",
        ),
        Flag(
            "authentication-tolerate-lookup-failure",
            BOOL,
            "true",
            "Go on when that ConfigMap cannot be read.",
        ),
        Flag(
            "authentication-token-webhook-cache-ttl",
            DURATION,
            "10s",
            "How long the answer about a token is kept.",
        ),
        Flag(
            "client-ca-file",
            STRING,
            "",
            "Authorities of client certificates; their common name is the user.",
            metavar="FILE",
        ),
        Flag(
            "requestheader-client-ca-file",
            STRING,
            "",
            "Authorities of proxies that say who the user is.",
            metavar="FILE",
        ),
        Flag(
            "requestheader-allowed-names",
            LIST,
            "",
            "Common names of such proxies; none: all that the authorities signed.",
        ),
        Flag("requestheader-username-headers", LIST, "x-remote-user", "Headers with the user."),
        Flag("requestheader-uid-headers", LIST, "", "Headers with the user's uid."),
        Flag(
            "requestheader-group-headers", LIST, "x-remote-group", "Headers with the user's groups."
        ),
        Flag(
            "requestheader-extra-headers-prefix",
            LIST,
            "x-remote-extra-",
            "Beginning of further headers about the user.",
        ),
        Flag(
            "authorization-kubeconfig",
            STRING,
            "",
            "Who creates SubjectAccessReviews. Default: as for scheduling.",
            metavar="FILE",
        ),
        Flag(
            "authorization-always-allow-paths",
            LIST,
            "/healthz,/readyz,/livez",
            "Paths for all; a * at the end matches the rest.",
        ),
        Flag(
            "authorization-webhook-cache-authorized-ttl",
            DURATION,
            "10s",
            "How long a permission is kept.",
        ),
        Flag(
            "authorization-webhook-cache-unauthorized-ttl",
            DURATION,
            "10s",
            "How long a refusal is kept.",
        ),
    ),
    "Log and metrics": (
        Flag("v", INT, "0", "Detail of the log: 2 for each pod, 4 for each step, 10 for scores."),
        Flag("logging-format", STRING, "text", "text or json.", metavar="FORMAT"),
        Flag(
            "log-flush-frequency",
            DURATION,
            "5s",
            "Time between writes of the log.",
            "each line is written at once",
        ),
        Flag("vmodule", MAP, "", "Detail for some modules: NAME=NUMBER."),
        Flag(
            "log-text-split-stream",
            BOOL,
            "false",
            "Errors to standard error, the rest to standard output.",
        ),
        Flag(
            "log-text-info-buffer-size",
            STRING,
            "0",
            "Buffer of the log.",
            "each line is written at once",
        ),
        Flag("log-json-split-stream", BOOL, "false", "The same for JSON."),
        Flag(
            "log-json-info-buffer-size",
            STRING,
            "0",
            "Buffer of the log.",
            "each line is written at once",
        ),
        Flag(
            "show-hidden-metrics-for-version",
            STRING,
            "",
            "Show metrics that this version has hidden.",
            OURS,
        ),
        Flag("disabled-metrics", LIST, "", "Metrics that are not shown."),
        Flag("allow-metric-labels", MAP, "", "Values of labels that are shown.", OURS),
        Flag("allow-metric-labels-manifest", STRING, "", "A file with the same.", OURS),
    ),
    "Flags of Kubernetes v1.19 to v1.22": (
        Flag(
            "algorithm-provider",
            STRING,
            "",
            "An algorithm provider: DefaultProvider or ClusterAutoscalerProvider.",
            metavar="NAME",
        ),
        Flag("policy-config-file", STRING, "", "A Policy file.", metavar="FILE"),
        Flag(
            "policy-configmap",
            STRING,
            "",
            "A ConfigMap with a Policy under policy.cfg.",
            metavar="NAME",
        ),
        Flag("policy-configmap-namespace", STRING, "kube-system", "Its namespace.", metavar="NAME"),
        Flag(
            "use-legacy-policy-config",
            BOOL,
            "false",
            "Prefer --policy-config-file to --policy-configmap.",
        ),
        Flag(
            "scheduler-name",
            STRING,
            "default-scheduler",
            "Name of the scheduler that a Policy describes.",
            metavar="NAME",
        ),
        Flag(
            "hard-pod-affinity-symmetric-weight",
            INT,
            "1",
            "Weight of required affinity of others, with an algorithm provider.",
        ),
        Flag("address", STRING, "0.0.0.0", "Address of the insecure port.", GONE),
        Flag("port", INT, "10251", "The insecure port.", GONE),
        Flag(
            "lock-object-name",
            STRING,
            "kube-scheduler",
            "The older name of --leader-elect-resource-name.",
            metavar="NAME",
        ),
        Flag(
            "lock-object-namespace",
            STRING,
            "kube-system",
            "The older name of --leader-elect-resource-namespace.",
            metavar="NAME",
        ),
    ),
}

BY_NAME: dict[str, Flag] = {flag.name: flag for group in FLAGS.values() for flag in group}
