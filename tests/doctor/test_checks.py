"""Doctor: facts of a cluster become findings, and those that make answers differ are marked."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.main import app
from bayplan.doctor.checks import (
    ClusterFacts,
    Finding,
    FoundConfiguration,
    PodWebhook,
    SchedulerCommand,
    find_all,
    short_note,
)
from bayplan.doctor.live_facts import _commands, _configurations, _webhooks, read_facts
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_pod
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import node_tree, pod_tree

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 7}]}}
"""
GO_PLUGIN = CONFIGURATION.replace("NodeResourcesFit, weight: 7", "Trimaran")
EXTENDER = (
    CONFIGURATION + "extenders: [{urlPrefix: 'http://127.0.0.1:9', filterVerb: f, weight: 1}]\n"
)
runner = CliRunner()


def found(*objects: Any, **facts: Any) -> list[Finding]:
    given = {"version": "v1.36.4", "is_live": True, **facts}
    return find_all(ClusterFacts(objects=list(objects), **given), Settings(), has_config=False)


def differing(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(one.subject, one.text) for one in findings if one.differs]


def configuration(text: str) -> FoundConfiguration:
    return FoundConfiguration(source="configmap kube-system/s, key c", text=text, command="get")


def test_a_plain_cluster_has_no_finding_that_differs() -> None:
    command = SchedulerCommand(pods=("kube-scheduler-a",))

    assert differing(found(make_pod("p"), commands=[command])) == []


@pytest.mark.parametrize(
    ("facts", "subject", "words"),
    [
        pytest.param({"version": ""}, "version", "is not known", id="no version"),
        pytest.param(
            {"kubelets": Counter({"1.37": 2, "1.36": 5, "1.33": 1, "1.32": 1})},
            "version",
            "kubelets that Kubernetes 1.36 does not support: 1.37 (2 nodes), 1.32 (1 node)",
            id="kubelets",
        ),
        pytest.param({"version": "v1.52.0"}, "version", "v1.52.0", id="a later version"),
        pytest.param(
            {"configurations": [configuration(CONFIGURATION)]},
            "configuration",
            "which is not used",
            id="a configuration in the cluster",
        ),
        pytest.param(
            {"configurations": [configuration(GO_PLUGIN)]},
            "configuration",
            "Trimaran",
            id="a plugin that is not here",
        ),
        pytest.param(
            {"configurations": [configuration(EXTENDER)]},
            "configuration",
            "extender http://127.0.0.1:9: cannot be reached",
            id="an extender that cannot be reached",
        ),
        pytest.param(
            {
                "commands": [
                    SchedulerCommand(pods=("s",), config_file="/c", config_source="file /c")
                ]
            },
            "configuration",
            "s reads its configuration from file /c",
            id="a file on the node",
        ),
        pytest.param(
            {"commands": [SchedulerCommand(pods=("s",), feature_gates="GenericWorkload=true")]},
            "configuration",
            "s has other feature gates: GenericWorkload",
            id="feature gates",
        ),
        pytest.param(
            {"webhooks": [PodWebhook(name="sidecars", mutates=True)]},
            "admission",
            "that change new pods: sidecars",
            id="a webhook",
        ),
        pytest.param(
            {"unreadable_kinds": ["persistentvolumes"]},
            "permissions",
            "may not be listed: persistentvolumes",
            id="a kind that may not be read",
        ),
    ],
)
def test_facts_make_answers_differ(facts: dict[str, Any], subject: str, words: str) -> None:
    every = differing(found(make_pod("p"), **facts))

    assert any(one[0] == subject and words in one[1] for one in every), every


def test_objects_make_answers_differ() -> None:
    pods = [
        make_pod("a", spec={"schedulerName": "volcano"}),
        make_pod(
            "b", spec={"containers": [{"name": "c", "image": "registry.k8s.io/descheduler:1"}]}
        ),
        make_pod("c", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}),
    ]

    every = found(*pods)

    assert ("schedulers", "schedulers without a profile: volcano (1 pod)") in differing(every)
    assert ("controllers", "descheduler runs in the cluster") in differing(every)
    assert any("kueue.x-k8s.io/admission (1 pod)" in one.text for one in every)
    note = short_note(pods, Settings())
    assert note.startswith(
        "answers may differ: schedulers without a profile: volcano (1 pod); desch"
    )


