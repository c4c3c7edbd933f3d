"""Objects of all built-in kinds, compared field by field with the answers of kube-apiserver v1.36.4."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.apiserver.registry.resource_table import RESOURCES
from bayplan.apiserver.web.write_requests import WITHOUT_EFFECT
from bayplan.yaml_tree import iter_trees
from tests.rig.api_server import ServerInThread

HERE = Path(__file__).parent
OBJECTS = list(iter_trees((HERE / "default_objects.yaml").read_text()))
ANSWERS = msgspec.json.decode((HERE / "default_answers.json").read_bytes())
DIFFER = re.compile(
    r"metadata\.(uid|creationTimestamp|resourceVersion)"
    r"|.*controller-uid"
    r"|spec\.clusterIPs?|spec\.healthCheckNodePort|spec\.ports\.nodePort"
    r"|status\.lastPhaseTransitionTime|spec\.devices\.taints\.timeAdded"
)
"""Fields that differ by nature: times, uids, and allocated values."""
SERVER_OPTIONS = re.compile(r"metadata\.finalizers|status\.(acceptedNames\..*|conditions)")
"""The recording server had no protection of storage objects, and definitions are accepted later there."""


def key_of(tree: Any) -> str:
    return f"{tree['apiVersion']} {tree['kind']} {tree['metadata']['name']}"


def path_of(tree: Any) -> str:
    resource = next(
        r for r in RESOURCES if (r.api_version, r.kind) == (tree["apiVersion"], tree["kind"])
    )
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    where = "/namespaces/default" if resource.is_namespaced else ""
    return f"{root}{where}/{resource.plural}"


def differences(ours: Any, real: Any, path: str = "") -> Iterator[str]:
    """Yield the fields that differ, except for those that differ by nature."""
    if DIFFER.fullmatch(path) or SERVER_OPTIONS.fullmatch(path):
        return
    if isinstance(ours, dict) and isinstance(real, dict):
        for name in {**ours, **real}:
            below = f"{path}.{name}".removeprefix(".")
            yield from differences(ours.get(name, "absent"), real.get(name, "absent"), below)
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for one, other in zip(ours, real, strict=True):
            yield from differences(one, other, path)
    elif ours != real:
        yield f"{path}: {ours!r} instead of {real!r}"


@pytest.mark.parametrize("tree", [pytest.param(tree, id=key_of(tree)) for tree in OBJECTS])
def test_an_object_has_the_fields_of_kube_apiserver(api: ServerInThread, tree: Any) -> None:
    made = api.make(path_of(tree), tree)

    assert list(differences(made, ANSWERS[key_of(tree)]["answer"])) == []


@pytest.mark.parametrize("tree", [pytest.param(tree, id=key_of(tree)) for tree in OBJECTS])
def test_a_warning_is_that_of_kube_apiserver(api: ServerInThread, tree: Any) -> None:
    given = api.post(path_of(tree), tree).headers.get("Warning", "")

    own = [f'299 - "{tree["kind"]}: {text}"' for text in WITHOUT_EFFECT.values()]
    texts = re.findall(r'299 - "(?:[^"\\]|\\.)*"', given)
    assert [text for text in texts if text not in own] == ANSWERS[key_of(tree)]["warnings"]
