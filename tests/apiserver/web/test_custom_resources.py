"""Custom resources over HTTP, from the creation of a definition to its end."""

from pathlib import Path
from typing import Any

import pytest

from tests.rig.api_server import ServerInThread, api_server
from tests.rig.live.custom_cases import make_definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOLS = "/apis/example.sh/v1/pools"
ROLLS = "/apis/example.io/v1/namespaces/default/rolls"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
Tree = dict[str, Any]


def roll_versions() -> list[Tree]:
    """Two versions with a status, a scale, columns and a default."""
    spec = {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer", "minimum": 0, "default": 1},
            "image": {"type": "string", "description": "What runs."},
            "steps": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
                },
            },
        },
    }
    status = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    columns = [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
        },
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Image", "type": "string", "priority": 1, "jsonPath": ".spec.image"},
    ]
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    made = {
        "served": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": ".spec.image"}],
    }
    return [
        {**made, "name": "v1beta1", "storage": False, "deprecated": True},
        {**made, "name": "v1", "storage": True},
    ]


def roll_definition() -> Tree:
    names = {"plural": "rolls", "kind": "Roll", "shortNames": ["rl"], "categories": ["all"]}
    return make_definition("example.io", names, roll_versions())


def roll(name: str, **spec: Any) -> Tree:
    head = {"apiVersion": "example.io/v1", "kind": "Roll"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def pool_definition(**names: Any) -> Tree:
    """A cluster-scoped kind without a status."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    given = {"plural": "pools", "kind": "Pool", **names}
    return make_definition("example.sh", given, [version], scope="Cluster")


@pytest.fixture
def defined(api: ServerInThread) -> ServerInThread:
    api.make(DEFINITIONS, roll_definition())
    return api


def conditions(tree: Tree) -> dict[str, str]:
    return {one["type"]: one["status"] for one in tree["status"]["conditions"]}


def test_a_definition_is_established_and_in_the_discovery(defined: ServerInThread) -> None:
    tree = defined.get(f"{DEFINITIONS}/rolls.example.io").tree
    group = defined.get("/apis/example.io").tree
    resources = {r["name"]: r for r in defined.get("/apis/example.io/v1").tree["resources"]}

    assert conditions(tree) == {"NamesAccepted": "True", "Established": "True"}
    assert tree["status"]["acceptedNames"]["listKind"] == "RollList"
    assert tree["status"]["storedVersions"] == ["v1"]
    assert [version["version"] for version in group["versions"]] == ["v1", "v1beta1"]
    assert sorted(resources) == ["rolls", "rolls/scale", "rolls/status"]
    assert resources["rolls"]["shortNames"] == ["rl"]
    assert resources["rolls"]["categories"] == ["all"]
    assert defined.get("/apis/example.io/v2").status == 404


def test_objects_have_defaults_and_their_version(defined: ServerInThread) -> None:
    made = defined.make(ROLLS, roll("a", image="app:1", odd=True))
    beta = defined.get(f"{ROLLS.replace('/v1/', '/v1beta1/')}/a").tree

    assert made["spec"] == {"image": "app:1", "replicas": 1}
    assert (made["metadata"]["generation"], "status" in made) == (1, False)
    assert beta == {**made, "apiVersion": "example.io/v1beta1"}


def test_unknown_fields_and_deprecated_versions_are_warned_of(defined: ServerInThread) -> None:
    answer = defined.post(ROLLS, roll("a", odd=True))
    strict = defined.post(f"{ROLLS}?fieldValidation=Strict", roll("b", odd=True))
    beta = {**roll("c"), "apiVersion": "example.io/v1beta1"}
    deprecated = defined.post(ROLLS.replace("/v1/", "/v1beta1/"), beta)

    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.odd\\""'
    assert 'strict decoding error: unknown field "spec.odd"' in strict.tree["message"]
    assert "example.io/v1beta1 Roll is deprecated" in deprecated.headers["Warning"]


def test_defaults_that_come_later_are_read(defined: ServerInThread) -> None:
    defined.make(ROLLS, roll("a"))
    definition = roll_definition()
    for version in definition["spec"]["versions"]:
        fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        fields["image"]["default"] = "none"
    path = f"{DEFINITIONS}/rolls.example.io"
    definition["metadata"] = defined.get(path).tree["metadata"]

    assert defined.put(path, definition).status == 200
    assert defined.get(f"{ROLLS}/a").tree["spec"]["image"] == "none"
    assert defined.get(ROLLS).tree["items"][0]["spec"]["image"] == "none"


def test_the_status_is_written_by_its_subresource_only(defined: ServerInThread) -> None:
    made = defined.make(ROLLS, roll("a"))
    changed = {**made, "status": {"replicas": 3, "phase": "x"}, "spec": {"replicas": 9}}

    status = defined.put(f"{ROLLS}/a/status", changed).tree
    after = defined.put(f"{ROLLS}/a", {**status, "status": {}, "spec": {"replicas": 9}}).tree

    assert (status["spec"]["replicas"], status["status"]["replicas"]) == (1, 3)
    assert status["metadata"]["generation"] == 1
    assert (after["spec"]["replicas"], after["status"]) == (9, {"replicas": 3, "phase": "x"})
    assert after["metadata"]["generation"] == 2
    wrong = defined.patch(f"{ROLLS}/a/status", {"status": {"replicas": "x"}})
    assert "status.replicas in body must be of type integer" in wrong.tree["message"]


def test_the_scale_has_the_paths_of_the_definition(defined: ServerInThread) -> None:
    defined.make(ROLLS, roll("a", replicas=2))
    defined.patch(f"{ROLLS}/a/status", {"status": {"replicas": 1, "selector": "app=a"}})

    scale = defined.get(f"{ROLLS}/a/scale").tree
    defined.patch(f"{ROLLS}/a/scale", {"spec": {"replicas": 5}})

    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "app=a"}
    assert defined.get(f"{ROLLS}/a").tree["spec"]["replicas"] == 5


def test_tables_have_the_columns_of_the_definition(defined: ServerInThread) -> None:
    defined.make(ROLLS, roll("a", image="app:1"))
    ready = {
        "conditions": [{"type": "Old", "status": "False"}, {"type": "Ready", "status": "True"}]
    }
    defined.patch(f"{ROLLS}/a/status", {"status": ready})

    table = defined.get(ROLLS, Accept=TABLE).tree

    names = [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]]
    assert names == [
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Ready", "string", 0),
        ("Since", "date", 0),
        ("Image", "string", 1),
    ]
    assert table["rows"][0]["cells"] == ["a", 1, "True", "0s", "app:1"]


def test_field_selectors_of_the_definition(defined: ServerInThread) -> None:
    defined.make(ROLLS, roll("a", image="x"), roll("b", image="y"))

    assert defined.get(f"{ROLLS}?fieldSelector=spec.image%3Dy").names == ["b"]
    assert defined.get(f"{ROLLS}?fieldSelector=spec.replicas%3D1").status == 400


def test_patches_and_server_side_apply(defined: ServerInThread) -> None:
    first = roll("a", steps=[{"name": "x", "weight": 1}])
    second = roll("a", steps=[{"name": "y", "weight": 2}])

    defined.patch(f"{ROLLS}/a?fieldManager=one", first, "apply")
    defined.patch(f"{ROLLS}/a?fieldManager=two", second, "apply")
    merged = defined.patch(f"{ROLLS}/a", {"spec": {"image": "z"}}).tree
    strategic = defined.patch(f"{ROLLS}/a", {"spec": {}}, "strategic")

    assert [step["name"] for step in merged["spec"]["steps"]] == ["x", "y"]
    assert merged["spec"]["image"] == "z"
    assert strategic.status == 415
    assert "strategic" not in strategic.tree["message"]


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param(
            {"image": None},
            [
                'spec.image: Invalid value: "null": spec.image in body must be of type string: "null"'
            ],
            id="a field",
        ),
        pytest.param(
            {"steps": [{"name": "x", "weight": None}]},
            [
                'spec.steps[0].weight: Invalid value: "null": spec.steps[0].weight in body must be of type'
                ' integer: "null"'
            ],
            id="a field of an item",
        ),
        pytest.param({"replicas": None}, [], id="a field with a default"),
    ],
)
def test_nulls_are_refused_by_server_side_apply_and_dropped_otherwise(
    defined: ServerInThread, spec: Tree, messages: list[str]
) -> None:
    applied = defined.patch(f"{ROLLS}/a?fieldManager=one", roll("a", **spec), "apply")
    created = defined.post(ROLLS, roll("b", **spec))

    assert applied.status == (422 if messages else 201)
    for message in messages:
        assert applied.tree["message"] == f'Roll.example.io "a" is invalid: {message}'
    assert created.status == 201


def test_an_update_needs_the_resource_version(defined: ServerInThread) -> None:
    defined.make(ROLLS, roll("a"))

    answer = defined.put(f"{ROLLS}/a", roll("a", replicas=2))

    assert answer.status == 422
    assert "must be specified for an update" in answer.tree["message"]


def test_objects_are_watched_in_each_version(defined: ServerInThread) -> None:
    defined.make(ROLLS, roll("a"))
    with defined.watch(ROLLS.replace("/v1/", "/v1beta1/")) as stream:
        first = stream.take(1)[0]
        defined.delete(f"{ROLLS}/a")
        last = stream.take(1)[0]

    assert (first["type"], first["object"]["apiVersion"]) == ("ADDED", "example.io/v1beta1")
    assert first["object"]["spec"] == {"replicas": 1}
    assert last["type"] == "DELETED"


def test_openapi_has_the_schema(defined: ServerInThread) -> None:
    before = defined.get("/openapi/v3").tree["paths"]["apis/example.io/v1"]["serverRelativeURL"]
    document = defined.get(before).tree
    kind = document["components"]["schemas"]["io.example.v1.Roll"]
    old = defined.get("/openapi/v2").tree["definitions"]["io.example.v1.Roll"]
    proto = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

    assert kind["properties"]["spec"]["properties"]["image"]["description"] == "What runs."
    assert kind["properties"]["metadata"]["$ref"].endswith("ObjectMeta")
    assert "properties" not in old["properties"]["status"]  # it takes any field
    assert b"What runs." in defined.get("/openapi/v2", Accept=proto).tree
    defined.make(DEFINITIONS, pool_definition())
    paths = defined.get("/openapi/v3").tree["paths"]
    assert paths["apis/example.io/v1"]["serverRelativeURL"] == before
    assert "apis/example.sh/v1" in paths


def test_a_definition_is_deleted_with_its_objects(defined: ServerInThread) -> None:
    defined.make(ROLLS, roll("a"), roll("b"))
    held = roll("held")
    held["metadata"]["finalizers"] = ["example.io/hold"]
    defined.make(ROLLS, held)

    with defined.watch(ROLLS) as stream:
        stream.take(3)
        answer = defined.delete(f"{DEFINITIONS}/rolls.example.io").tree
        refused = defined.post(ROLLS, roll("late"))
        defined.settle()
        left = defined.get(ROLLS).names
        defined.patch(f"{ROLLS}/held", {"metadata": {"finalizers": None}})
        defined.settle()
        stream.take(4)
        assert stream.ends()

    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(answer)["Terminating"] == "True"
    assert (refused.status, "is terminating" in refused.tree["message"]) == (405, True)
    assert left == ["held"]
    assert defined.get(ROLLS).status == 404
    assert defined.get(f"{DEFINITIONS}/rolls.example.io").status == 404
    assert "example.io" not in [g["name"] for g in defined.get("/apis").tree["groups"]]


def test_names_that_are_taken_are_not_accepted_until_they_are_free(api: ServerInThread) -> None:
    api.make(DEFINITIONS, pool_definition(shortNames=["po2"]))
    other = pool_definition(plural="ponds", singular="pond", listKind="PondList")
    refused = api.make(DEFINITIONS, other)

    api.delete(f"{DEFINITIONS}/pools.example.sh")
    api.settle()
    accepted = api.get(f"{DEFINITIONS}/ponds.example.sh").tree

    assert conditions(refused) == {"NamesAccepted": "False", "Established": "False"}
    said = {c["type"]: (c["reason"], c["message"]) for c in refused["status"]["conditions"]}
    assert said["NamesAccepted"] == ("KindConflict", '"Pool" is already in use')
    assert conditions(accepted) == {"NamesAccepted": "True", "Established": "True"}
    assert api.get("/apis/example.sh/v1/ponds").status == 200


def test_what_has_no_effect_here_is_warned_of(api: ServerInThread) -> None:
    definition = pool_definition()
    (version,) = definition["spec"]["versions"]
    version["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {
            "site": {
                "type": "string",
                "format": "odd",
            },
            "at": {"type": "string", "format": "date-time"},
        },
        "x-kubernetes-validations": [
            {"rule": "self.at < timestamp('2030-01-01T00:00:00Z')"},
            {"rule": "self.at > timestamp('2020-01-01T00:00:00Z')"},
        ],
    }
    client = {"clientConfig": {"url": "https://a.b/c"}, "conversionReviewVersions": ["v1"]}
    definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": client}

    said = api.post(DEFINITIONS, definition).headers["Warning"]
    made = api.make(POOLS, {"metadata": {"name": "a"}, "site": "x", "at": "2031-01-01T00:00:00Z"})

    assert "conversion webhooks are not called" in said
    assert 'unrecognized format \\"odd\\"' in said
    assert (
        "rules in CEL that are not evaluated: v1: the object: x-kubernetes-validations[0]" in said
    )
    assert "and 1 more" in said
    assert made["site"] == "x"


def test_definitions_and_objects_survive_a_restart(tmp_path: Path) -> None:
    with api_server(tmp_path) as first:
        first.make(DEFINITIONS, roll_definition())
        made = first.make(ROLLS, roll("a", image="x"))
    with api_server(tmp_path) as second:
        assert second.get(f"{ROLLS}/a").tree == made
        assert second.get(f"{ROLLS}?fieldSelector=spec.image%3Dx").names == ["a"]
        assert second.post(ROLLS, roll("b", replicas=-1)).status == 422


def test_a_deletion_goes_on_after_a_restart(tmp_path: Path) -> None:
    with api_server(tmp_path) as first:
        first.make(DEFINITIONS, roll_definition())
        first.make(ROLLS, roll("a"))
        first.delete(f"{DEFINITIONS}/rolls.example.io")
    with api_server(tmp_path) as second:
        second.settle()
        assert second.get(ROLLS).status == 404


def test_owners_and_namespaces_take_their_objects_along(defined: ServerInThread) -> None:
    space = "/api/v1/namespaces"
    defined.make(space, {"metadata": {"name": "team"}})
    defined.make(ROLLS.replace("default", "team"), roll("a"))
    owner = defined.make(ROLLS, roll("owner"))
    reference = {"apiVersion": "example.io/v1", "kind": "Roll", "name": "owner"}
    child = roll("child")
    child["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
    defined.make(ROLLS, child)

    defined.delete(f"{space}/team")
    defined.delete(f"{ROLLS}/owner")
    defined.settle()

    assert defined.get("/apis/example.io/v1/rolls").names == []
    assert defined.get(f"{space}/team").status == 404


def test_the_group_of_a_definition_cannot_change(defined: ServerInThread) -> None:
    answer = defined.patch(f"{DEFINITIONS}/rolls.example.io", {"spec": {"scope": "Cluster"}})

    assert answer.status == 422
    assert answer.tree["details"]["causes"][0]["field"] == "spec.scope"


def test_unchanged_values_that_have_become_invalid_pass(api: ServerInThread) -> None:
    definition = roll_definition()
    api.make(DEFINITIONS, definition)
    steps = [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]
    api.make(ROLLS, roll("one", image="old", replicas=5, steps=steps))
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["image"]["maxLength"] = 2
        spec["properties"]["replicas"]["x-kubernetes-validations"] = [
            {"rule": "self < 5"},
            {"rule": "self == oldSelf || self == oldSelf + 1"},
        ]
        spec["properties"]["steps"]["items"]["properties"]["weight"]["maximum"] = 0
    stricter = {"spec": {"versions": definition["spec"]["versions"]}}
    assert api.patch(f"{DEFINITIONS}/rolls.example.io", stricter).status == 200

    def faults(**spec: Any) -> list[str]:
        answer = api.patch(f"{ROLLS}/one", {"spec": spec})
        causes = (answer.tree.get("details") or {}).get("causes") or ()
        return [cause["field"] for cause in causes]

    assert faults(note="unknown and dropped") == []
    assert faults(image="new") == ["spec.image", "<nil>"]  # rules are not checked then
    assert faults(replicas=6) == ["spec.replicas"]
    changed = [{"name": "a", "weight": 1}, {"name": "b", "weight": 3}, {"name": "c"}]
    assert faults(steps=changed) == ["spec.steps[1].weight"]
    assert faults(steps=[*steps, {"name": "c", "weight": 0}]) == []
    assert api.post(ROLLS, roll("two", replicas=5)).status == 422
