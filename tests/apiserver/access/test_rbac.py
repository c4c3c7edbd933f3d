"""RBAC: roles, bindings, impersonation, tokens of service accounts, reviews, and the refusals."""

from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.apiserver.access.authorizer import AccessQuestion
from bayplan.apiserver.access.rbac import allows
from bayplan.apiserver.server import bootstrap_objects
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import pod_tree

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authorization.k8s.io/v1"
SECRET = "the administrator's"
ADMIN = {"Authorization": f"Bearer {SECRET}"}
READ = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}


class RbacApi:
    """A server with RBAC, and requests of several users."""

    def __init__(self, api: ServerInThread) -> None:
        self.api = api

    def ask(
        self, method: str, path: str, body: Any = None, user: str = "", **headers: str
    ) -> tuple[int, Any]:
        """Status and body, as the administrator, or as a user that the administrator impersonates."""
        given = {**ADMIN, **({"Impersonate_User": user} if user else {}), **headers}
        answer = self.api.request(method, path, body, **given)
        return answer.status, answer.tree

    def make(self, path: str, tree: Any) -> Any:
        status, made = self.ask("POST", path, tree)
        assert status == 201, made
        return made

    def bind(self, path: str, kind: str, role: str, *subjects: dict[str, str]) -> None:
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        name = f"{role}-{subjects[0]['name']}".replace(":", "-")
        tree = {"metadata": {"name": name}, "roleRef": ref, "subjects": list(subjects)}
        self.make(path, tree)

    def token(self, account: str, **spec: Any) -> str:
        made = self.make(f"{ACCOUNTS}/{account}/token", {"spec": spec})
        text: str = made["status"]["token"]
        return text


@pytest.fixture
def rbac() -> Iterator[RbacApi]:
    with api_server(token=SECRET, rbac=True) as api:
        yield RbacApi(api)


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def test_a_user_without_roles_is_refused_in_kube_apiservers_words(rbac: RbacApi) -> None:
    cases = {
        ("GET", PODS): 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" '
        'in the namespace "default"',
        (
            "GET",
            f"{PODS}/a",
        ): 'pods "a" is forbidden: User "jane" cannot get resource "pods" in API '
        'group "" in the namespace "default"',
        ("GET", "/api/v1/nodes"): 'nodes is forbidden: User "jane" cannot list resource "nodes" in '
        'API group "" at the cluster scope',
        ("GET", "/apis/apps/v1/deployments?watch=true"): "deployments.apps is forbidden: User "
        '"jane" cannot watch resource "deployments" in API group "apps" at the cluster scope',
        ("DELETE", PODS): 'pods is forbidden: User "jane" cannot deletecollection resource "pods" '
        'in API group "" in the namespace "default"',
        ("GET", f"{PODS}/a/status"): 'pods "a" is forbidden: User "jane" cannot get resource '
        '"pods/status" in API group "" in the namespace "default"',
    }
    for (method, path), message in cases.items():
        status, tree = rbac.ask(method, path, user="jane")
        assert (status, tree["reason"], tree["message"]) == (403, "Forbidden", message)


def test_a_role_counts_in_its_namespace_only(rbac: RbacApi) -> None:
    rbac.make("/api/v1/namespaces", {"metadata": {"name": "other"}})
    rbac.make(ROLES, {"metadata": {"name": "reader"}, "rules": [READ]})
    rbac.bind(BINDINGS, "Role", "reader", user("jane"))

    assert rbac.ask("GET", PODS, user="jane")[0] == 200
    assert rbac.ask("GET", "/api/v1/namespaces/other/pods", user="jane")[0] == 403
    assert rbac.ask("GET", "/api/v1/pods", user="jane")[0] == 403
    assert rbac.ask("POST", PODS, pod_tree("a"), user="jane")[0] == 403
    assert rbac.ask("GET", PODS, user="joe")[0] == 403


def test_a_cluster_role_in_a_role_binding_counts_in_the_namespace(rbac: RbacApi) -> None:
    rbac.bind(BINDINGS, "ClusterRole", "edit", user("jane"))

    assert rbac.ask("POST", PODS, pod_tree("a"), user="jane")[0] == 201, "edit is aggregated"
    assert rbac.ask("GET", PODS, user="jane")[0] == 200, "and has what view has"
    assert rbac.ask("GET", "/api/v1/pods", user="jane")[0] == 403
    assert rbac.ask("GET", ROLES, user="jane")[0] == 403


def test_a_new_role_is_aggregated(rbac: RbacApi) -> None:
    rbac.bind(CLUSTER_BINDINGS, "ClusterRole", "view", user("jane"))
    before = rbac.ask("GET", "/api/v1/nodes", user="jane")[0]
    rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"]}
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rbac.make(CLUSTER_ROLES, {"metadata": {"name": "nodes", "labels": labels}, "rules": [rule]})

    assert (before, rbac.ask("GET", "/api/v1/nodes", user="jane")[0]) == (403, 200)


