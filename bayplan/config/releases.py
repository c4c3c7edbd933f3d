"""Releases: the release of kube-scheduler whose decisions are taken, as people name it and as files record it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..api.own_documents import KUBERNETES_VERSION
from ..errors import ConfigError
from ..releases.release import DEFAULT_RELEASE, RELEASES, Release, find_release, parse_release

KNOWN = ", ".join(RELEASES)


def choose_release(version: str, source: str = "--kubernetes-version") -> Release:
    """The release for `version`, the default one for an empty text; the nearest for one that is not known.

    Raises ConfigError, which begins with `source`, for a text that is no version.
    """
    try:
        return find_release(version) if version else DEFAULT_RELEASE
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def release_warning(version: str) -> str:
    """Warning that decisions may differ because `version` is not known; empty if it is."""
    if not version:
        return ""
    release, (major, minor) = choose_release(version), parse_release(version)
    if release.version == f"{major}.{minor}":
        return ""
    start = f"Kubernetes v{major}.{minor} is not known ({KNOWN} are): decisions are those of {release.patch}"
    differs = "feature gates and their defaults, scores, messages and retries"
    return f"{start}; what v{major}.{minor} does otherwise is missing, such as {differs}"


def as_recorded(tree: dict[str, Any], version: str) -> dict[str, Any]:
    """The object as a snapshot or a recording of a cluster of this version has it: as it is for an empty text.

    Namespaces have the version in an annotation, other kinds the API version that the release serves.
    """
    if not version:
        return tree
    # Late: a scheduler records nothing, and they bring the defaults of all fields.
    from ..api.wire.placement_fields import note_version
    from ..api.wire.served_versions import written_as

    return note_version(written_as(tree, choose_release(version).api_versions), version)


def recorded_version(objects: Iterable[Any]) -> str:
    """The version of Kubernetes that a snapshot or a recording has in an annotation of a namespace; empty without."""
    for obj in objects:
        if getattr(obj, "kind", "") == "Namespace":
            found = obj.annotations.get(KUBERNETES_VERSION)
            if found:
                return str(found)
    return ""
