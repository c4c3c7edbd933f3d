"""Discovery: groups, versions and resources, in the old and the aggregated form."""

import asyncio
from typing import Any

import pytest

from bayplan.kube.discovery import find_served
from bayplan.kube.watched_kinds import RESOURCES
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import pod_tree

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_the_old_form(api: ServerInThread) -> None:
    groups = {group["name"]: group for group in api.get("/apis").tree["groups"]}
    resources = {r["name"]: r for r in api.get("/api/v1").tree["resources"]}

    assert api.get("/api").tree["versions"] == ["v1"]
    assert groups["apps"]["preferredVersion"]["groupVersion"] == "apps/v1"
    assert resources["pods"]["shortNames"] == ["po"]
    assert resources["pods"]["namespaced"] is True
    assert resources["pods/eviction"]["kind"] == "Eviction"
    assert resources["pods/eviction"]["group"] == "policy"
    assert resources["nodes"]["namespaced"] is False
    assert api.get("/apis/apps").tree["kind"] == "APIGroup"
    assert api.get("/apis/apps/v1").tree["groupVersion"] == "apps/v1"
    assert api.get("/apis/none").status == 404
    assert api.get("/apis/apps/v9").status == 404


def test_the_aggregated_form(api: ServerInThread) -> None:
    answer = api.get("/apis", Accept=f"{AGGREGATED},application/json")

    assert answer.headers["Content-Type"] == AGGREGATED
    assert answer.tree["kind"] == "APIGroupDiscoveryList"
    apps = next(g for g in answer.tree["items"] if g["metadata"]["name"] == "apps")
    resources = {r["resource"]: r for r in apps["versions"][0]["resources"]}
    assert resources["deployments"]["responseKind"]["kind"] == "Deployment"
    scale = next(s for s in resources["deployments"]["subresources"] if s["subresource"] == "scale")
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_both_forms_have_the_same_content(api: ServerInThread) -> None:
    old = {
        (group["name"], resource["name"])
        for group in api.get("/apis").tree["groups"]
        for version in group["versions"]
        for resource in api.get(f"/apis/{version['groupVersion']}").tree["resources"]
        if "/" not in resource["name"]
    }
    new = {
        (group["metadata"]["name"], resource["resource"])
        for group in api.get("/apis", Accept=AGGREGATED).tree["items"]
        for version in group["versions"]
        for resource in version["resources"]
    }

    assert old == new


def test_version_and_health(api: ServerInThread) -> None:
    assert api.get("/version").tree["minor"] == "36"
    assert api.get("/readyz").tree == b"ok"
    assert api.get("/livez").status == 200


def test_openapi(api: ServerInThread) -> None:
    proto = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    where = api.get("/openapi/v3").tree["paths"]["apis/apps/v1"]["serverRelativeURL"]

    assert api.get(where).tree["openapi"] == "3.0.0"
    assert api.get("/openapi/v2").tree["swagger"] == "2.0"
    assert "@" not in api.get("/openapi/v2", Accept=proto).headers["Content-Type"]
    assert api.get("/openapi/v2", Accept="text/html").status == 406
    assert api.get("/openapi/v3/apis/none/v1").status == 404


def test_requests_without_a_token_are_rejected() -> None:
    with api_server(token="secret") as api:
        assert api.get("/api/v1/pods").tree["reason"] == "Unauthorized"
        assert api.get("/api/v1/pods", Authorization="Bearer wrong").status == 401
        assert api.get("/api/v1/pods", Authorization="Bearer secret").status == 200
        assert api.get("/healthz").status == 200


@pytest.mark.parametrize(
    ("version", "there", "missing"),
    [
        ("1.33", [], ["v1 resourceclaims", "v1 devicetaintrules", "v1beta2 devicetaintrules"]),
        ("1.34", ["v1 resourceclaims", "v1 deviceclasses"], ["v1beta2 devicetaintrules"]),
        ("1.36", ["v1 resourceclaims", "v1beta2 devicetaintrules"], ["v1 devicetaintrules"]),
        ("1.37", ["v1 resourceclaims", "v1 devicetaintrules"], ["v1beta2 devicetaintrules"]),
    ],
)
def test_the_versions_of_a_release(version: str, there: list[str], missing: list[str]) -> None:
    with api_server(gates=FeatureGates(release=find_release(version))) as api:
        minor = api.get("/version").tree["minor"]
        found = set()
        for name in ("v1", "v1beta2"):
            answer = api.get(f"/apis/resource.k8s.io/{name}")
            listed = answer.tree["resources"] if answer.status == 200 else []
            found |= {f"{name} {resource['name']}" for resource in listed}
        groups = {group["name"] for group in api.get("/apis").tree["groups"]}
        made = api.post(PODS, pod_tree("p"))

    assert minor == version.removeprefix("1.")
    assert set(there) <= found
    assert not found & set(missing)
    assert ("resource.k8s.io" in groups) is bool(there)
    assert made.status == 201


def test_a_rule_of_1_37_is_stored_and_read_back() -> None:
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    taint = {"key": "k", "effect": "NoSchedule"}
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint},
    }
    with api_server(gates=FeatureGates(release=find_release("1.37"))) as api:
        made = api.post(rules, rule)
        assert made.status == 201, made.tree
        assert api.get(f"{rules}/r").tree["apiVersion"] == "resource.k8s.io/v1"
        assert api.get(rules).tree["items"][0]["spec"]["taint"]["key"] == "k"
        assert api.post(rules, {**rule, "apiVersion": "resource.k8s.io/v1beta2"}).status == 400


class Served:
    """A connection to a server that serves these groups."""

    def __init__(self, **groups: list[str]) -> None:
        self._groups = groups

    async def get(self, path: str) -> dict[str, Any]:
        names = self._groups.get(path.rpartition("/")[2], [])
        return {"resources": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param({"v1": ["devicetaintrules"]}, "resource.k8s.io/v1", id="1.37"),
        pytest.param({"v1beta2": ["devicetaintrules"]}, "resource.k8s.io/v1beta2", id="1.36"),
        pytest.param({"v1": ["resourceclaims"]}, None, id="1.35"),
    ],
)
def test_rules_are_read_in_the_version_that_is_served(
    groups: dict[str, list[str]], expected: str | None
) -> None:
    wanted = [RESOURCES["DeviceTaintRule"]]

    found = asyncio.run(find_served(Served(**groups), wanted))  # type: ignore[arg-type]

    assert [resource.kind.api_version for resource in found] == ([expected] if expected else [])
