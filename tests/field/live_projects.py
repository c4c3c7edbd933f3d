"""Published manifests on a real control plane: where their pods went and why some wait, compared with `simulate`.

`python -m tests.field.live_projects --cluster cluster.yaml FILE...` starts a control plane for each file, with
kube-controller-manager and kube-scheduler, applies the nodes and the file, and compares pod by pod. A pod on another
node is a tie if `bayplan shadow`, which runs beside, found its node to have the highest total. The same file is
applied to `bayplan up`: each object is taken by both servers or refused by both. Webhooks are left out, as no pod
would answer them.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bayplan import Cluster, simulate
from bayplan.yaml_tree import iter_trees
from tests.e2e.test_change_requests import LiveServer
from tests.rig.live.client import RefusedError, Tree
from tests.rig.live.control_plane import assets_folder
from tests.rig.live.kinds import path_of, with_head

from .change_requests import server_of, shadow_of

WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
PASSES = 3
"""Times that a file is applied: a custom object waits for its definition."""
STILL_S, SETTLE_S = 5.0, 90.0
Where = Counter[tuple[str, str]]


class Result(NamedTuple):
    """Pods by workload and node, and pods by workload and message."""

    placed: Where
    waiting: Where


def trees_of(file: Path) -> list[Tree]:
    """The objects of a file that are applied."""
    found = [one for one in iter_trees(file.read_text()) if one]
    trees = [tree for one in found for tree in _items(one)]
    return [tree for tree in trees if tree["kind"] not in WEBHOOKS]


def _items(tree: Tree) -> list[Tree]:
    """The objects of a list, with their kind; else the object itself."""
    if not tree["kind"].endswith("List") or "items" not in tree:
        return [tree]
    head = {"apiVersion": tree["apiVersion"], "kind": tree["kind"].removesuffix("List")}
    return [{**head, **item} for item in tree["items"]]


def put_cluster(live: LiveServer, file: Path) -> None:
    """Create the nodes, with their status, and the classes of storage."""
    for tree in trees_of(file):
        with suppress(RefusedError):
            live.put("", tree)
        if tree["kind"] == "Node":
            path = f"{path_of('Node', name=tree['metadata']['name'])}/status"
            live.client.patch(path, {"status": tree["status"]}, "strategic")


def apply(live: LiveServer, trees: list[Tree], folder: Path) -> dict[str, str]:
    """Apply all objects with kubectl; the refusal of each, empty if it was taken, by kind and name."""
    for name in sorted({tree["metadata"].get("namespace") or "default" for tree in trees}):
        if live.client.find(path_of("Namespace", name=name)) is None:
            live.put("", with_head("Namespace", {"metadata": {"name": name}}))
    told: dict[str, str] = {}
    for _ in range(PASSES):
        told |= _apply_once(live, trees, folder)
        if not any(told.values()):
            break
        time.sleep(2)
    return told


def _apply_once(live: LiveServer, trees: list[Tree], folder: Path) -> dict[str, str]:
    told = {}
    for number, tree in enumerate(trees):
        kind, metadata = tree["kind"], tree["metadata"]
        (folder / f"{number:04}.json").write_text(json.dumps(tree))
        told[f"{number:04} {kind} {metadata.get('name')}"] = "not applied"
    command = [str(assets_folder() / "kubectl"), f"--kubeconfig={live.kubeconfig}", "apply"]
    # one process for all: the errors of files are in the order of the files and name them
    done = subprocess.run(
        [*command, "--server-side", "--force-conflicts", "-f", str(folder)],
        capture_output=True,
        check=False,
        text=True,
    )
    taken = Counter(line.partition(" ")[0] for line in done.stdout.splitlines())
    errors = [line for line in done.stderr.splitlines() if not line.startswith("Warning")]
    for key, tree in zip(list(told), trees, strict=True):
        group = tree["apiVersion"].rpartition("/")[0].partition("/")[0]
        kind = tree["kind"].lower() + (f".{group}" if group else "")
        name = f"{kind}/{tree['metadata'].get('name')}"
        if taken[name]:
            taken[name] -= 1
            told[key] = ""
        else:
            own = [line for line in errors if f'"{tree["metadata"].get("name")}"' in line]
            file = [line for line in errors if f"{key.partition(' ')[0]}.json" in line]
            told[key] = " ".join(own or file or ["refused"]).replace(str(folder), "")
    return told


def found_on(live: LiveServer) -> Result:
    """The state of the pods now."""
    placed: Where = Counter()
    waiting: Where = Counter()
    for pod in live.client.get("/api/v1/pods")["items"]:
        metadata = pod["metadata"]
        workload = f"{metadata['namespace']}/{metadata['name']}"
        for owner in metadata.get("ownerReferences") or ():
            workload = _workload_of(metadata["namespace"], owner["kind"], owner["name"])
        if node := pod["spec"].get("nodeName"):
            placed[workload, node] += 1
            continue
        conditions = (pod.get("status") or {}).get("conditions") or ()
        messages = [one.get("message", "") for one in conditions if one["type"] == "PodScheduled"]
        waiting[workload, "".join(messages)] += 1
    return Result(placed, waiting)


def _workload_of(namespace: str, kind: str, name: str) -> str:
    """The workload of an owner of pods: a replica set's is its Deployment."""
    return f"{namespace}/{name.rpartition('-')[0] if kind == 'ReplicaSet' else name}"


