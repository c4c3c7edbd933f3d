"""Decode: objects from JSON and YAML, and the error messages."""

import json
from typing import Any

import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.taints import Toleration
from bayplan.api.wire.decode import UnknownObject, decode, decode_object, iter_objects
from bayplan.api.workloads import Service
from bayplan.errors import DecodeError
from tests.api.wire.trees import make_tree, read_both

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
    tree = make_tree("PodGroup") | {"apiVersion": "scheduling.k8s.io/v1beta2"}

    with pytest.raises(DecodeError, match=r"apiVersion: expected scheduling.k8s.io/v1alpha2; got"):
        decode_object(tree)


def test_null_in_a_map_is_the_zero_value_of_its_type() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": None}, "limits": {"cpu": "2"}}}
    spec = {"nodeSelector": {"role": None}, "affinity": None, "containers": [container]}
    head = {"apiVersion": "v1", "kind": "Pod"}

    pod = decode_object({**head, "metadata": {"name": "p", "labels": {"a": None}}, "spec": spec})
    node = decode_object(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"role": None}}}
    )

    assert isinstance(pod, Pod)
    assert isinstance(node, Node)
    assert pod.labels == {"a": ""}
    assert pod.spec.node_selector == {"role": ""}
    assert pod.requests.get("cpu", 0) == 0, "not the limit"
    assert node.labels == {"role": ""}


def test_null_in_a_list_is_the_zero_value_of_its_type() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [None]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"affinity": {"nodeAffinity": required}, "tolerations": [None]}
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}

    pod = decode_object({**head, "spec": spec})

    assert isinstance(pod, Pod)
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    selector = affinity.node_affinity.required
    assert selector is not None
    ((expression,),) = (each.match_expressions or () for each in selector.terms)
    assert expression.values == ("",)
    assert pod.spec.tolerations == (Toleration(),)
