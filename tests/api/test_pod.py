"""Pod: flat, immutable, on a shared spec."""

import json
from typing import Any

import msgspec
import pytest

from bayplan.api.containers import HostPort
from bayplan.api.meta import OwnerReference
from bayplan.api.pod import EMPTY_STATUS, Pod, PodSpec, PodStatus, intern_spec
from bayplan.testing.builders import make_object


def decoded_pod(name: str = "p", **spec: Any) -> Pod:
    pod: Pod = make_object("Pod", name, spec=spec)
    return pod


def test_pods_with_equal_specs_share_one() -> None:
    first = decoded_pod(nodeName="a", nodeSelector={"x": "1", "y": "2"}, containers=[{"name": "c"}])
    second = decoded_pod(
        nodeName="b", nodeSelector={"y": "2", "x": "1"}, containers=[{"name": "c"}]
    )

    assert first.spec is second.spec
    assert (first.node_name, second.node_name) == ("a", "b")
    assert first.spec is intern_spec(first.spec)


def test_pods_with_other_specs_do_not_share() -> None:
    assert decoded_pod(priority=1).spec is not decoded_pod(priority=2).spec
    assert decoded_pod(nodeSelector={}).spec is not decoded_pod().spec


def test_interning_drops_irrelevant_volumes() -> None:
    plain = decoded_pod(containers=[])
    token = decoded_pod(containers=[], volumes=[{"name": "kube-api-access-x1", "projected": {}}])

    assert token.spec is plain.spec


def test_interning_drops_the_names_of_volumes_unless_a_claim_is_named_after_them() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    ephemeral: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}

    assert decoded_pod(volumes=[{"name": "a", **claim}]).spec is (
        decoded_pod(volumes=[{"name": "b", **claim}]).spec
    )
    assert decoded_pod(volumes=[{"name": "a", **ephemeral}]).spec is not (
        decoded_pod(volumes=[{"name": "b", **ephemeral}]).spec
    )


@pytest.mark.parametrize(
    "source",
    [
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, id="gcePersistentDisk"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "d"}}, id="awsElasticBlockStore"),
        pytest.param({"azureDisk": {"diskName": "d", "diskURI": "u"}}, id="azureDisk"),
        pytest.param({"azureFile": {"shareName": "d"}}, id="azureFile"),
        pytest.param({"cinder": {"volumeID": "d"}}, id="cinder"),
        pytest.param({"portworxVolume": {"volumeID": "d"}}, id="portworxVolume"),
        pytest.param({"vsphereVolume": {"volumePath": "d"}}, id="vsphereVolume"),
        pytest.param({"rbd": {"monitors": ["m"], "image": "d", "pool": "p"}}, id="rbd"),
        pytest.param({"iscsi": {"iqn": "d", "lun": 1}}, id="iscsi"),
        pytest.param({"csi": {"driver": "d"}}, id="csi"),
        pytest.param({"image": {"reference": "d"}}, id="image"),
    ],
)
def test_interning_keeps_relevant_volumes(source: dict[str, Any]) -> None:
    (volume,) = decoded_pod(volumes=[{"name": "v", **source}]).spec.volumes or ()

    assert json.loads(msgspec.json.encode(volume)) == source


def test_interning_does_not_modify_the_given_spec() -> None:
    given = msgspec.convert({"volumes": [{"name": "scratch"}], "priority": 7}, PodSpec)

    common = intern_spec(given)

    assert common.volumes is None
    assert given.volumes is not None
    assert common.priority == 7


def test_defaults_of_a_bare_pod() -> None:
    pod = Pod("p")

    assert pod.key == "default/p"
    assert pod.priority == 0
    assert pod.scheduler_name == "default-scheduler"
    assert pod.tolerations == ()
    assert pod.uid == pod.node_name == pod.nominated_node_name == ""
    assert pod.labels == pod.annotations == {}
    assert pod.requests == {}
    assert pod.status is EMPTY_STATUS
    assert not pod.is_terminating
    assert not pod.is_finished
    assert pod.controller is None


def test_copies_change_only_the_named_fields() -> None:
    owner = OwnerReference(kind="ReplicaSet", name="rs", controller=True)
    pod = Pod("p", "ns", uid="u", labels={"a": "b"}, owner_references=(owner,))

    bound = pod.with_node("n1")
    done = bound.with_status(PodStatus(phase="Succeeded", nominated_node_name="n2"))
    other = done.with_spec(PodSpec(priority=5, scheduler_name="mine"))

    assert pod.node_name == ""
    assert (bound.node_name, bound.uid, bound.spec) == ("n1", "u", pod.spec)
    assert (done.is_finished, done.nominated_node_name, done.node_name) == (True, "n2", "n1")
    assert (other.priority, other.scheduler_name, other.labels) == (5, "mine", {"a": "b"})
    assert other.replace(deletion_timestamp="2026-03-01T00:00:00Z").is_terminating
    assert other.controller == owner
    assert repr(other) == "<Pod ns/p on n1>"


