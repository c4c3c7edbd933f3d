"""Kinds: the built-in kinds that are stored as they are: created, with defaults, in tables, and with warnings."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.apiserver.registry.resource_table import BY_STORAGE, RESOURCES
from bayplan.apiserver.web.write_requests import WITHOUT_EFFECT
from tests.rig.api_server import ServerInThread

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CASES = yaml.safe_load((Path(__file__).parent / "kinds.yaml").read_text())
DOCS = Path(__file__).resolve().parents[3] / "docs" / "up.md"
Tree = dict[str, Any]


def path_of(tree: Tree) -> str:
    group, _, version = tree["apiVersion"].rpartition("/")
    resource = next(
        r for r in RESOURCES if (r.group, r.version, r.kind) == (group, version, tree["kind"])
    )
    root = f"/apis/{tree['apiVersion']}" if group else f"/api/{version}"
    where = "/namespaces/default" if resource.is_namespaced else ""
    return f"{root}{where}/{resource.plural}"


@pytest.mark.parametrize("case", [pytest.param(c, id=c["object"]["kind"]) for c in CASES])
def test_an_object_is_stored_with_its_defaults_and_printed(api: ServerInThread, case: Tree) -> None:
    tree = {**case["object"], "metadata": {"name": case.get("name", "one")}}
    path = path_of(tree)

    made = api.make(path, tree)
    name = made["metadata"]["name"]
    table = api.get(f"{path}?fieldSelector=metadata.name%3D{name}", Accept=TABLE).tree

    for part, fields in case.get("set", {}).items():
        found = made[part]
        assert (found if isinstance(fields, list) else {k: found[k] for k in fields}) == fields
    headings = [column["name"] for column in table["columnDefinitions"]]
    cells = table["rows"][0]["cells"]
    assert len(cells) == len(headings)
    assert [c for c, h in zip(cells, headings, strict=True) if h != "Age"] == case["row"]


def test_an_autoscaler_has_two_versions(api: ServerInThread) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    old = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    new = old.replace("v1", "v2", 1)
    head = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}

    made = api.make(old, {**head, "metadata": {"name": "a"}, "spec": spec})
    converted = api.get(f"{new}/a").tree
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
    metrics = [*converted["spec"]["metrics"], {"type": "Resource", "resource": memory}]
    api.patch(f"{new}/a", {"spec": {"metrics": metrics}})
    api.patch(f"{old}/a", {"spec": {"targetCPUUtilizationPercentage": 70}})

    assert made["spec"] == {**spec, "minReplicas": 1}
    (cpu,) = converted["spec"]["metrics"]
    assert cpu["resource"]["target"] == {"type": "Utilization", "averageUtilization": 50}
    after = api.get(f"{new}/a").tree
    assert [m["resource"]["name"] for m in after["spec"]["metrics"]] == ["cpu", "memory"]
    assert after["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    assert "annotations" not in after["metadata"] or not after["metadata"]["annotations"]


@pytest.mark.parametrize("case", [pytest.param(c, id=c["object"]["kind"]) for c in CASES])
def test_kinds_without_their_effect_are_warned_of(api: ServerInThread, case: Tree) -> None:
    tree = {**case["object"], "metadata": {"name": case.get("name", "one")}}
    path = path_of(tree)
    plural, group = path.rpartition("/")[2], tree["apiVersion"].rpartition("/")[0]

    said = api.post(path, tree).headers.get("Warning", "")

    text = WITHOUT_EFFECT.get(f"{plural}.{group}" if group else plural)
    if tree["kind"] == "Endpoints":
        assert "v1 Endpoints is deprecated in v1.33+" in said
    else:
        assert said == (f'299 - "{tree["kind"]}: {text}"' if text else "")


SILENT = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "endpointslices.discovery.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "ingressclasses.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "ipaddresses.networking.k8s.io",
        "networkpolicies.networking.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "servicecidrs.networking.k8s.io",
        "services",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    }
)
"""Kinds whose effect would be outside the API: traffic, permissions, queues of requests."""


def test_the_documentation_names_every_kind_without_its_effect() -> None:
    page = DOCS.read_text()

    missing = [BY_STORAGE[name].kind for name in (*WITHOUT_EFFECT, *SILENT)]
    assert [kind for kind in missing if kind not in page] == []


def test_a_request_for_a_certificate_names_its_sender(api: ServerInThread) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    spec = {"request": "eA==", "signerName": "a.b/c", "usages": ["client auth"]}
    forged = {**spec, "username": "somebody-else", "uid": "1", "groups": ["x"]}

    made = api.make(path, {"metadata": {"name": "c"}, "spec": forged})

    assert made["spec"]["username"] == "bayplan-admin"
    assert made["spec"]["groups"] == ["system:masters", "system:authenticated"]
    assert "uid" not in made["spec"]


def test_the_approval_of_a_request_is_written(api: ServerInThread) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    spec = {"request": "eA==", "signerName": "a.b/c", "usages": ["client auth"]}
    made = api.make(path, {"metadata": {"name": "c"}, "spec": spec})
    approved = {"type": "Approved", "status": "True", "reason": "x", "message": "y"}

    answer = api.put(f"{path}/c/approval", {**made, "status": {"conditions": [approved]}})

    times = {"lastUpdateTime": None, "lastTransitionTime": None}
    assert answer.tree["status"]["conditions"] == [{**approved, **times}]
    assert api.get(path, Accept=TABLE).tree["rows"][0]["cells"][-1] == "Approved"
