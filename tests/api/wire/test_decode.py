"""Decode: objects from JSON and YAML, and the error messages."""

import json
from typing import Any

import msgspec
import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import UnknownObject, decode, decode_items, decode_object, iter_objects
from bayplan.api.wire.kinds import KINDS
from bayplan.api.workloads import PodDisruptionBudget, PriorityClass, Service
from bayplan.errors import DecodeError

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def make_tree(kind: str = "Pod", name: str = "web-1", **parts: Any) -> dict[str, Any]:
    version = KINDS[kind].api_version if kind in KINDS else "v1"
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def read_both(tree: dict[str, Any]) -> Any:
    """Decode a tree both ways, and check that they agree on the class."""
    from_tree, from_json = decode_object(tree), decode(json.dumps(tree))
    assert type(from_tree) is type(from_json)
    return from_tree


def refusal(tree: dict[str, Any]) -> str:
    """The message with which both ways reject a tree."""
    with pytest.raises(DecodeError) as from_tree:
        decode_object(tree)
    with pytest.raises(DecodeError) as from_json:
        decode(json.dumps(tree))
    assert str(from_tree.value) == str(from_json.value)
    return str(from_tree.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "1O0m"}}}]},
            'spec.containers[0].resources.requests.cpu: "1O0m" is not a quantity',
            id="a letter for a digit",
        ),
        pytest.param(
            {"containers": [{}, {"resources": {"limits": {"memory": "-1Gi"}}}]},
            'spec.containers[1].resources.limits.memory: expected zero or more; got "-1Gi"',
            id="a negative quantity",
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "1e400"}}}]},
            'spec.containers[0].resources.requests.cpu: expected at most 9223372036854775807; got "1e400"',
            id="a quantity beyond 64 bits",
        ),
        pytest.param(
            {"initContainers": [{"resources": {"requests": {"cpu": True}}}]},
            "spec.initContainers[0].resources.requests.cpu: "
            "expected integer or number or string, got boolean",
            id="a boolean quantity",
        ),
        pytest.param(
            {"overhead": {"cpu": "x"}},
            'spec.overhead.cpu: "x" is not a quantity',
            id="overhead",
        ),
        pytest.param(
            {"containers": [{"name": 1}]},
            "spec.containers[0].name: expected string, got integer",
            id="a number for a string",
        ),
        pytest.param(
            {"containers": {}}, "spec.containers: expected list, got object", id="no list"
        ),
        pytest.param(
            {"priority": "high"}, "spec.priority: expected integer, got string", id="priority"
        ),
        pytest.param(
            {"nodeSelector": {"a": "b", "cores": 8}},
            "spec.nodeSelector.cores: expected string, got integer",
            id="an entry of a map is named",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Like"}]},
            'spec.tolerations[0].operator: expected Exists, Equal, Lt or Gt; got "Like"',
            id="toleration operator",
        ),
        pytest.param(
            {"tolerations": [{"effect": "Never"}]},
            "spec.tolerations[0].effect: "
            'expected NoSchedule, PreferNoSchedule or NoExecute; got "Never"',
            id="toleration effect",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "Equals"}]}
                            ]
                        }
                    }
                }
            },
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
            ".matchExpressions[0].operator: "
            'expected In, NotIn, Exists, DoesNotExist, Gt or Lt; got "Equals"',
            id="node selector operator",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        PREFERRED: [{"preference": {"matchFields": [{"operator": "Gt"}]}}]
                    }
                }
            },
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchFields[0].operator: "
            'expected In or NotIn; got "Gt"',
            id="field operator",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [{"labelSelector": {}}]}}},
            f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey: expected a label key; got none",
            id="affinity without topology",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        PREFERRED: [
                            {
                                "podAffinityTerm": {
                                    "topologyKey": "z",
                                    "namespaceSelector": {
                                        "matchExpressions": [{"key": "a", "operator": "Gt"}]
                                    },
                                }
                            }
                        ]
                    }
                }
            },
            f"spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.namespaceSelector"
            ".matchExpressions[0].operator: "
            'expected In, NotIn, Exists or DoesNotExist; got "Gt"',
            id="label selector operator",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "Pray"}]},
            "spec.topologySpreadConstraints[0].maxSkew: expected 1 or more; got 0",
            id="maxSkew",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "Pray"}
                ]
            },
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: "
            'expected DoNotSchedule or ScheduleAnyway; got "Pray"',
            id="whenUnsatisfiable",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
            "spec.topologySpreadConstraints[0].topologyKey: expected a label key; got none",
            id="spread without topology",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "nodeTaintsPolicy": "Maybe",
                    }
                ]
            },
            "spec.topologySpreadConstraints[0].nodeTaintsPolicy: "
            'expected Honor or Ignore; got "Maybe"',
            id="policy",
        ),
    ],
)
def test_an_invalid_pod_is_rejected(spec: dict[str, Any], message: str) -> None:
    assert refusal(make_tree(spec=spec)) == f"pod default/web-1: {message}"


