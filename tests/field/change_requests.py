"""Change requests on published manifests: predicted by `what-if apply`, then really applied, one after the other.

`python -m tests.field.change_requests --material FOLDER --server kube-apiserver` starts a control plane with the nodes
of `cluster.yaml` (or `bayplan up`), applies Online Boutique and others, and makes seven change requests. Placements are
judged by `bayplan shadow`, which runs beside: each is one that the scheduler could have chosen.
"""

import argparse
import copy
import gzip
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bayplan.api.text.quantity import parse_quantity
from tests.e2e.test_change_requests import (
    HIGHER,
    IMPORTANT,
    MANAGER,
    QUOTA,
    SCHEDULER,
    STILL_S,
    ChangeRequest,
    LiveServer,
    Outcome,
    budget,
    stateful_set,
)
from tests.rig.live.client import LiveClient, Tree
from tests.rig.live.control_plane import LiveControlPlane, assets_folder
from tests.rig.live.embedded import EmbeddedServer
from tests.rig.live.kinds import path_of, with_head
from tests.rig.live.kubelets import LiveKubelets
from tests.rig.live.processes import Process
from tests.rig.live.volumes import Volumes

SHOP = "boutique"
BESIDE = ("metrics-server", "istio-addons", "descheduler")
CONTROLLERS = (
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "cronjob-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "resourcequota-controller",
    "statefulset-controller",
)
SETTLE_S = 60.0
_QUOTA = re.compile(r"requested: [^=]+=([^,]+), used: [^=]+=([^,]+), limited: [^=]+=(.+)")


def edited(tree: Tree, cpu: str = "", **changes: Any) -> Tree:
    """The Deployment with other fields of its spec (`replicas`, `strategy`), its pods' or its container's."""
    made: Tree = copy.deepcopy(tree)
    spec, pod = made["spec"], made["spec"]["template"]["spec"]
    for name in ("replicas", "strategy"):
        if name in changes:
            spec[name] = changes.pop(name)
    image = changes.pop("image", "")
    pod.update(changes)
    pod["terminationGracePeriodSeconds"] = 0
    for container in pod["containers"]:
        if image:
            container["image"] = image
        if cpu:
            container["resources"]["requests"]["cpu"] = cpu
            container["resources"]["limits"]["cpu"] = cpu
    return made


def steps(shop: dict[str, Tree]) -> list[tuple[str, list[Tree], list[Tree], list[Tree]]]:
    """Name, objects before, change, and objects after each request, which undo it."""
    one = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    email, mail = shop["emailservice"], shop["shippingservice"]
    full = edited(shop["recommendationservice"], "1900m", replicas=9, strategy=one)
    filler = edited(shop["adservice"], "2700m", replicas=7, priorityClassName="higher")
    first = edited(shop["adservice"], replicas=1)
    quota = {**QUOTA, "spec": {"hard": {"requests.cpu": "2500m"}}}
    return [
        ("bigger", [], [edited(email, "3500m", replicas=4)], [edited(email, replicas=1)]),
        ("more", [], [edited(mail, "700m", replicas=40)], [edited(mail, replicas=1)]),
        (
            "selector",
            [],
            [edited(email, nodeSelector={"pool": "gpu"})],
            [edited(email, nodeSelector=None)],
        ),
        (
            "surge",
            [full],
            [edited(full, image="example.com/new:2")],
            [edited(shop["recommendationservice"], replicas=1)],
        ),
        (
            "budget",
            [filler, budget("checkoutservice")],
            [edited(shop["cartservice"], "2500m", priorityClassName="important")],
            [edited(shop["cartservice"], priorityClassName=None), first],
        ),
        ("quota", [quota], [edited(mail, "400m", replicas=4)], [edited(mail, replicas=1)]),
        (
            "ordered",
            [named(stateful_set("", 5, "700m"))],
            [named(stateful_set("", 5, "3800m"))],
            [named(stateful_set("", 0, "700m"))],
        ),
    ]