def settled(live: LiveServer) -> Result:
    """The state after it has stopped changing and no pod is undecided."""
    end, since, before = time.monotonic() + SETTLE_S, time.monotonic(), found_on(live)
    while time.monotonic() < end and time.monotonic() - since < STILL_S:
        time.sleep(0.5)
        now = found_on(live)
        if now != before or any(not message for _, message in now.waiting):
            since, before = time.monotonic(), now
    return before


def predicted(cluster: Path, file: Path) -> Result:
    """The end of a simulation of both files."""
    with warnings.catch_warnings(action="ignore"):
        report = simulate(Cluster.read(cluster, file))
    placed: Where = Counter()
    waiting: Where = Counter()
    for one in report.pods:
        workload, owner = one.pod.key, one.pod.controller
        if owner is not None:
            workload = _workload_of(one.pod.namespace, owner.kind, owner.name)
        if one.is_placed:
            placed[workload, one.attempt.node_name] += 1
        else:
            waiting[workload, one.attempt.message] += 1
    return Result(placed, waiting)


def project(cluster: Path, file: Path) -> dict[str, Any]:
    """Run one project on both servers."""
    trees = trees_of(file)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("server", "up", "objects", "up-objects", "prediction"):
            (folder / name).mkdir()
        rendered = folder / "prediction" / "input.yaml"
        rendered.write_text(yaml.dump_all(trees, Dumper=yaml.CSafeDumper))
        with server_of("kube-apiserver", folder / "server") as live:
            put_cluster(live, cluster)
            with shadow_of(live) as shadow:
                told = apply(live, trees, folder / "objects")
                found = settled(live)
                shadow.send_signal(signal.SIGTERM)
                report = json.loads(shadow.communicate(timeout=60)[0])
        with server_of("up", folder / "up") as live:
            put_cluster(live, cluster)
            here = apply(live, trees, folder / "up-objects")
        expected = predicted(cluster, rendered)
    return summary(file.stem, Comparison(found, expected, told, here), report)


class Comparison(NamedTuple):
    """One project on the real control plane, simulated, and refusals of kube-apiserver and of `up`."""

    found: Result
    expected: Result
    told: dict[str, str]
    here: dict[str, str]


def summary(name: str, both: Comparison, shadow: dict[str, Any]) -> dict[str, Any]:
    """Counts, and the differences beside ties."""
    found, expected, told, here = both
    differences = [
        f"waiting: {'only simulated' if count > 0 else 'only real'}: {key}"
        for key, count in _difference(expected.waiting, found.waiting).items()
    ]
    per_workload = [_by_workload(each.placed) for each in (expected, found)]
    differences += [
        f"placed pods of {key}: {count} more simulated"
        for key, count in _difference(*per_workload).items()
    ]
    applied = [key for key in told if bool(told[key]) != bool(here[key])]
    differences += [
        f"applied: {key}: real: {told[key][:300]!r}, up: {here[key][:300]!r}" for key in applied
    ]
    crds = [key for key in told if " CustomResourceDefinition " in key]
    differences += [f"shadow: {json.dumps(one)[:400]}" for one in shadow["differences"]]
    same = (expected.placed & found.placed).total()
    return {
        "project": name,
        "objects": len(told),
        "refusedByBoth": sum(bool(told[key]) and bool(here[key]) for key in told),
        "crds": len(crds),
        "crdsTaken": [sum(not each[key] for key in crds) for each in (told, here)],
        "pods": found.placed.total() + found.waiting.total(),
        "sameNode": same,
        "otherNode": found.placed.total() - same,
        "waiting": found.waiting.total(),
        "shadow": shadow["summary"],
        "differences": differences,
    }


def _by_workload(placed: Where) -> Counter[str]:
    found: Counter[str] = Counter()
    for (workload, _), count in placed.items():
        found[workload] += count
    return found


def _difference(one: Counter[Any], other: Counter[Any]) -> dict[Any, int]:
    return {key: one[key] - other[key] for key in sorted({*one, *other}) if one[key] != other[key]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", type=Path, required=True)
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    wrong = 0
    for file in arguments.files:
        line = project(arguments.cluster, file)
        wrong += bool(line["differences"])
        print(json.dumps(line), flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