def test_an_invalid_spec_is_rejected_every_time() -> None:
    tree = make_tree(spec={"overhead": {"cpu": "never seen before"}})

    assert refusal(tree) == refusal(tree)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        pytest.param(
            make_tree(metadata={"name": None}, spec={}),
            "pod: metadata.name: expected a name; got none",
            id="pod without name",
        ),
        pytest.param(
            make_tree("Node", metadata={"name": ""}),
            "node: metadata.name: expected a name; got none",
            id="node without name",
        ),
        pytest.param(
            make_tree(metadata={"namespace": "prod", "labels": {"version": 2}}),
            "pod prod/web-1: metadata.labels.version: expected string, got integer",
            id="a label that is a number",
        ),
        pytest.param(
            make_tree(metadata={"name": ["web"]}),
            "pod: metadata.name: expected string, got list",
            id="a name that is a list",
        ),
        pytest.param(
            make_tree(
                status={"containerStatuses": [{"resources": {"requests": {"cpu": "much"}}}]},
            ),
            "pod default/web-1: status.containerStatuses[0].resources.requests.cpu: "
            '"much" is not a quantity',
            id="status",
        ),
        pytest.param(
            make_tree("Node", "n1", spec={"taints": [{"key": "a", "effect": "Maybe"}]}),
            "node n1: spec.taints[0].effect: "
            'expected NoSchedule, PreferNoSchedule or NoExecute; got "Maybe"',
            id="taint effect",
        ),
        pytest.param(
            make_tree("Node", "n1", status={"allocatable": {"cpu": "four"}}),
            'node n1: status.allocatable.cpu: "four" is not a quantity',
            id="allocatable",
        ),
        pytest.param(
            make_tree(
                "Deployment",
                spec={"template": {"spec": {"containers": [{}], "overhead": {"cpu": "x"}}}},
            ),
            'deployment default/web-1: spec.template.spec.overhead.cpu: "x" is not a quantity',
            id="template",
        ),
        pytest.param(
            make_tree("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "x"}}}),
            "persistentvolumeclaim default/web-1: spec.resources.requests.storage: "
            '"x" is not a quantity',
            id="claim",
        ),
        pytest.param(
            make_tree(
                "PodDisruptionBudget",
                spec={"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            ),
            "poddisruptionbudget default/web-1: spec.selector.matchExpressions[0].operator: "
            'expected In, NotIn, Exists or DoesNotExist; got "Is"',
            id="budget",
        ),
        pytest.param(
            make_tree("CSIStorageCapacity", capacity="lots"),
            'csistoragecapacity default/web-1: capacity: "lots" is not a quantity',
            id="storage capacity",
        ),
        pytest.param(
            {"metadata": {"name": "x"}}, "object x: kind: expected a kind; got none", id="no kind"
        ),
    ],
)
def test_an_invalid_object_is_rejected(tree: dict[str, Any], message: str) -> None:
    assert refusal(tree) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"[1]", "expected object, got list", id="a list"),
        pytest.param(b"1", "expected object, got integer", id="a number"),
        pytest.param(
            b'{"kind":',
            "expected JSON; got malformed text: Input data was truncated",
            id="half an object",
        ),
    ],
)
def test_a_document_that_is_no_object_is_rejected(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as one:
        decode(data)
    with pytest.raises(DecodeError) as many:
        list(iter_objects(data))

    assert str(one.value) == str(many.value) == message


def test_an_error_names_the_source() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_object(make_tree(spec={"priority": "high"}))

    assert caught.value.where == "pod default/web-1: spec.priority"
    assert caught.value.problem == "expected integer, got string"


def test_nulls_count_as_absent() -> None:
    tree = make_tree(
        metadata={"labels": None, "creationTimestamp": None, "namespace": None, "uid": None},
        spec={
            "schedulerName": None,
            "nodeName": None,
            "tolerations": None,
            "containers": [{"name": "c", "image": None, "resources": None, "ports": None}],
        },
        status=None,
    )

    pod = read_both(tree)

    assert pod.key == "default/web-1"
    assert pod.spec is read_both(make_tree(spec={"containers": [{"name": "c"}]})).spec


def test_a_pod_may_have_a_generated_name() -> None:
    pod = read_both({"kind": "Pod", "metadata": {"generateName": "web-"}})

    assert (pod.name, pod.generate_name) == ("", "web-")


def test_unknown_kinds_pass() -> None:
    tree = make_tree("ConfigMap", "cm", metadata={"namespace": "ns"}, data={"a": "b"})

    assert read_both(tree) == UnknownObject(
        api_version="v1", kind="ConfigMap", name="cm", namespace="ns"
    )


def test_a_known_kind_of_a_foreign_group_is_unknown() -> None:
    tree = make_tree("Service") | {"apiVersion": "serving.knative.dev/v1"}

    assert isinstance(read_both(tree), UnknownObject)
    assert isinstance(read_both(make_tree("Service")), Service)
    assert isinstance(read_both({"kind": "Service", "metadata": {"name": "s"}}), Service)


def test_a_version_with_the_same_fields_is_read() -> None:
    tree = make_tree("DeviceClass") | {"apiVersion": "resource.k8s.io/v1beta2"}

    assert read_both(tree).kind == "DeviceClass"


def test_a_version_that_does_not_exist_is_refused() -> None:
    tree = make_tree("PodGroup") | {"apiVersion": "scheduling.k8s.io/v1beta1"}

    with pytest.raises(DecodeError, match=r"apiVersion: expected scheduling.k8s.io/v1alpha2; got"):
        decode_object(tree)


POD = make_tree()
NODE = make_tree("Node", "n1")


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        pytest.param(POD, ["web-1"], id="one object"),
        pytest.param({"kind": "List", "items": [POD, NODE]}, ["web-1", "n1"], id="a list"),
        pytest.param(
            {"kind": "PodList", "items": [{"metadata": {"name": "a"}}]}, ["a"], id="a typed list"
        ),
        pytest.param({"kind": "PodList", "items": None}, [], id="an empty typed list"),
        pytest.param({"kind": "List", "items": []}, [], id="an empty list"),
        pytest.param({"items": [NODE]}, ["n1"], id="a list without a kind"),
        pytest.param(
            {"kind": "List", "items": [{"kind": "List", "items": [POD]}, NODE]},
            ["web-1", "n1"],
            id="a list in a list",
        ),
        pytest.param(
            {"kind": "ConfigMapList", "items": [{"metadata": {"name": "cm"}}]},
            ["cm"],
            id="a list of unknown objects",
        ),
        pytest.param(
            {"apiVersion": "x-k8s.io/v1", "kind": "PodList", "items": [{"metadata": {"name": 1}}]},
            [""],
            id="a list of pods of another API group",
        ),
        pytest.param(
            {"kind": "AllowList", "metadata": {"name": "al"}}, ["al"], id="a kind that ends in List"
        ),
    ],
)
def test_iter_objects(tree: dict[str, Any], names: list[str]) -> None:
    from_tree, from_json = list(iter_objects(tree)), list(iter_objects(json.dumps(tree).encode()))

    assert [getattr(obj, "name", None) for obj in from_tree] == names
    assert [getattr(obj, "name", None) for obj in from_json] == names


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_iter_objects_names_the_item_at_fault(kind: str) -> None:
    bad = make_tree(name="bad", spec={"priority": "high"})
    tree = {"kind": kind, "items": [POD, bad]}

    for source in (tree, json.dumps(tree)):
        with pytest.raises(DecodeError) as caught:
            list(iter_objects(source))
        assert caught.value.where == "pod default/bad: spec.priority"