def named(tree: Tree) -> Tree:
    """Without the selector for a pool of nodes."""
    tree["spec"]["template"]["spec"].pop("nodeSelector")
    return tree


@contextmanager
def server_of(kind: str, folder: Path) -> Iterator[LiveServer]:
    """An API server with controllers and a scheduler."""
    if kind == "up":
        embedded = EmbeddedServer(folder, arguments=["--scheduler", "--no-page"])
        try:
            yield LiveServer(LiveClient(embedded.kubeconfig), embedded.kubeconfig)
        finally:
            embedded.stop()
        return
    # as kubeadm sets it: agents of nodes are privileged
    plane = LiveControlPlane(folder, "--allow-privileged=true")
    shared = [f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    flag = f"--controllers={','.join(CONTROLLERS)}"
    manager = Process([str(assets_folder() / MANAGER), *shared, flag], folder / "manager.log")
    scheduler = Process([str(assets_folder() / SCHEDULER), *shared], folder / "scheduler.log")
    client = LiveClient(plane.kubeconfig)
    players: list[Any] = [LiveKubelets(client), Volumes(client)]
    try:
        yield LiveServer(client, plane.kubeconfig)
    finally:
        for player in (*players, scheduler, manager, plane):
            player.stop()


@contextmanager
def shadow_of(live: LiveServer) -> Iterator[subprocess.Popen[str]]:
    """A shadow that has read the cluster; it has ended before the server does."""
    command = [sys.executable, "-m", "bayplan.cli.main", "shadow", "-o", "json"]
    shadow = subprocess.Popen(
        [*command, f"--kubeconfig={live.kubeconfig}"], stdout=subprocess.PIPE, text=True
    )
    try:
        time.sleep(6)
        yield shadow
    except Exception:
        traceback.print_exc()
        raise
    finally:
        shadow.kill()


def kubectl(live: LiveServer, *words: str, text: bytes | None = None) -> None:
    command = [str(assets_folder() / "kubectl"), f"--kubeconfig={live.kubeconfig}", *words]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    if done.returncode:
        print(f"kubectl {' '.join(words)}: {done.stderr.decode()[-400:]}", file=sys.stderr)


def prepare(live: LiveServer, material: Path) -> dict[str, Tree]:
    """Apply nodes and manifests; the Deployments of the shop by name."""
    kubectl(live, "apply", "--server-side", "-f", str(material / "cluster.yaml"))
    for tree in yaml.safe_load_all((material / "cluster.yaml").read_text()):
        if tree["kind"] == "Node":
            path = f"{path_of('Node', name=tree['metadata']['name'])}/status"
            live.client.patch(path, {"status": tree["status"]}, "strategic")
    for name in ("istio-system", SHOP):
        live.put("", with_head("Namespace", {"metadata": {"name": name}}))
    for priority in (IMPORTANT, HIGHER):
        live.put("", priority)
    for name in BESIDE:
        data = gzip.decompress((material / "manifests" / f"{name}.yaml.gz").read_bytes())
        kubectl(live, "apply", "--server-side", "-f", "-", text=data)
    data = gzip.decompress((material / "manifests" / "online-boutique.yaml.gz").read_bytes())
    kubectl(live, "apply", "--server-side", "-n", SHOP, "-f", "-", text=data)
    trees = [tree for tree in yaml.safe_load_all(data) if tree]
    return {tree["metadata"]["name"]: tree for tree in trees if tree["kind"] == "Deployment"}


def settled(live: LiveServer, request: ChangeRequest, still_s: float = STILL_S) -> Outcome:
    """The outcome after it has stopped changing."""
    deadline, since, before = time.monotonic() + SETTLE_S, time.monotonic(), live.outcome(request)
    while time.monotonic() < deadline and time.monotonic() - since < still_s:
        time.sleep(0.3)
        now = live.outcome(request)
        if now != before:
            since, before = time.monotonic(), now
    return before


def awaited(live: LiveServer, request: ChangeRequest, predicted: Outcome) -> Outcome:
    """The outcome when it equals the prediction and stays equal; the last outcome if it never does."""
    end = time.monotonic() + SETTLE_S
    since = time.monotonic()
    while True:
        found = live.outcome(request)
        now = time.monotonic()
        if compare(predicted, found):
            since = now
        if now > end or now - since > STILL_S:
            return found
        time.sleep(0.3)


def compare(predicted: Outcome, found: Outcome) -> list[str]:
    """Differences beside ties of nodes."""
    told = []
    for name in ("pending", "updated", "refused"):
        here, there = getattr(predicted, name), getattr(found, name)
        if name == "updated":
            there = {key: value for key, value in there.items() if key in here}
        if name == "refused":
            here, there = set(map(_without_used, here)), set(map(_without_used, there))
        if here != there:
            told.append(f"{name}: predicted {here}, found {there}")
    count = [sum(each.running.values()) for each in (predicted, found)]
    if count[0] != count[1]:
        told.append(f"running pods: predicted {count[0]}, found {count[1]}")
    return told


def _without_used(message: str) -> str:
    """A quota's message without the amount that is used, if this is one that leads to the refusal.

    A condition keeps the message of the first refusal, and deleted pods are given back to a quota some time later.
    """
    found = _QUOTA.search(message)
    if found is None:
        return message
    requested, used, limited = map(parse_quantity, found.groups())
    return (
        message.replace(f"={found[2]}, limited", "=..., limited")
        if requested + used > limited
        else message
    )


def make_requests(live: LiveServer, shop: dict[str, Tree], folder: Path, only: list[str]) -> int:
    """Predict and apply each request; the number of those that went otherwise."""
    wrong = 0
    for name, before, applied, after in steps(shop):
        if only and name not in only:
            continue
        request = ChangeRequest(SHOP, {}, before, applied)
        for tree in before:
            live.put(SHOP, tree)
        settled(live, request, 4.0)
        begin = time.monotonic()
        predicted = live.predict(request, folder)
        took_s = time.monotonic() - begin
        for tree in applied:
            live.put(SHOP, tree)
        found = awaited(live, request, predicted)
        told = compare(predicted, found)
        wrong += bool(told)
        same = sum((predicted.running & found.running).values())
        line = {
            "request": name,
            "predictedIn": round(took_s, 1),
            "pending": sum(found.pending.values()),
            "refused": len(found.refused),
            "running": sum(found.running.values()),
            "onTheSameNode": same,
            "differences": told,
            "toTheLetter": predicted.refused == found.refused,
        }
        if predicted.refused != found.refused:
            line["refusals"] = [sorted(predicted.refused), sorted(found.refused)]
        print(json.dumps(line), flush=True)
        for tree in after:
            live.put(SHOP, tree)
        if name == "quota":
            live.client.delete(path_of("ResourceQuota", SHOP, "team"))
        settled(live, request, 4.0)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--material", type=Path, required=True)
    parser.add_argument("--server", choices=("up", "kube-apiserver"), default="up")
    parser.add_argument("--only", nargs="*", default=[], help="names of requests")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "server").mkdir()
        with server_of(arguments.server, folder / "server") as live:
            shop = prepare(live, arguments.material)
            settled(live, ChangeRequest(SHOP, {}, [], []), 5.0)
            with shadow_of(live) as shadow:
                wrong = make_requests(live, shop, folder, arguments.only)
                shadow.send_signal(signal.SIGTERM)
                report = json.loads(shadow.communicate(timeout=60)[0])
    print(json.dumps({"shadow": report["summary"], "skipped": report["skipped"]}))
    for one in report["differences"]:
        print(json.dumps(one), file=sys.stderr)
    sys.exit(1 if wrong or report["summary"]["different"] else 0)


if __name__ == "__main__":
    main()
