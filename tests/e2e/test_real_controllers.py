"""kube-controller-manager and kube-scheduler against `bayplan up`, with its own controllers and scheduler off.

The controllers have to do their work, and their informers never have to list again while objects come
and go. BAYPLAN_CHURN_MINUTES sets for how long (`make churn`: an hour); without it there are a few rounds.
"""

import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.rig.live.client import LiveClient
from tests.rig.live.control_plane import assets_folder, find_asset
from tests.rig.live.embedded import EmbeddedServer
from tests.rig.live.processes import Process

MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
CONTROLLERS = (
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "statefulset-controller",
)
ROUNDS = 5
MINUTES = float(os.environ.get("BAYPLAN_CHURN_MINUTES") or 0)
WAIT_S = 120.0
CORE, APPS, BATCH = "/api/v1", "/apis/apps/v1", "/apis/batch/v1"
BELOW = "/namespaces/default"
NODES = 3
ROOM = {"cpu": "8", "memory": "32Gi", "pods": "110"}


class RealControllers(NamedTuple):
    """A server with foreign controllers, and an administrator."""

    client: LiveClient
    manager: Process
    scheduler: Process

    def wait(self, path: str, is_so: Callable[[Any], bool], what: str) -> Any:
        """The object at `path`, once it is as expected."""
        found: list[Any] = []

        def look() -> bool:
            found[:] = [self.client.find(path)]
            return is_so(found[0])

        self.manager.wait_until(look, what, WAIT_S)
        return found[0]

    def times(self, action: str) -> Counter[str]:
        """Number of times that reflectors of each type log this, in both processes."""
        logs = (self.manager.log.read_text(), self.scheduler.log.read_text())
        pattern = re.compile(f'"{action}" type="([^"]+)"')
        return Counter(
            f"{process}: {name}"
            for process, log in zip((MANAGER, SCHEDULER), logs, strict=True)
            for name in pattern.findall(log)
        )


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControllers]:
    missing = [name for name in (MANAGER, SCHEDULER) if find_asset(name) is None]
    if missing:
        folder = assets_folder()
        pytest.skip(f"NOT RUN against a real kube-apiserver: no {', '.join(missing)} in {folder}")
    folder = tmp_path_factory.mktemp("up")
    server = EmbeddedServer(folder, arguments=["--controllers=none", "--no-page"])
    client = LiveClient(server.kubeconfig)
    for number in range(NODES):
        status = {"capacity": ROOM, "allocatable": ROOM}
        client.create(f"{CORE}/nodes", {"metadata": {"name": f"n{number}"}, "status": status})
    shared = [
        f"--kubeconfig={server.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--v=3",
    ]
    manager = Process(
        [str(assets_folder() / MANAGER), *shared, f"--controllers={','.join(CONTROLLERS)}"],
        folder / "manager.log",
    )
    scheduler = Process([str(assets_folder() / SCHEDULER), *shared], folder / "scheduler.log")
    yield RealControllers(client, manager, scheduler)
    for process in (scheduler, manager, server):
        process.stop()


