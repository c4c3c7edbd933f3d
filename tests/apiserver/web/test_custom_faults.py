"""Random definitions and objects of custom resources: none makes the server fail."""

import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rig.api_server import ServerInThread
from tests.rig.live.custom_cases import DEFINITIONS, make_definition
from tests.rig.random_examples import examples

CASES = Path(__file__).parents[1] / "registry" / "custom_cases.yaml"
SCHEMA = yaml.safe_load(CASES.read_text())["schema"]
PATH = "/apis/random.example.com/v1/namespaces/default/shapes"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
COUNT = examples(30)
VALUES: list[Any] = [
    *(None, "x", "", 0, -1, 1.5, 10**20, True, [], {}, ["a", "a"], [1], {"a": 1}, [{}], [None]),
    *({"type": "object"}, {"type": "array"}, "(", "^(?i)a|b$", {"x": {}}, {"x": None}),
    *([{"rule": "self.x > 1"}], [{"rule": 5}], "map", "set", "integer"),
]
KEYS = (
    *("type", "items", "properties", "additionalProperties", "default", "enum", "oneOf", "anyOf"),
    *("allOf", "not", "pattern", "format", "minimum", "maxLength", "required", "nullable"),
    *("multipleOf", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "names", "versions"),
    *("x-kubernetes-int-or-string", "x-kubernetes-validations", "schema", "subresources"),
    *("additionalPrinterColumns", "selectableFields", "conversion"),
)
Tree = dict[str, Any]


def changed(chance: random.Random, tree: Tree, count: int) -> Tree:
    """The tree with some random values in random places."""
    tree = deepcopy(tree)
    for _ in range(count):
        holder: Any = tree
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = chance.choice(keys)
            if isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.8:
                holder = holder[key]
                continue
            if isinstance(holder, dict) and chance.random() < 0.3:
                key = chance.choice(KEYS)
            holder[key] = deepcopy(chance.choice(VALUES))
            break
    return tree


@pytest.mark.parametrize("seed", range(3))
def test_random_definitions_and_objects_never_give_a_5xx(api: ServerInThread, seed: int) -> None:
    chance = random.Random(seed)
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": "v1", "served": True, "storage": True}
    version |= {
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": "shapes", "kind": "Shape"}
    definition = make_definition("random.example.com", names, [version])
    spec = {"size": 1, "list": [{"a": 1}], "ports": [{"number": 1}], "replicas": 1}
    head = {"apiVersion": "random.example.com/v1", "kind": "Shape"}
    shape = {**head, "metadata": {"name": "o"}, "spec": spec}
    accepted = 0

    for _ in range(COUNT):
        answers = [api.post(DEFINITIONS, changed(chance, definition, chance.choice((0, 1, 2))))]
        accepted += answers[0].status == 201
        for count in (0, 1, 3):
            tree = changed(chance, shape, count)
            answers += [
                api.post(PATH, tree),
                api.patch(f"{PATH}/o", {"spec": changed(chance, spec, 1)}),
                api.patch(f"{PATH}/o?fieldManager=x", tree, "apply"),
                api.patch(f"{PATH}/o/status", {"status": chance.choice(VALUES)}),
                api.patch(f"{PATH}/o/scale", {"spec": {"replicas": 3}}),
                api.get(PATH, Accept=TABLE),
                api.delete(f"{PATH}/o"),
            ]
        api.delete(f"{DEFINITIONS}/shapes.random.example.com")
        api.settle()
        faults = [
            a.tree for a in answers if a.status >= 500 and "replicas field" not in str(a.tree)
        ]
        assert faults == []

    assert accepted > COUNT // 4
