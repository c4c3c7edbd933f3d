"""Admission: defaults, and that they are applied once."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.api.workloads import Namespace
from bayplan.cluster.memory.admission import Admission, AdmissionError, admit_namespace
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.testing.builders import make_object
from tests.rig.objects import decoded

PATIENCE = [
    {
        "key": f"node.kubernetes.io/{what}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for what in ("not-ready", "unreachable")
]


def make_admission(*classes: dict[str, Any]) -> Admission:
    cluster = MemoryCluster()
    for fields in classes:
        name = fields.pop("name")
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        cluster.add(decoded({**head, "metadata": {"name": name}, **fields}))
    return Admission(cluster)


def decoded_pod(spec: dict[str, Any], labels: dict[str, str] | None = None) -> Pod:
    pod: Pod = make_object("Pod", "p", metadata={"labels": labels or {}}, spec=spec)
    return pod


def admit(
    spec: dict[str, Any], labels: dict[str, str] | None = None, *classes: dict[str, Any]
) -> dict[str, Any]:
    """The spec as admitted, as plain data."""
    admitted = make_admission(*classes).admit(decoded_pod(spec, labels))
    found: dict[str, Any] = to_dict(admitted)["spec"]
    return found


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


def test_an_empty_pod_gets_scheduler_priority_and_toleration_seconds() -> None:
    assert admit({}) == {
        "schedulerName": "default-scheduler",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": PATIENCE,
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"limits": {"cpu": "1"}}, {"cpu": "1"}, id="limits alone"),
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            {"cpu": "1", "memory": "1Gi"},
            id="a limit for what is not requested",
        ),
        pytest.param({"requests": {"cpu": "0"}}, {"cpu": "0"}, id="an explicit zero stays"),
    ],
)
@pytest.mark.parametrize("which", ["containers", "initContainers"])
def test_requests_default_to_limits(
    given: dict[str, Any], expected: dict[str, str], which: str
) -> None:
    spec = admit({which: [container(**given)]})

    assert spec[which][0]["resources"]["requests"] == expected


@pytest.mark.parametrize(
    ("pod_resources", "container_resources", "expected"),
    [
        pytest.param(
            {"limits": {"cpu": "4"}}, {}, {"cpu": "4"}, id="limits where containers request nothing"
        ),
        pytest.param(
            {"limits": {"cpu": "4", "memory": "1Gi"}},
            {"requests": {"cpu": "250m"}},
            {"cpu": "250m", "memory": "1Gi"},
            id="what containers request comes first",
        ),
        pytest.param(
            {"limits": {"cpu": "4"}, "requests": {"cpu": "3"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {"cpu": "3", "memory": 1 << 30},
            id="what the pod requests stays",
        ),
        pytest.param(
            {"requests": {"cpu": "3"}},
            {"requests": {"memory": "1Gi"}},
            {"cpu": "3"},
            id="without limits nothing is added",
        ),
        pytest.param(
            {"requests": {"cpu": "3"}},
            {"limits": {"hugepages-2Mi": "4Mi"}},
            {"cpu": "3", "hugepages-2Mi": 4 << 20},
            id="huge pages of containers are limits of the pod",
        ),
    ],
)
def test_pod_level_requests(
    pod_resources: dict[str, Any],
    container_resources: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    spec = admit({"resources": pod_resources, "containers": [container(**container_resources)]})

    assert spec["resources"]["requests"] == expected


@pytest.mark.parametrize(
    ("host_network", "port", "expected"),
    [
        pytest.param(True, {"containerPort": 80}, 80, id="container port on the host network"),
        pytest.param(True, {"containerPort": 80, "hostPort": 81}, 81, id="a host port stays"),
        pytest.param(False, {"containerPort": 80}, None, id="no host network"),
    ],
)
def test_host_ports(host_network: bool, port: dict[str, int], expected: int | None) -> None:
    spec = admit({"hostNetwork": host_network, "containers": [{"name": "c", "ports": [port]}]})

    assert spec["containers"][0]["ports"][0].get("hostPort") == expected


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        pytest.param({}, [], (0, "", "PreemptLowerPriority"), id="no class at all"),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            [],
            (2_000_001_000, "system-node-critical", "PreemptLowerPriority"),
            id="node critical is built in",
        ),
        pytest.param(
            {"priorityClassName": "system-cluster-critical"},
            [],
            (2_000_000_000, "system-cluster-critical", "PreemptLowerPriority"),
            id="cluster critical is built in",
        ),
        pytest.param(
            {"priorityClassName": "gold"},
            [{"name": "gold", "value": 7, "preemptionPolicy": "Never"}],
            (7, "gold", "Never"),
            id="value and policy of the class",
        ),
        pytest.param(
            {},
            [
                {"name": "high", "value": 9, "globalDefault": True},
                {"name": "low", "value": 5, "globalDefault": True},
                {"name": "lower", "value": 1},
            ],
            (5, "low", "PreemptLowerPriority"),
            id="the lowest of several defaults",
        ),
        pytest.param(
            {"priorityClassName": "gone", "priority": 3},
            [],
            (3, "gone", "PreemptLowerPriority"),
            id="a pod that has a priority keeps it without its class",
        ),
    ],
)
def test_priority(
    spec: dict[str, Any], classes: list[dict[str, Any]], expected: tuple[int, str, str]
) -> None:
    admitted = admit(spec, None, *(dict(fields) for fields in classes))

    found = (
        admitted["priority"],
        admitted.get("priorityClassName", ""),
        admitted["preemptionPolicy"],
    )
    assert found == expected


def test_an_unknown_priority_class_is_rejected() -> None:
    with pytest.raises(AdmissionError) as caught:
        admit({"priorityClassName": "gold"})

    assert str(caught.value) == (
        "pod default/p: spec.priorityClassName: "
        'expected a PriorityClass of the input or a built-in one; got "gold"'
    )


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], PATIENCE, id="none given"),
        pytest.param([{"operator": "Exists"}], [], id="everything is tolerated"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            PATIENCE[1:],
            id="not ready is tolerated for good",
        ),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}], PATIENCE, id="another effect"
        ),
    ],
)
def test_tolerations(given: list[dict[str, str]], added: list[dict[str, Any]]) -> None:
    assert admit({"tolerations": given})["tolerations"] == given + added


def make_spread(selector: dict[str, Any] | None, keys: list[str]) -> dict[str, Any]:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "matchLabelKeys": keys,
    }
    return spread if selector is None else {**spread, "labelSelector": selector}


REVISION = {"key": "rev", "operator": "In", "values": ["7"]}


@pytest.mark.parametrize(
    ("selector", "keys", "expected"),
    [
        pytest.param({}, ["rev"], {"matchExpressions": [REVISION]}, id="a label of the pod"),
        pytest.param({}, ["other"], {}, id="a label the pod does not have"),
        pytest.param(None, ["rev"], None, id="a missing selector stays missing"),
        pytest.param(
            {"matchExpressions": [REVISION]},
            ["rev"],
            {"matchExpressions": [REVISION]},
            id="merged before",
        ),
    ],
)
def test_match_label_keys_of_a_spread_constraint(
    selector: dict[str, Any] | None, keys: list[str], expected: dict[str, Any] | None
) -> None:
    spec = admit({"topologySpreadConstraints": [make_spread(selector, keys)]}, {"rev": "7"})

    assert spec["topologySpreadConstraints"][0].get("labelSelector") == expected


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_label_keys_of_affinity_terms(kind: str) -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["rev"],
        "mismatchLabelKeys": ["tenant"],
    }
    wishes = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}],
    }

    spec = admit({"affinity": {kind: wishes}}, {"rev": "7", "tenant": "t"})

    merged = {
        "matchLabels": {"app": "a"},
        "matchExpressions": [REVISION, {"key": "tenant", "operator": "NotIn", "values": ["t"]}],
    }
    found = spec["affinity"][kind]
    required = found["requiredDuringSchedulingIgnoredDuringExecution"][0]
    preferred = found["preferredDuringSchedulingIgnoredDuringExecution"][0]
    assert required["labelSelector"] == merged
    assert preferred["podAffinityTerm"]["labelSelector"] == merged
    assert preferred["weight"] == 5


def test_pods_of_one_spec_and_different_labels_get_their_own_selectors() -> None:
    admission = make_admission()
    spec = {"topologySpreadConstraints": [make_spread({}, ["rev"])]}

    first, second = (admission.admit(decoded_pod(spec, {"rev": rev})) for rev in ("7", "8"))

    values = [
        to_dict(pod)["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"]
        for pod in (first, second)
    ]
    assert [value[0]["values"] for value in values] == [["7"], ["8"]]


def test_admitting_again_changes_nothing() -> None:
    admission = make_admission({"name": "gold", "value": 7})
    spec = {
        "hostNetwork": True,
        "priorityClassName": "gold",
        "resources": {"limits": {"cpu": "4"}},
        "containers": [
            {"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}
        ],
        "topologySpreadConstraints": [make_spread({}, ["rev"])],
    }
    once = admission.admit(decoded_pod(spec, {"rev": "7"}))

    assert admission.admit(once) is once


def test_a_priority_class_added_later_counts() -> None:
    cluster = MemoryCluster()
    admission = Admission(cluster)
    assert admission.admit(decoded_pod({})).priority == 0

    cluster.add(
        decoded(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "gold"},
                "value": 7,
                "globalDefault": True,
            }
        )
    )

    assert admission.admit(decoded_pod({})).priority == 7


def test_a_namespace_has_its_name_as_a_label() -> None:
    namespace = decode_object({"kind": "Namespace", "metadata": {"name": "shop"}})
    assert isinstance(namespace, Namespace)

    admitted = admit_namespace(namespace)

    assert admitted.labels == {"kubernetes.io/metadata.name": "shop"}
    assert admit_namespace(admitted) is admitted
