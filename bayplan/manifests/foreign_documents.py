"""Foreign documents: input that is no manifest yet, and the command that makes manifests of it.

Kustomizations, Helm charts, their values and their templates are found in the folders that people pass on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..api.text.template_actions import ACTION, shown_action
from ..api.wire.kinds import group_of

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHART = "Chart.yaml"
_KUSTOMIZE_GROUP = "kustomize.config.k8s.io"
_KUSTOMIZE_FIELDS = frozenset(
    {
        *("resources", "bases", "namePrefix", "nameSuffix", "commonLabels", "patches", "images"),
        *("configMapGenerator", "secretGenerator", "patchesStrategicMerge", "components"),
    }
)
_HELM_ACTION = re.compile(
    rb"\{\{-?\s*(?:/\*|(?:if |range |with |toYaml |tpl |default [^}]*|quote |nindent )?"
    rb"\(?\$?\.(?:Values|Release|Chart|Capabilities|Template)\b|(?:include|template|define)\s+\\?\")"
)
_PRINTED = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:\$[^\n]*\n\s*)?(Name: {2,}|(?:NAMESPACE +)?NAME {2,}[A-Z])"
)
"""The first words of the output of `kubectl describe`, and of a table of `kubectl get`; a prompt may stand before."""


def folder_fault(folder: Path) -> str:
    """Reason why the files of a folder are no manifests as they are; empty if there is none."""
    names = {file.name for file in folder.iterdir()}
    if names.intersection(KUSTOMIZATIONS):
        return f"expected manifests; got a kustomization: {kustomize(str(folder))}"
    if CHART in names:
        return f"expected manifests; got a Helm chart: {_helm(str(folder))}"
    return ""


def kustomize(folder: str) -> str:
    """Instructions for reading a kustomization."""
    return f"render it first: kubectl kustomize {folder} | bayplan ... -f -"


def _helm(chart: str) -> str:
    return f"render it first: helm template {chart} | bayplan ... -f -"


def is_kustomization(api_version: str, kind: str) -> bool:
    """Whether a document is input of kustomize."""
    return group_of(api_version) == _KUSTOMIZE_GROUP or (
        kind == "Kustomization" and not api_version
    )


def nameless_fault(tree: Any, source: str) -> str:
    """Reason why a document without a kind is no manifest, with its probable origin."""
    if not isinstance(tree, Mapping):
        return "expected apiVersion and kind; got neither"
    name, fields = Path(source).name, set(tree)
    if name in KUSTOMIZATIONS or (fields & _KUSTOMIZE_FIELDS and fields <= _LIKELY_KUSTOMIZATION):
        return f"expected a manifest; got a kustomization: {kustomize(_folder(source))}"
    if {"apiVersion", "name", "version"} <= fields:
        return f"expected a manifest; got the {CHART} of a Helm chart: {_helm(_folder(source))}"
    if name.startswith("values") and "apiVersion" not in fields:
        return f"expected a manifest; got values of a Helm chart: {_helm('CHART -f ' + name)}"
    missing = "kind" if "apiVersion" in fields else "apiVersion and kind"
    shown = ", ".join(sorted(map(str, fields))[:5]) or "none"
    return f"expected {missing}; got a document with the fields {shown}"


_LIKELY_KUSTOMIZATION = _KUSTOMIZE_FIELDS | {
    *("apiVersion", "namespace", "commonAnnotations", "labels", "generatorOptions", "replicas"),
    *("patchesJson6902", "transformers", "generators", "replacements", "vars", "crds", "openapi"),
    *("helmCharts", "configurations", "metadata", "buildMetadata", "validators"),
}


def _folder(source: str) -> str:
    return str(Path(source).parent) if source != "stdin" else "DIR"


def printed_fault(data: bytes) -> str:
    """Reason why a text that kubectl printed for people is no manifest; empty for another text."""
    found = _PRINTED.match(data)
    if found is None:
        return ""
    origin = "the output of kubectl describe" if found[1].startswith(b"Name:") else "a table"
    return f"expected manifests; got {origin}: use kubectl get ... -o yaml"


def template_fault(data: bytes) -> str:
    """Reason why a text that cannot be read may be a template; empty if it has no actions of a template."""
    found = ACTION.search(data)
    if found is None:
        return ""
    if _HELM_ACTION.search(data):
        return _helm_template(data, found)
    return f"expected manifests; got a template that is not rendered ({shown_action(data, found)})"


def helm_fault(data: bytes) -> str:
    """Reason why a text that can be read is a template of Helm all the same; empty otherwise."""
    found = _HELM_ACTION.search(data)
    return _helm_template(data, found) if found else ""


def _helm_template(data: bytes, found: re.Match[bytes]) -> str:
    shown = shown_action(data, found)
    return (
        f"expected manifests; got a Helm template that is not rendered ({shown}): {_helm('CHART')}"
    )
