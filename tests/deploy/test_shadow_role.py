"""deploy/shadow: the role has the verbs that `bayplan shadow` uses, and no others; the deployment runs it."""

import asyncio
from pathlib import Path
from typing import Any

import yaml

from bayplan.kube.reviews import READING, missing_permissions
from bayplan.kube.watched_kinds import RESOURCES

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "shadow"


def trees() -> dict[str, Any]:
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    every = (tree for name in names for tree in yaml.safe_load_all((FOLDER / name).read_text()))
    return {tree["kind"]: tree for tree in every}


def test_the_role_has_exactly_the_verbs_that_are_needed() -> None:
    granted = {
        (group, resource, verb)
        for rule in trees()["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    needed = {(one.kind.group, one.plural, verb) for one in RESOURCES.values() for verb in READING}
    assert granted == needed


def test_names_fit_together() -> None:
    found = trees()
    account = found["ServiceAccount"]["metadata"]
    (subject,) = found["ClusterRoleBinding"]["subjects"]
    spec = found["Deployment"]["spec"]["template"]["spec"]

    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert spec["serviceAccountName"] == account["name"]
    assert spec["containers"][0]["args"][0] == "shadow"


class Reviewer:
    """An API server that refuses some reviews."""

    async def send(self, method: str, path: str, review: dict[str, Any]) -> dict[str, Any]:
        asked = review["spec"]["resourceAttributes"]
        refused = {("", "pods", "watch"), ("storage.k8s.io", "csinodes", "list")}
        allowed = (asked["group"], asked["resource"], asked["verb"]) not in refused
        return {"status": {"allowed": allowed}}


def test_missing_permissions_are_named_together() -> None:
    reviewer: Any = Reviewer()

    missing = asyncio.run(missing_permissions(reviewer, RESOURCES.values()))

    assert missing == ["list csinodes.storage.k8s.io", "watch pods"]