def test_equal_parts_of_pods_are_shared() -> None:
    def tree(name: str) -> dict[str, Any]:
        owner = {"kind": "ReplicaSet", "name": "rs", "uid": "1", "controller": True}
        return make_tree(
            name=name,
            metadata={"labels": {"app": "web"}, "ownerReferences": [owner]},
            status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        )

    first, second = list(iter_objects({"kind": "List", "items": [tree("a"), tree("b")]}))

    assert isinstance(first, Pod)
    assert isinstance(second, Pod)
    assert first.labels is second.labels
    assert first.owner_references is second.owner_references
    assert first.status.conditions is second.status.conditions


def test_a_bare_pod_and_a_bare_node() -> None:
    assert isinstance(read_both(POD), Pod)
    assert isinstance(read_both(NODE), Node)
    assert read_both(NODE).allocatable == {}


def test_objects_share_a_shape() -> None:
    budget = read_both(
        make_tree(
            "PodDisruptionBudget",
            metadata={"namespace": "ns", "uid": "u", "labels": {"a": "b"}},
            spec={"minAvailable": "50%"},
            status={"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-03-01T00:00:00Z"}},
        )
    )
    priority = read_both(make_tree("PriorityClass", "high", value=1000))

    assert isinstance(budget, PodDisruptionBudget)
    assert (budget.kind, budget.api_version) == ("PodDisruptionBudget", "policy/v1")
    assert (budget.name, budget.namespace, budget.uid) == ("web-1", "ns", "u")
    assert (budget.labels, budget.annotations) == ({"a": "b"}, {})
    assert budget.disrupted_pods == {"p": "2026-03-01T00:00:00Z"}
    assert isinstance(priority, PriorityClass)
    assert (priority.key, priority.value) == ("high", 1000)