def test_flags_of_static_pods_are_read() -> None:
    mount = {"name": "k", "mountPath": "/etc/kubernetes/scheduler"}
    container = {
        "command": ["kube-scheduler", "--config=/etc/kubernetes/scheduler/c.yaml", "--v=2"],
        "volumeMounts": [mount],
    }
    volumes = [{"name": "k", "hostPath": {"path": "/var/lib/scheduler"}}]
    pods = [
        {
            "metadata": {"name": f"kube-scheduler-{name}"},
            "spec": {"containers": [container], "volumes": volumes},
        }
        for name in "ab"
    ]

    (command,) = _commands([*pods, {"metadata": {"name": "other"}, "spec": {}}])

    assert command.pods == ("kube-scheduler-a", "kube-scheduler-b")
    assert command.config_source == "file /var/lib/scheduler/c.yaml of the node"


def test_webhooks_for_pods_are_found() -> None:
    def hook(name: str, **rule: Any) -> dict[str, Any]:
        given = {"operations": ["CREATE"], "apiGroups": [""], "resources": ["pods"], **rule}
        return {"metadata": {"name": name}, "webhooks": [{"name": name, "rules": [given]}]}

    items = [
        hook("pods"),
        hook("all", operations=["*"], apiGroups=["*"], resources=["*"]),
        hook("bindings", resources=["pods/binding"]),
        hook("updates", operations=["UPDATE"]),
        hook("nodes", resources=["nodes"]),
    ]

    hooks = {one.name: one.at_binding for one in _webhooks(items, mutates=True)}

    assert hooks == {"pods": False, "all": False, "bindings": True}


def test_configurations_in_config_maps_are_found() -> None:
    maps = [
        {"metadata": {"name": "other"}, "data": {"a": "b"}},
        {"metadata": {"name": "sched"}, "data": {"config.yaml": CONFIGURATION}},
    ]

    (one,) = _configurations(maps)

    assert one.source == "configmap kube-system/sched, key config.yaml"
    assert one.command.startswith("kubectl -n kube-system get configmap sched -o jsonpath=")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[ServerInThread, Path]]:
    with api_server(runs_pods=False) as server:
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(make_kubeconfig(server.server.url)))
        yield server, path


def test_a_live_cluster_is_looked_at(live: tuple[ServerInThread, Path]) -> None:
    server, kubeconfig = live
    server.make("/api/v1/nodes", node_tree("n0"))
    server.make(PODS, pod_tree("p", schedulerName="volcano"))

    async def read() -> ClusterFacts:
        connection = Connection(await load_credentials(kubeconfig))
        try:
            return await read_facts(connection)
        finally:
            await connection.close()

    facts = asyncio.run(read())
    result = runner.invoke(app, ["doctor", "--kubeconfig", str(kubeconfig), "-o", "json"])
    asked = runner.invoke(app, ["simulate", "--kubeconfig", str(kubeconfig)])

    assert facts.version.startswith("v1.")
    assert {obj.kind for obj in facts.objects} >= {"Node", "Pod", "Namespace"}
    assert result.exit_code == 1, result.output
    report = json.loads(result.stdout)
    assert report["findings"][0]["text"] == "schedulers without a profile: volcano (1 pod)"
    assert "answers may differ: schedulers without a profile: volcano (1 pod)" in asked.output


def test_a_snapshot_is_looked_at(tmp_path: Path) -> None:
    annotations = {"bayplan.dev/kubernetes-version": "v1.36.4"}
    namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace"}
    namespace |= {"metadata": {"name": "default", "annotations": annotations}}
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(namespace))

    result = runner.invoke(app, ["doctor", "-f", str(file)])

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("nothing found that makes answers differ\n")


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        pytest.param(
            [],
            [
                "! version: the version of Kubernetes is not known",
                "    try: --kubernetes-version 1.31",
                "! version: kubelets that Kubernetes 1.36 does not support: 1.31 (1 node)",
            ],
            id="an unknown version",
        ),
        pytest.param(
            ["--kubernetes-version", "1.34"],
            ["- version: Kubernetes 1.34: the rules of v1.34.11 are used"],
            id="a version that is given",
        ),
    ],
)
def test_kubelets_of_files_are_compared_with_the_release(
    tmp_path: Path, options: list[str], lines: list[str]
) -> None:
    node = node_tree("a")
    node["status"] = {**node.get("status", {}), "nodeInfo": {"kubeletVersion": "v1.31.2-eks-1"}}
    file = tmp_path / "node.json"
    file.write_text(json.dumps(node))

    result = runner.invoke(app, ["doctor", "-f", str(file), *options])

    assert set(lines) <= set(result.stdout.splitlines()), result.stdout
    assert ("does not support" in result.stdout) == (not options)