def test_a_deleted_binding_no_longer_counts(rbac: RbacApi) -> None:
    rbac.bind(CLUSTER_BINDINGS, "ClusterRole", "view", user("jane"))
    before = rbac.ask("GET", PODS, user="jane")[0]
    rbac.ask("DELETE", f"{CLUSTER_BINDINGS}/view-jane")

    assert (before, rbac.ask("GET", PODS, user="jane")[0]) == (200, 403)


def test_a_role_that_does_not_exist_is_named(rbac: RbacApi) -> None:
    rbac.bind(CLUSTER_BINDINGS, "ClusterRole", "none", user("jane"))

    message = rbac.ask("GET", PODS, user="jane")[1]["message"]

    assert message.endswith(': RBAC: clusterrole.rbac.authorization.k8s.io "none" not found')


def test_groups_and_service_accounts_are_subjects(rbac: RbacApi) -> None:
    rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    rbac.bind(CLUSTER_BINDINGS, "ClusterRole", "view", {"kind": "Group", "name": "readers"})
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    rbac.bind(BINDINGS, "ClusterRole", "view", account)
    robot = {"Authorization": f"Bearer {rbac.token('robot')}"}

    assert rbac.ask("GET", PODS, user="jane", Impersonate_Group="readers")[0] == 200
    assert rbac.api.get(PODS, **robot).status == 200
    assert rbac.api.get("/api/v1/pods", **robot).status == 403


def test_a_token_ends(rbac: RbacApi) -> None:
    rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    robot = {"Authorization": f"Bearer {rbac.token('robot', expirationSeconds=600)}"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = rbac.api.request("POST", path, {}, **robot)

    rbac.api.advance(600)

    assert answer.tree["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
    assert rbac.api.get(PODS, **robot).status == 401


def test_a_token_of_a_deleted_account_or_another_server_is_refused(rbac: RbacApi) -> None:
    rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    text = rbac.token("robot")
    forged = f"{text.rpartition('.')[0]}.{'A' * 43}"

    assert rbac.api.get(PODS, Authorization=f"Bearer {forged}").status == 401
    rbac.ask("DELETE", f"{ACCOUNTS}/robot")
    rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert rbac.api.get(PODS, Authorization=f"Bearer {text}").status == 401


def test_a_token_for_another_audience_is_no_login(rbac: RbacApi) -> None:
    rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    text = rbac.token("robot", audiences=["vault"])
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    review = rbac.make(path, {"spec": {"token": text, "audiences": ["vault"]}})

    assert rbac.api.get(PODS, Authorization=f"Bearer {text}").status == 401
    assert (review["status"]["authenticated"], review["status"]["audiences"]) == (True, ["vault"])


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [
        pytest.param(599, "less than 10 minutes", id="too short"),
        pytest.param(1 << 33, "larger than 2^32 seconds", id="too long"),
    ],
)
def test_the_life_of_a_token_has_limits(rbac: RbacApi, seconds: int, limit: str) -> None:
    rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    body = {"spec": {"expirationSeconds": seconds}}

    status, tree = rbac.ask("POST", f"{ACCOUNTS}/robot/token", body)

    assert status == 422
    assert tree["message"] == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
        f"Invalid value: {seconds}: may not specify a duration {limit}"
    )
    assert rbac.ask("POST", f"{ACCOUNTS}/none/token", {"spec": {}})[0] == 404


def test_without_a_token_one_is_anonymous(rbac: RbacApi) -> None:
    answer = rbac.api.get(PODS)

    assert answer.status == 403
    assert 'User "system:anonymous" cannot list resource "pods"' in answer.tree["message"]
    assert rbac.api.get("/version").status == 200
    assert rbac.api.get("/apis").tree["message"] == (
        'forbidden: User "system:anonymous" cannot get path "/apis"'
    )
    assert rbac.api.get(PODS, Authorization="Bearer wrong").status == 401


