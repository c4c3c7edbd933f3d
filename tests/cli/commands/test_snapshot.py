"""`bayplan snapshot`: a live cluster as a file, which the simulator opens and decides about in the same way."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.api.wire.decode import decode_object
from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.main import app
from bayplan.config.defaults import default_config
from bayplan.drivers.kube_driver import KubeDriver
from bayplan.errors import ApiError, NotFoundError
from bayplan.kube.cluster_reader import KINDS_READ, WORKLOADS, read_snapshot
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from bayplan.sim import Simulation, read_manifests
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

ROOT = Path(__file__).resolve().parents[3]
runner = CliRunner()


def load_examples(api: ServerInThread) -> None:
    """The example cluster and workload, with the pods that controllers make of it."""
    for name in ("cluster.yaml", "workload.yaml"):
        for tree in yaml.safe_load_all((ROOT / "examples" / name).read_text()):
            api._within(partial(api.server.load, tree))
    api.settle()


def take(kubeconfig: Path, *arguments: str) -> str:
    result = runner.invoke(app, ["snapshot", "--kubeconfig", str(kubeconfig), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def decisions(path: Path) -> dict[str, str]:
    report = Simulation(read_manifests([path]).objects, seed=1).run()
    return {result.pod.key: result.attempt.node_name for result in report.pods}


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_the_simulator_decides_as_on_the_whole_objects(
    api: ServerInThread, kubeconfig: Path, tmp_path: Path, form: str
) -> None:
    load_examples(api)
    whole = [
        {**item, "kind": resource.kind.name, "apiVersion": resource.kind.api_version}
        for resource in (*WORKLOADS, *KINDS_READ)
        for item in api.get(resource.path).tree.get("items", ())  # pod groups are not served
    ]
    everything, clipped = tmp_path / "whole.json", tmp_path / f"cluster.{form}"
    everything.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": whole}))

    clipped.write_text(take(kubeconfig, "-o", form))

    expected = decisions(everything)
    assert len(expected) > 15
    assert decisions(clipped) == expected


def test_the_simulator_decides_as_a_live_scheduler(
    api: ServerInThread, kubeconfig: Path, tmp_path: Path
) -> None:

    for i, cpu in enumerate(("4", "8", "16")):
        node = node_tree(f"n{i}")
        node["status"]["allocatable"] = {**node["status"]["allocatable"], "cpu": cpu}
        api.make("/api/v1/nodes", node)
    for i in range(6):
        requests = {"cpu": f"{900 + 37 * i}m"}
        containers = [{"name": "c", "image": "app:1", "resources": {"requests": requests}}]
        api.make(PODS, pod_tree(f"p{i}", containers=containers))
    file = tmp_path / "cluster.yaml"
    take(kubeconfig, "--to", str(file))

    asyncio.run(schedule_live(kubeconfig, 6))

    placed = {
        f"default/{pod['metadata']['name']}": pod["spec"]["nodeName"]
        for pod in api.get(PODS).tree["items"]
    }
    assert decisions(file) == placed


async def schedule_live(kubeconfig: Path, count: int) -> None:
    """Let a scheduler bind so many pods of the cluster."""
    connection = Connection(await load_credentials(kubeconfig))
    driver = KubeDriver(connection, default_config())
    await driver.start()
    driver.lead()
    async with asyncio.timeout(60):
        while sum(bool(pod.node_name) for pod in driver.cluster.list("Pod")) < count:
            await asyncio.sleep(0.01)
    await driver.stop()
    await connection.close()


def test_nothing_that_does_not_bear_on_placement(api: ServerInThread, kubeconfig: Path) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {}}
    api.make("/api/v1/namespaces/default/secrets", {**secret, "data": {"k": "aHVudGVyMg=="}})
    env = [{"name": "PASSWORD", "value": "hunter2"}]
    pod = pod_tree(
        "p", containers=[{"name": "c", "image": "app:1", "env": env, "args": ["hunter2"]}]
    )
    pod["metadata"]["annotations"] = {"example.com/note": "hunter2", "example.com/tier": "gold"}
    api.make(PODS, pod)

    text = take(kubeconfig, "--annotation", "example.com/tier")

    assert "hunter2" not in text
    assert "aHVudGVyMg" not in text
    assert "kind: Secret" not in text
    assert "managedFields" not in text
    assert "example.com/tier: gold" in text


def test_one_namespace(api: ServerInThread, kubeconfig: Path) -> None:
    load_examples(api)

    trees = list(yaml.safe_load_all(take(kubeconfig, "-n", "shop")))

    namespaces = {tree["metadata"].get("namespace") for tree in trees}
    assert namespaces == {None, "shop"}
    assert {"Node", "Pod", "Namespace"} <= {tree["kind"] for tree in trees}


def test_a_file_is_written_whole_and_may_be_gzipped(
    api: ServerInThread, kubeconfig: Path, tmp_path: Path
) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    file = tmp_path / "cluster.yaml.gz"

    assert take(kubeconfig, "--to", str(file)) == ""

    kinds = {obj.kind for obj in read_manifests([file]).objects}
    assert "Node" in kinds
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "cluster.yaml"
    kubeconfig.write_text(json.dumps(make_kubeconfig("http://127.0.0.1:1")))
    file.write_text("before")

    result = runner.invoke(app, ["snapshot", "--kubeconfig", str(kubeconfig), "--to", str(file)])

    assert result.exit_code == 2
    assert "http://127.0.0.1:1: cannot reach the API server: " in result.output
    assert file.read_text() == "before"


def test_a_file_that_cannot_be_written(api: ServerInThread, kubeconfig: Path) -> None:
    result = runner.invoke(
        app, ["snapshot", "--kubeconfig", str(kubeconfig), "--to", "/nowhere/cluster.yaml"]
    )

    assert result.exit_code == 2
    assert "--to: /nowhere/cluster.yaml: expected a file to write to; got No such" in result.output


class Restricted(Connection):
    """A connection with few permissions, to a server that does not serve everything."""

    refused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    async def request(self, method: str, path: str, *args: Any, **more: Any) -> bytes:
        plural = path.rpartition("/")[2]
        if plural in self.refused:
            raise ApiError(f'{plural} is forbidden: User "jane" cannot list resource', 403)
        return await super().request(method, path, *args, **more)

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        if path in self.missing:
            raise NotFoundError("the server could not find the requested resource")
        return await super().get(path, query)


def read_restricted(
    kubeconfig: Path, refused: tuple[str, ...], missing: tuple[str, ...]
) -> list[Any]:
    async def run() -> list[Any]:
        connection = Restricted(await load_credentials(kubeconfig))
        connection.refused, connection.missing = refused, missing
        try:
            return await read_snapshot(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def test_what_may_not_be_read_is_said_at_once(api: ServerInThread, kubeconfig: Path) -> None:
    with pytest.raises(ApiError) as caught:
        read_restricted(kubeconfig, ("pods", "replicasets"), ())

    assert str(caught.value).splitlines() == [
        "expected to be allowed to list replicasets.apps; "
        'got: replicasets is forbidden: User "jane" cannot list resource',
        'expected to be allowed to list pods; got: pods is forbidden: User "jane" cannot list resource',
    ]


def test_kinds_that_are_not_served_are_left_out(api: ServerInThread, kubeconfig: Path) -> None:
    api.make("/api/v1/nodes", node_tree("a"))

    objects = read_restricted(kubeconfig, (), ("/apis/resource.k8s.io/v1", "/apis/policy/v1"))

    assert any(obj.kind == "Node" for obj in objects)


def test_what_was_written_can_be_decoded(api: ServerInThread, kubeconfig: Path) -> None:
    load_examples(api)

    trees = json.loads(take(kubeconfig, "-o", "json"))["items"]

    assert [decode_object(tree).kind for tree in trees] == [tree["kind"] for tree in trees]  # type: ignore[attr-defined]