def test_host_ports_of_containers_and_sidecars() -> None:
    port = {"containerPort": 80, "hostPort": 8080}
    pod = decoded_pod(
        containers=[
            {"ports": [port, {"containerPort": 81}]},
            {"ports": [port, {**port, "protocol": "UDP", "hostIP": "10.0.0.1"}]},
        ],
        initContainers=[
            {"ports": [{"hostPort": 1}]},
            {"ports": [{"hostPort": 2}], "restartPolicy": "Always"},
        ],
    )

    assert pod.spec.host_ports == (
        HostPort("0.0.0.0", "TCP", 2),
        HostPort("0.0.0.0", "TCP", 8080),
        HostPort("10.0.0.1", "UDP", 8080),
    )


def test_images_in_order_of_use() -> None:
    pod = decoded_pod(
        containers=[{"image": "app"}, {"image": "log:1"}],
        initContainers=[{"image": "setup"}],
        volumes=[{"name": "m", "image": {"reference": "model:2"}}],
    )

    assert pod.spec.images == ("setup", "app", "log:1", "model:2")


def test_short_names_of_affinity_terms() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    spec = decoded_pod(
        affinity={
            "podAffinity": {required: [term]},
            "podAntiAffinity": {preferred: [{"weight": 3, "podAffinityTerm": term}]},
        }
    ).spec

    assert [t.topology_key for t in spec.required_affinity] == ["zone"]
    assert [t.weight for t in spec.preferred_anti_affinity] == [3]
    assert spec.required_anti_affinity == ()
    assert spec.preferred_affinity == ()
    assert spec.required_node_selector is None
    assert len({spec.required_affinity[0], spec.preferred_anti_affinity[0].pod_affinity_term}) == 1


def test_specs_that_name_different_claims_have_one_template() -> None:
    def claiming(volume: str, device: str) -> PodSpec:
        source = {"persistentVolumeClaim": {"claimName": volume}}
        devices = [{"name": "gpu", "resourceClaimName": device}]
        requests = {"resources": {"requests": {"cpu": "2"}}}
        return decoded_pod(
            containers=[{"name": "c", **requests}], volumes=[source], resourceClaims=devices
        ).spec

    first, second = claiming("a", "x"), claiming("b", "x")

    assert (first.claims, second.claims) == (("a", "x"), ("b", "x"))
    assert first.template is second.template is claiming("b", "y").template
    assert first.template is not None
    assert first.template.claims == ("",)
    assert first.template.template is None
    assert first.requests is first.template.requests
    assert first.containers is second.containers


def test_a_template_keeps_all_but_the_names() -> None:
    read_only = {"persistentVolumeClaim": {"claimName": "a", "readOnly": True}}
    generated = {"name": "gpu", "resourceClaimTemplateName": "gpus"}
    plain = decoded_pod(priority=5)

    assert plain.spec.template is None
    assert decoded_pod(resourceClaims=[generated]).spec.template is None
    assert decoded_pod(volumes=[read_only]).spec.template is not (
        decoded_pod(volumes=[{"persistentVolumeClaim": {"claimName": "a"}}]).spec.template
    )


def test_a_pod_with_the_spec_of_its_class_stays_in_the_class() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod = decoded_pod(affinity=affinity, priority=5)

    found = pod.with_class_spec()

    assert (pod.spec.pin, found.spec.pin, found.spec.priority) == ("a", "", 5)
    assert found.pod_class is pod.pod_class is pod.replace(spec=found.spec).pod_class


def asking(**requests: str) -> PodSpec:
    resources = {"requests": requests, "limits": {"cpu": requests.get("cpu", "1")}}
    return decoded_pod(containers=[{"name": "c", "image": "web:1", "resources": resources}]).spec


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(asking(cpu="2", memory="3Gi"), True, id="other amounts"),
        pytest.param(asking(cpu="1", memory="0"), False, id="nothing of a resource"),
        pytest.param(asking(cpu="1"), False, id="fewer resources"),
        pytest.param(asking(cpu="1", memory="1Gi", gpu="1"), False, id="more resources"),
        pytest.param(decoded_pod(cpu="1", memory="1Gi").spec, False, id="another image"),
    ],
)
def test_the_outline_of_a_spec_leaves_out_amounts_only(other: PodSpec, is_same: bool) -> None:
    spec = asking(cpu="1", memory="1Gi")

    assert (spec.outline == other.outline) is is_same


def test_the_outline_of_a_spec_leaves_out_amounts_of_the_whole_pod_and_of_init_containers() -> None:
    def sized(amount: str) -> PodSpec:
        some = {"requests": {"cpu": amount}}
        return decoded_pod(
            init_containers=[{"name": "i", "resources": some}],
            resources=some,
            overhead={"memory": amount},
        ).spec

    assert sized("1").outline == sized("2").outline
    assert sized("1").outline != sized("0").outline