def test_impersonation_must_be_allowed(rbac: RbacApi) -> None:
    rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    robot = {"Authorization": f"Bearer {rbac.token('robot')}"}

    answer = rbac.api.get(PODS, **robot, Impersonate_User="jane")
    alone = rbac.api.get(PODS, **ADMIN, Impersonate_Group="readers")

    assert answer.status == 403
    assert answer.tree["message"] == (
        'users "jane" is forbidden: User "system:serviceaccount:default:robot" cannot impersonate '
        'resource "users" in API group "" at the cluster scope'
    )
    assert alone.status == 400


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        pytest.param({"verb": "get", "resource": "pods", "namespace": "default"}, True, id="yes"),
        pytest.param(
            {"verb": "get", "resource": "secrets", "namespace": "default"}, False, id="no"
        ),
    ],
)
def test_reviews_answer_from_the_rules(rbac: RbacApi, asked: dict[str, str], allowed: bool) -> None:
    rbac.bind(CLUSTER_BINDINGS, "ClusterRole", "view", user("jane"))
    body = {"spec": {"resourceAttributes": asked}}

    own = rbac.ask("POST", f"{REVIEWS}/selfsubjectaccessreviews", body, user="jane")[1]
    body["spec"]["user"] = "jane"  # type: ignore[assignment]
    other = rbac.ask("POST", f"{REVIEWS}/subjectaccessreviews", body)[1]

    assert own["status"]["allowed"] is other["status"]["allowed"] is allowed


def test_the_rules_of_a_user_are_listed(rbac: RbacApi) -> None:
    rbac.make(ROLES, {"metadata": {"name": "reader"}, "rules": [READ]})
    rbac.bind(BINDINGS, "Role", "reader", user("jane"))
    body = {"spec": {"namespace": "default"}}

    tree = rbac.ask("POST", f"{REVIEWS}/selfsubjectrulesreviews", body, user="jane")[1]

    assert READ in tree["status"]["resourceRules"]
    assert tree["status"]["incomplete"] is False


def test_a_put_or_an_apply_that_creates_needs_both(rbac: RbacApi) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    group = "coordination.k8s.io"
    rule = {"verbs": ["update", "patch"], "apiGroups": [group], "resources": ["leases"]}
    rbac.make(ROLES, {"metadata": {"name": "holder"}, "rules": [rule]})
    rbac.bind(BINDINGS, "Role", "holder", user("jane"))
    lease = {"metadata": {"name": "a", "namespace": "default"}, "spec": {}}

    status, tree = rbac.ask("PUT", f"{leases}/a", lease, user="jane")
    rbac.make(leases, lease)

    assert (status, 'cannot create resource "leases"' in tree["message"]) == (403, True)
    assert rbac.ask("PUT", f"{leases}/a", lease, user="jane")[0] == 200


