"""Build info: the version of Kubernetes whose decisions are made, and ours, as Kubernetes components show them."""

from __future__ import annotations

import platform
import sys

from .. import __version__
from .families import GaugeFamily

DEFAULT_PATCH = "v1.36.4"
"""The tag of Kubernetes whose decisions are made by default."""


def full_version(patch: str = DEFAULT_PATCH) -> str:
    """Kubernetes' version with ours as build metadata."""
    return f"{patch.removeprefix('v')}+bayplan.{__version__}"


def build_info(patch: str = DEFAULT_PATCH) -> dict[str, str]:
    """The labels of `kubernetes_build_info`. The fields that Go programs fill with their compiler have Python here."""
    major, minor, _ = patch.removeprefix("v").split(".", 2)
    machine = {"aarch64": "arm64", "x86_64": "amd64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "git_version": f"v{full_version(patch)}",
        "git_commit": "",
        "git_tree_state": "",
        "build_date": "",
        "go_version": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{machine}",
    }


def build_info_family(patch: str = DEFAULT_PATCH) -> GaugeFamily:
    """`kubernetes_build_info`: always 1, with the versions as labels."""
    info = build_info(patch)
    family = GaugeFamily(
        f"kubernetes_build_info{{{','.join(info)}}}",
        "The version, as labels; the value is always 1.",
    )
    family.labels(*info.values()).value = 1
    return family


def release_family(version: str, patch: str) -> GaugeFamily:
    """`bayplan_kubernetes_release_info`: always 1, with the release whose decisions are taken as labels."""
    family = GaugeFamily(
        "bayplan_kubernetes_release_info{release,patch}",
        "The release of kube-scheduler whose decisions are taken, as labels; the value is always 1.",
    )
    family.labels(version, patch).value = 1
    return family
