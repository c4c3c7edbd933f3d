"""Rig: a server with RBAC, an administrator, and accounts that may do a few things."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.rig.api_server import ServerInThread, ServerResponse, api_server

SECRET = "the administrator's"
ADMIN = {"Authorization": f"Bearer {SECRET}"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CORE = "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
JSON = "application/json"


class GuardedApi:
    """Requests of the administrator, and of accounts by their tokens."""

    def __init__(self, api: ServerInThread) -> None:
        self.api = api
        self.accounts: dict[str, Account] = {}

    def admin(self, method: str, path: str, body: Any = None, kind: str = JSON) -> ServerResponse:
        return self.api.request(method, path, body, kind, **ADMIN)

    def make(self, path: str, tree: Any) -> Any:
        answer = self.admin("POST", path, tree)
        assert answer.status == 201, answer.tree
        return answer.tree

    def account(
        self, name: str, *rules: Mapping[str, Sequence[str]], everywhere: bool = False
    ) -> "Account":
        """A service account with these rules, in its namespace or in the whole cluster."""
        self.make(f"{CORE}/serviceaccounts", {"metadata": {"name": name}})
        kind = "ClusterRole" if everywhere else "Role"
        base = RBAC if everywhere else f"{RBAC}/namespaces/default"
        self.make(f"{base}/{kind.lower()}s", {"metadata": {"name": name}, "rules": list(rules)})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        }
        self.make(f"{base}/{kind.lower()}bindings", binding)
        made = self.make(f"{CORE}/serviceaccounts/{name}/token", {"spec": {}})
        self.accounts[name] = Account(self.api, made["status"]["token"])
        return self.accounts[name]


class Account:
    """A service account that sends requests."""

    def __init__(self, api: ServerInThread, token: str) -> None:
        self._api = api
        self.token = token

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = JSON, **headers: str
    ) -> ServerResponse:
        given = {"Authorization": f"Bearer {self.token}", **headers}
        return self._api.request(method, path, body, kind, **given)


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> dict[str, list[str]]:
    """A rule of a role; several words are separated by spaces."""
    made = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return {**made, "resourceNames": names.split()} if names else made


@contextmanager
def guarded_api() -> Iterator[GuardedApi]:
    with api_server(token=SECRET, rbac=True) as api:
        yield GuardedApi(api)
