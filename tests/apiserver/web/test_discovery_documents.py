"""Discovery: groups, versions and resources, in the old and the aggregated form."""

from tests.rig.api_server import ServerInThread, api_server

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
