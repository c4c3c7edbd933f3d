"""Targets: the authorized target is the served one, by kube-apiserver's reading of paths."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.apiserver.registry.resource_table import ResourceCatalog
from bayplan.apiserver.registry.status_errors import StatusError
from bayplan.apiserver.web.http_requests import WholeRequest
from bayplan.apiserver.web.targets import Target, parse_target
from tests.rig.api_server import PODS
from tests.rig.random_examples import examples
from tests.rig.trees import pod_tree

from .rig import CORE, GuardedApi, rule

RECORDED = Path(__file__).with_name("request_info.jsonl")
"""Lines of method, target and attributes: verb and path, or verb, namespace, group, version, resource, subresource and
name; null where kube-apiserver reads none."""
CATALOG = ResourceCatalog()


def read(method: str, target: str) -> Target:
    request = WholeRequest(method, target, True, [("host", "localhost")])
    return parse_target(method, request.path, request.query, CATALOG)


def attributes(method: str, target: str) -> list[str] | None:
    try:
        found = read(method, target)
    except StatusError:
        return None
    asked = found.question
    if found.is_path:
        return [asked.verb, asked.path]
    names = [asked.group, asked.resource, asked.subresource, asked.name]
    return [asked.verb, asked.namespace, *names]


def test_attributes_are_those_that_kube_apiserver_reads() -> None:
    cases = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    wrong = []
    for method, target, recorded in cases:
        wanted = recorded if not recorded or len(recorded) == 2 else recorded[:3] + recorded[4:]
        if attributes(method, target) != wanted:
            wrong.append((method, target, wanted, attributes(method, target)))

    assert len(cases) > 500
    assert wrong == []


STEPS = st.sampled_from(
    [
        *("", "a", "default", ".", "..", "%2F", "%2e", "a%2Fb", "api", "apis", "v1", "apps"),
        *("namespaces", "pods", "nodes", "configmaps", "deployments", "serviceaccounts"),
        *("status", "finalize", "eviction", "token", "scale", "watch", "proxy", "leases"),
    ]
)
PREFIXES = st.sampled_from(["/api/v1", "/apis/apps/v1", "/apis/coordination.k8s.io/v1", "/", ""])
QUERIES = st.sampled_from(["", "?watch=1", "?watch=0", "?fieldSelector=metadata.name%3Da"])
METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])


@settings(max_examples=examples(600))
@given(METHODS, PREFIXES, st.lists(STEPS, max_size=7), QUERIES)
def test_nothing_else_is_served_than_was_authorized(
    method: str, prefix: str, steps: list[str], query: str
) -> None:
    try:
        target = read(method, "/".join([prefix, *steps]) + query)
    except StatusError:
        return
    resource, asked = target.found, target.question
    if resource is None:
        return
    assert (resource.group, resource.plural) == (asked.group, asked.resource)
    assert target.subresource == asked.subresource
    assert target.name or not target.subresource
    if resource.plural == "namespaces":
        assert (target.namespace, target.name) == ("", asked.namespace)
    else:
        assert target.namespace == asked.namespace
    if target.name:
        assert asked.name == target.name
        assert asked.verb in ("get", "create", "update", "patch", "delete", "")
    else:
        assert asked.verb not in ("get", "delete")
        assert asked.name == "" or (asked.verb in ("list", "watch") and "metadata.name" in query)


@pytest.mark.parametrize(
    ("verbs", "part", "method", "path", "body"),
    [
        pytest.param(
            "create", "pods/eviction", "POST", f"{PODS}//eviction", pod_tree("made"), id="create"
        ),
        pytest.param(
            "create",
            "serviceaccounts/token",
            "POST",
            f"{CORE}/serviceaccounts//token",
            {"metadata": {"name": "made"}},
            id="create an account",
        ),
        pytest.param("*", "pods/status", "GET", f"{PODS}//status", None, id="list"),
        pytest.param("*", "pods/status", "GET", f"{PODS}//status?watch=1", None, id="watch"),
        pytest.param("*", "pods/status", "DELETE", f"{PODS}//status", None, id="delete all"),
        pytest.param("*", "pods/status", "PUT", f"{PODS}//status", pod_tree("a"), id="update"),
        pytest.param("*", "pods/status", "GET", f"{PODS}/%2Fstatus", None, id="an escaped slash"),
    ],
)
def test_a_subresource_without_a_name_does_not_exist(
    guarded: GuardedApi, verbs: str, part: str, method: str, path: str, body: Any
) -> None:
    guarded.make(PODS, pod_tree("a"))
    guarded.make(f"{CORE}/serviceaccounts", {"metadata": {"name": "other"}})
    mallory = guarded.account("mallory", rule(verbs, part))

    assert mallory.ask(method, path, body).status in (403, 404)
    assert guarded.admin(method, path, body).status == 404
    assert guarded.admin("GET", PODS).names == ["a"]
    assert "made" not in guarded.admin("GET", f"{CORE}/serviceaccounts").names


PATHS = st.lists(
    st.sampled_from(["", "pods", "a", "default", "namespaces", "status", "eviction", "%2F"]),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_an_account_reads_and_writes_nothing_but_its_part(
    guarded: GuardedApi, data: st.DataObject
) -> None:
    if not guarded.accounts:
        guarded.make(PODS, pod_tree("a"))
        guarded.account("mallory", rule("*", "pods/status pods/eviction"))
    steps, method = data.draw(PATHS), data.draw(METHODS)
    path = "/".join(["/api/v1", "namespaces", *steps])
    answer = guarded.accounts["mallory"].ask(method, path)

    asked = read(method, path).question
    is_granted = asked.full_resource in ("pods/status", "pods/eviction")
    assert (
        answer.status in (401, 403, 404, 405) or (is_granted and asked.name) or not asked.resource
    )
    assert guarded.admin("GET", PODS).names == ["a"]


def test_a_name_selects_for_reading_only(guarded: GuardedApi) -> None:
    maps = f"{CORE}/configmaps"
    for name in ("mine", "other"):
        guarded.make(maps, {"metadata": {"name": name}})
    mallory = guarded.account("mallory", rule("list deletecollection", "configmaps", names="mine"))
    only = "?fieldSelector=metadata.name%3Dmine"

    assert mallory.ask("GET", maps).status == 403
    assert mallory.ask("GET", f"{maps}{only}").names == ["mine"]
    assert mallory.ask("GET", f"{maps}{only}%2Cmetadata.name%3Dother").names == []
    assert mallory.ask("DELETE", f"{maps}{only}").status == 403


def test_the_rest_of_a_list_stays_in_its_namespace(guarded: GuardedApi) -> None:
    for name in ("a", "b"):
        guarded.make("/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": name}})
    page = guarded.admin("GET", "/api/v1/namespaces/kube-system/configmaps?limit=1").tree
    mallory = guarded.account("mallory", rule("list", "configmaps"))

    answer = mallory.ask("GET", f"{CORE}/configmaps?continue={page['metadata']['continue']}")

    assert answer.status == 410


def test_a_missing_resource_is_forbidden_before_it_is_missing(
    guarded: GuardedApi,
) -> None:
    mallory = guarded.account("mallory", rule("get", "pods"))

    assert mallory.ask("GET", "/apis/example.com/v1/secrets").status == 403
    assert mallory.ask("GET", f"{CORE}/secrets?limit=x").status == 403
    assert guarded.admin("GET", "/apis/example.com/v1/secrets").status == 404


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_writes_name_their_namespace(guarded: GuardedApi, method: str) -> None:
    tree = pod_tree("a")
    tree["metadata"]["namespace"] = "default"

    assert guarded.admin(method, "/api/v1/pods", tree).status == 405
