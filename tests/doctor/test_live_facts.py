"""Live facts: unreadable kinds are noted, other failures are raised, files of schedulers are traced to their source."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.doctor.live_facts import _commands, read_facts
from bayplan.errors import ApiError
from tests.rig.one_peer import ask, json_server, status_tree
from tests.security.rig import SECRET, guarded_api, rule

CORE = {"resources": [{"name": "nodes"}, {"name": "pods"}]}
VERSION = {"gitVersion": "v1.36.4"}
PLACES = [
    "pods in kube-system",
    "configmaps in kube-system",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicies",
]


def test_kinds_and_places_that_may_not_be_read_are_noted(tmp_path: Path) -> None:
    with guarded_api() as api:
        account = api.account("doctor", rule("list", "nodes namespaces"), everywhere=True)
        facts = ask(tmp_path, api.api.server.url, read_facts, account.token)

    assert {obj.kind for obj in facts.objects} == {"Namespace"}
    assert {"pods", "replicasets.apps"} <= {*facts.unreadable_kinds}
    assert {"nodes", "namespaces"}.isdisjoint(facts.unreadable_kinds)
    assert facts.unreadable_places == PLACES


def test_an_administrator_may_read_all(tmp_path: Path) -> None:
    with guarded_api() as api:
        facts = ask(tmp_path, api.api.server.url, read_facts, SECRET)

    assert (facts.unreadable_kinds, facts.unreadable_places) == ([], [])


def test_what_is_not_served_is_not_noted(tmp_path: Path) -> None:
    def answer(path: str, given: Any) -> tuple[int, Any]:
        return (200, VERSION) if path == "/version" else status_tree(404, "not found")

    with json_server(answer) as url:
        facts = ask(tmp_path, url, read_facts)

    assert (facts.version, facts.objects, facts.webhooks) == ("v1.36.4", [], [])
    assert (facts.unreadable_kinds, facts.unreadable_places) == ([], [])


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("/api/v1/nodes", id="of a kind"),
        pytest.param("/api/v1/namespaces/kube-system/configmaps", id="of configurations"),
        pytest.param(
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies", id="of policies"
        ),
    ],
)
def test_a_list_that_fails_is_raised(tmp_path: Path, broken: str) -> None:
    def answer(path: str, given: Any) -> tuple[int, Any]:
        if path == broken:
            return status_tree(500, "etcd is away")
        return 200, CORE if path == "/api/v1" else {"metadata": {}, "items": []}

    with json_server(answer) as url, pytest.raises(ApiError, match="etcd is away") as caught:
        ask(tmp_path, url, read_facts)

    assert caught.value.code == 500


# Files of schedulers

FILE = "/etc/kubernetes/scheduler.yaml"
HOST = {"name": "host", "hostPath": {"path": "/var/lib/sched/"}}
MAP = {"name": "map", "configMap": {"name": "sched-config"}}
EMPTY: dict[str, Any] = {"name": "empty", "emptyDir": {}}


def mounted(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}


def scheduler_pod(*mounts: dict[str, Any], command: list[str] | None = None) -> dict[str, Any]:
    container = {
        "command": command or ["/usr/local/bin/kube-scheduler", f"--config={FILE}"],
        "volumeMounts": list(mounts),
    }
    spec = {"containers": [container], "volumes": [HOST, MAP, EMPTY]}
    return {"metadata": {"name": "s"}, "spec": spec}


@pytest.mark.parametrize(
    ("mounts", "source"),
    [
        pytest.param(
            [mounted("map", "/etc/kubernetes/")],
            "configmap kube-system/sched-config",
            id="a config map whose mount ends with a slash",
        ),
        pytest.param(
            [mounted("host", "/etc/kubernetes")],
            "file /var/lib/sched/scheduler.yaml of the node",
            id="a folder of the node",
        ),
        pytest.param(
            [mounted("host", "/etc/kubernetes/")],
            "file /var/lib/sched/scheduler.yaml of the node",
            id="a folder of the node whose mount ends with a slash",
        ),
        pytest.param([mounted("host", FILE)], "file /var/lib/sched of the node", id="a file"),
        pytest.param(
            [mounted("host", "/etc"), mounted("map", "/etc/kubernetes")],
            "configmap kube-system/sched-config",
            id="the innermost of several mounts",
        ),
        pytest.param(
            [mounted("host", "/etc/kube"), mounted("map", "/etc/other")],
            f"file {FILE} of its container",
            id="mounts elsewhere, one with a similar name",
        ),
        pytest.param(
            [mounted("empty", "/etc/kubernetes")],
            f"file {FILE} of its container",
            id="a volume of another kind",
        ),
        pytest.param(
            [mounted("absent", "/etc/kubernetes")],
            f"file {FILE} of its container",
            id="a volume that is not declared",
        ),
        pytest.param([], f"file {FILE} of its container", id="no mount"),
    ],
)
def test_the_source_of_a_configuration_file_is_found(
    mounts: list[dict[str, Any]], source: str
) -> None:
    (command,) = _commands([scheduler_pod(*mounts)])

    assert command.config_source == source


def test_a_scheduler_without_a_configuration_file_has_no_source() -> None:
    (command,) = _commands([scheduler_pod(command=["kube-scheduler", "--feature-gates=A=true"])])

    assert (command.config_file, command.config_source) == ("", "")
    assert command.feature_gates == "A=true"


def test_containers_that_run_something_else_are_no_schedulers() -> None:
    other = scheduler_pod(command=["kube-controller-manager", f"--config={FILE}"])

    assert list(_commands([other])) == []
