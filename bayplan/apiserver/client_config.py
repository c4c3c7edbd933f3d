"""Client config: the server's address and credentials for clients."""

from __future__ import annotations

import base64
from typing import Any

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