def template(**annotations: str) -> dict[str, Any]:
    notes = {f"bayplan.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "a", "image": "app:1"}]}
    return {"metadata": {"labels": {"app": "a"}, "annotations": notes}, "spec": spec}


def workload(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    made = template()
    made["metadata"]["labels"] = labels
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": made, **spec},
    }


def status_of(tree: Any) -> dict[str, Any]:
    found: dict[str, Any] = (tree or {}).get("status") or {}
    return found


def test_a_deployment_rolls_out_and_is_collected(real: RealControllers) -> None:
    path = f"{APPS}{BELOW}/deployments"
    real.client.create(path, workload("web", replicas=3))
    real.wait(f"{path}/web", lambda d: status_of(d).get("availableReplicas") == 3, "3 available")

    image = {"containers": [{"name": "a", "image": "app:2"}]}
    real.client.patch(f"{path}/web", {"spec": {"template": {"spec": image}}})
    real.wait(
        f"{path}/web",
        lambda d: (
            status_of(d).get("updatedReplicas") == status_of(d).get("availableReplicas") == 3
            and status_of(d).get("replicas") == 3
            and status_of(d).get("observedGeneration") == d["metadata"]["generation"]
        ),
        "rolled out",
    )
    real.client.delete(f"{path}/web", propagationPolicy="Foreground")

    real.wait(f"{path}/web", lambda d: d is None, "deleted after its dependents")
    pods = real.client.get(f"{CORE}{BELOW}/pods?labelSelector=app%3Dweb")
    assert pods["items"] == []


@pytest.mark.parametrize(
    ("name", "notes", "kind"),
    [
        pytest.param("quick", {"duration": "1s"}, "Complete", id="completes"),
        pytest.param("failing", {"duration": "1s", "exit_code": "2"}, "Failed", id="fails"),
    ],
)
def test_a_job(real: RealControllers, name: str, notes: dict[str, str], kind: str) -> None:
    made = template(**notes)
    made["spec"]["restartPolicy"] = "Never"
    job = {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": made}}
    real.client.create(f"{BATCH}{BELOW}/jobs", job)

    def has_ended(tree: Any) -> bool:
        return any(c["type"] == kind for c in status_of(tree).get("conditions") or ())

    real.wait(f"{BATCH}{BELOW}/jobs/{name}", has_ended, kind)


def test_daemons_stateful_sets_and_budgets(real: RealControllers) -> None:
    client = real.client
    client.create(f"{APPS}{BELOW}/daemonsets", workload("agent"))
    client.create(f"{APPS}{BELOW}/statefulsets", workload("db", serviceName="db", replicas=2))
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}
    budgets = f"/apis/policy/v1{BELOW}/poddisruptionbudgets"
    client.create(budgets, {"metadata": {"name": "db"}, "spec": budget})

    sets = f"{APPS}{BELOW}"
    real.wait(
        f"{sets}/daemonsets/agent", lambda d: status_of(d).get("numberReady") == NODES, "ready"
    )
    real.wait(f"{sets}/statefulsets/db", lambda s: status_of(s).get("readyReplicas") == 2, "ready")
    real.wait(f"{budgets}/db", lambda b: status_of(b).get("disruptionsAllowed") == 1, "one allowed")


def test_a_claim_is_bound(real: RealControllers) -> None:
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    disk = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}, **shared}
    wanted = {"resources": {"requests": {"storage": "1Gi"}}, **shared}
    claims = f"{CORE}{BELOW}/persistentvolumeclaims"
    real.client.create(f"{CORE}/persistentvolumes", {"metadata": {"name": "disk"}, "spec": disk})
    real.client.create(claims, {"metadata": {"name": "data"}, "spec": wanted})

    bound = real.wait(f"{claims}/data", lambda c: status_of(c).get("phase") == "Bound", "bound")

    assert bound["spec"]["volumeName"] == "disk"


def test_a_namespace_is_emptied(real: RealControllers) -> None:
    real.client.create(f"{CORE}/namespaces", {"metadata": {"name": "short"}})
    real.client.create(f"{CORE}/namespaces/short/configmaps", {"metadata": {"name": "a"}})

    real.client.delete(f"{CORE}/namespaces/short")

    real.wait(f"{CORE}/namespaces/short", lambda n: n is None, "gone")


def test_informers_never_list_again_while_objects_come_and_go(real: RealControllers) -> None:
    path = f"{APPS}{BELOW}/deployments"
    real.client.create(path, workload("churn", replicas=0))
    end = time.monotonic() + 60 * MINUTES
    for turn in itertools.count():
        if turn >= ROUNDS and time.monotonic() >= end:
            break
        for replicas in (20, 0):
            image = {"containers": [{"name": "a", "image": f"app:{turn}"}]}
            spec = {"replicas": replicas, "template": {"spec": image}}
            real.client.patch(f"{path}/churn", {"spec": spec})
            real.wait(
                f"{path}/churn",
                lambda d, wanted=replicas: (  # type: ignore[misc]
                    status_of(d).get("readyReplicas", 0)
                    == status_of(d).get("replicas", 0)
                    == wanted
                    and status_of(d).get("observedGeneration") == d["metadata"]["generation"]
                ),
                f"{replicas} pods",
            )

    listed = real.times("Listing and watching")
    assert listed, "the log says when objects are listed"
    assert listed == real.times("Starting reflector")