def test_wire_names_are_those_of_kubernetes() -> None:
    for kind in KINDS.values():
        for field in msgspec.structs.fields(kind.wire):
            assert field.encode_name[0].islower()
            assert "_" not in field.encode_name


# Items of a list at once


ITEM_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
ITEM_NODE = {"kind": "Node", "metadata": {"name": "n"}, "apiVersion": "v1"}
ITEM_SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}


@pytest.mark.parametrize(
    ("items", "kind", "names"),
    [
        pytest.param([], "List", [], id="none"),
        pytest.param([ITEM_POD, ITEM_NODE], "List", ["Pod a", "Node n"], id="pods and nodes"),
        pytest.param([{"metadata": {"name": "a"}}], "PodList", ["Pod a"], id="a list of pods"),
        pytest.param([{"metadata": {"name": "s"}}], "ServiceList", ["Service s"], id="of services"),
        pytest.param([ITEM_POD, ITEM_SERVICE], "List", None, id="other kinds among them"),
        pytest.param(
            [ITEM_POD | {"apiVersion": "x/v1"}], "List", None, id="a pod of another API group"
        ),
        pytest.param([ITEM_POD | {"spec": None}], "List", None, id="null for absent"),
        pytest.param([ITEM_POD | {"spec": {"containers": 7}}], "List", None, id="a wrong type"),
        pytest.param([ITEM_POD | {"metadata": {}}], "List", None, id="no name"),
        pytest.param([{"metadata": {}}], "WagonList", None, id="a list of an unknown kind"),
    ],
)
def test_items_are_decoded_at_once_or_not_at_all(
    items: list[Any], kind: str, names: list[str] | None
) -> None:
    found: Any = decode_items(msgspec.json.encode(items), kind)

    assert (found and [f"{obj.kind} {obj.name}" for obj in found]) == names


def test_items_that_are_no_json_are_rejected() -> None:
    with pytest.raises(DecodeError, match="expected JSON"):
        decode_items(b'[{"kind"', "List")
