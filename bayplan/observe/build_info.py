"""Build info: the version of Kubernetes whose decisions are made, and ours, as Kubernetes components show them."""

from __future__ import annotations

import platform
import sys

from .. import __version__
from .families import GaugeFamily

KUBERNETES_VERSION = "1.36.4"


def full_version() -> str:
    """Kubernetes' version with ours as build metadata."""
    return f"{KUBERNETES_VERSION}+bayplan.{__version__}"


def build_info() -> dict[str, str]:
    """The labels of `kubernetes_build_info`. What Go programs say about their compiler is about Python here."""
    major, minor, _ = KUBERNETES_VERSION.split(".")
    machine = {"aarch64": "arm64", "x86_64": "amd64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "git_version": f"v{full_version()}",
        "git_commit": "",
        "git_tree_state": "",
        "build_date": "",
        "go_version": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{machine}",
    }


def build_info_family() -> GaugeFamily:
    """`kubernetes_build_info`: always 1, with the versions as labels."""
    info = build_info()
    family = GaugeFamily(
        "kubernetes_build_info", "The version, as labels; the value is always 1.", tuple(info)
    )
    family.labels(*info.values()).value = 1
    return family