@pytest.mark.parametrize(
    ("rule", "question", "expected"),
    [
        pytest.param(READ, AccessQuestion("get", "x", "", "pods"), True, id="equal"),
        pytest.param(READ, AccessQuestion("get", "x", "", "pods", "log"), False, id="subresource"),
        pytest.param(READ, AccessQuestion("get", "x", "apps", "pods"), False, id="another group"),
        pytest.param(
            {**READ, "resources": ["*/log"]},
            AccessQuestion("get", "x", "", "pods", "log"),
            True,
            id="a subresource of all resources",
        ),
        pytest.param(
            {**READ, "resources": ["*"]},
            AccessQuestion("get", "x", "", "pods", "log"),
            True,
            id="all resources and subresources",
        ),
        pytest.param(
            {**READ, "resourceNames": ["a"]},
            AccessQuestion("get", "x", "", "pods", "", "b"),
            False,
            id="another name",
        ),
        pytest.param(
            {**READ, "resourceNames": ["a"]},
            AccessQuestion("list", "x", "", "pods"),
            False,
            id="no name where one is needed",
        ),
        pytest.param(
            {"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]},
            AccessQuestion("get", path="/metrics/slis"),
            True,
            id="a path below",
        ),
        pytest.param(
            {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
            AccessQuestion("get", path="/metrics/slis"),
            False,
            id="another path",
        ),
        pytest.param(
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            AccessQuestion("get", path="/metrics"),
            False,
            id="resources are no paths",
        ),
    ],
)
def test_rules(rule: dict[str, Any], question: AccessQuestion, expected: bool) -> None:
    assert allows(rule, question) is expected


def test_the_roles_of_every_cluster() -> None:
    names = {(tree["kind"], tree["metadata"]["name"]) for tree in bootstrap_objects()}

    expected = ("cluster-admin", "admin", "edit", "view", "system:kube-scheduler")
    assert {("ClusterRole", name) for name in expected} <= names
    assert ("ClusterRoleBinding", "cluster-admin") in names
    assert ("ClusterRoleBinding", "admin") not in names


def test_without_rbac_every_token_may_do_everything() -> None:
    with api_server(token=SECRET) as api:
        rbac = RbacApi(api)
        rbac.make(ACCOUNTS, {"metadata": {"name": "robot"}})
        robot = {"Authorization": f"Bearer {rbac.token('robot')}"}

        assert api.get(PODS, **robot).status == 200
        assert api.get(PODS).status == 401


LACKS = 'user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:'
WRITE_ROLES = {
    "verbs": ["create", "update", "patch"],
    "apiGroups": ["rbac.authorization.k8s.io"],
    "resources": ["roles", "rolebindings", "clusterroles"],
}


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def let_jane(rbac: RbacApi, *rules: dict[str, Any]) -> None:
    """Let jane write roles, with the given rules, everywhere."""
    rbac.make(CLUSTER_ROLES, role("author", WRITE_ROLES, *rules))
    rbac.bind(CLUSTER_BINDINGS, "ClusterRole", "author", user("jane"))


def test_a_role_cannot_give_more_than_its_author_has(rbac: RbacApi) -> None:
    let_jane(rbac, READ)
    more = role(
        "more",
        {"verbs": ["get", "delete", "watch"], "apiGroups": [""], "resources": ["pods", "pods/log"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]},
    )

    status, answer = rbac.ask("POST", ROLES, more, "jane")

    assert (status, answer["message"]) == (
        403,
        f'roles.rbac.authorization.k8s.io "more" is forbidden: {LACKS}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}\n'
        '{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "delete" "watch"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["one"], Verbs:["get"]}',
    )
    assert rbac.ask("POST", ROLES, role("same", READ), "jane")[0] == 201


@pytest.mark.parametrize(
    ("method", "content_type", "body"),
    [
        pytest.param("PUT", "application/json", role("some", {**READ, "verbs": ["*"]}), id="put"),
        pytest.param(
            "PATCH",
            "application/merge-patch+json",
            {"rules": [{**READ, "verbs": ["*"]}]},
            id="patch",
        ),
        pytest.param(
            "PATCH",
            "application/apply-patch+yaml",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                **role("some", {**READ, "verbs": ["*"]}),
            },
            id="apply",
        ),
    ],
)
def test_a_change_of_a_role_is_checked_too(
    rbac: RbacApi, method: str, content_type: str, body: Any
) -> None:
    let_jane(rbac, READ)
    path = f"{ROLES}/some" + "?fieldManager=jane&force=true" * ("apply" in content_type)
    before, _ = rbac.ask(method, path, body, "jane", content_type=content_type)
    rbac.make(ROLES, role("some", READ))

    after, answer = rbac.ask(method, path, body, "jane", content_type=content_type)

    assert before == (403 if "apply" in content_type else 404)
    assert after == 403
    assert 'Resources:["pods"], Verbs:["*"]}' in answer["message"]


def test_the_verbs_escalate_and_bind_let_more_be_given(rbac: RbacApi) -> None:
    passes_on = {
        "verbs": ["escalate", "bind"],
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles"],
    }
    let_jane(rbac, passes_on)
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = {"metadata": {"name": "b"}, "roleRef": ref, "subjects": [user("tom")]}

    assert rbac.ask("POST", ROLES, role("reader", READ), "jane")[0] == 201
    assert rbac.ask("POST", BINDINGS, binding, "jane")[0] == 201


def test_a_binding_to_a_role_with_more_rights_is_refused(rbac: RbacApi) -> None:
    let_jane(rbac)
    rbac.make(ROLES, role("reader", READ))
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = {"metadata": {"name": "b"}, "roleRef": ref, "subjects": [user("jane")]}
    missing = {**binding, "roleRef": ref | {"name": "none"}}

    status, answer = rbac.ask("POST", BINDINGS, binding, "jane")

    listed = '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    assert (status, answer["message"]) == (
        403,
        f'rolebindings.rbac.authorization.k8s.io "b" is forbidden: {LACKS}\n{listed}',
    )
    status, answer = rbac.ask("POST", BINDINGS, missing, "jane")
    assert (status, answer["message"]) == (
        404,
        'roles.rbac.authorization.k8s.io "none" not found',
    )


def test_an_aggregated_role_needs_all_rights(rbac: RbacApi) -> None:
    let_jane(rbac, READ)
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    tree = {**role("all", READ), "aggregationRule": selectors}

    status, answer = rbac.ask("POST", CLUSTER_ROLES, tree, "jane")

    rbac.bind(CLUSTER_BINDINGS, "ClusterRole", "cluster-admin", user("root"))
    assert rbac.ask("POST", CLUSTER_ROLES, tree, "root")[0] == 201
    assert (status, answer["message"]) == (
        403,
        'clusterroles.rbac.authorization.k8s.io "all" is forbidden: must have cluster-admin privileges to use the'
        " aggregationRule",
    )


def test_the_role_of_a_binding_cannot_be_changed(rbac: RbacApi) -> None:
    rbac.make(ROLES, role("reader", READ))
    rbac.bind(BINDINGS, "Role", "reader", user("jane"))
    patch = {"roleRef": {"name": "other"}}

    status, answer = rbac.ask(
        "PATCH", f"{BINDINGS}/reader-jane", patch, content_type="application/merge-patch+json"
    )

    assert (status, answer["details"]["causes"][0]["field"]) == (422, "roleRef")
