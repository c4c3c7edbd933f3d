"""Questions about a live cluster: the same answers as from its snapshot, and nothing is ever written to it."""

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from operator import methodcaller
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from typer.testing import CliRunner, Result

import bayplan.apiserver.server
from bayplan import Cluster, explain, simulate
from bayplan.apiserver.registry.status_errors import StatusError
from bayplan.apiserver.server import make_kubeconfig
from bayplan.apiserver.web.http_requests import WholeRequest
from bayplan.apiserver.web.http_server import ServedConnection
from bayplan.apiserver.web.request_handler import Answer, Api
from bayplan.cli.main import app
from tests.rig.api_server import ServerInThread, api_server
from tests.rig.trees import node_tree, pod_tree

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class WatchedApi(Api):
    """Notes every request, and refuses to list the kinds in `refused`."""

    requests: ClassVar[list[tuple[str, str]]] = []
    refused: ClassVar[set[str]] = set()

    def handle(self, request: WholeRequest, connection: ServedConnection) -> None:
        self.requests.append((request.method, request.path))
        super().handle(request, connection)

    def _answer(self, request: WholeRequest) -> Answer:
        plural = request.path.rpartition("/")[2]
        if plural in self.refused:
            text = f'{plural} is forbidden: User "jane" cannot list resource "{plural}"'
            raise StatusError(403, "Forbidden", text)
        return super()._answer(request)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerInThread]:
    """A server with the example cluster and the pods that controllers make of the example workload."""
    monkeypatch.setattr(bayplan.apiserver.server, "Api", WatchedApi)
    monkeypatch.setattr(WatchedApi, "requests", [])
    monkeypatch.setattr(WatchedApi, "refused", set())
    with api_server(runs_pods=False) as server:
        for name in ("cluster.yaml", "workload.yaml"):
            for tree in yaml.safe_load_all((EXAMPLES / name).read_text()):
                server.within(methodcaller("load", tree))
        server.settle()
        yield server


def write_kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    path.write_text(json.dumps(make_kubeconfig(url)))
    return path


def ask(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def asked(api: ServerInThread) -> str:
    """The note that names the cluster."""
    return f"note: asked the cluster at {api.server.url} (context bayplan), Kubernetes v1.36.4+bayplan\n"


QUESTIONS = [
    pytest.param(["explain", "shop/web-0"], id="explain, of no pod"),
    pytest.param(["explain", "deployment/shop/web"], id="explain"),
    pytest.param(["what-if", "drain", "worker-a1"], id="what-if drain"),
    pytest.param(["what-if", "add-nodes", "2", "--like", "worker-a1"], id="what-if add-nodes"),
    pytest.param(["capacity", "--pod", "pod.yaml"], id="capacity"),
    pytest.param(["compare", "--config", "config.yaml"], id="compare"),
    pytest.param(["rebalance"], id="rebalance"),
    pytest.param(["simulate"], id="simulate"),
]
PLANS = [
    pytest.param(["--existing"], id="the nodes exchanged"),
    pytest.param(["--keep", "existing"], id="further nodes"),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_that_of_the_snapshot_and_nothing_is_written(
    question: list[str],
    api: ServerInThread,
    kubeconfig: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(json.dumps(pod_tree("more")))
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    Path("config.yaml").write_text(json.dumps(config))
    assert ask("snapshot", "--kubeconfig", kubeconfig, "--to", "cluster.yaml").exit_code == 0
    form = ["-o", "json"]
    if question[0] in ("simulate", "capacity"):
        question = [*question, "--seed", "1"]
    expected = ask(*question, *form, "-f", "cluster.yaml")
    before = api.within(lambda server: server.store.safe_version)
    WatchedApi.requests.clear()

    answer = ask(*question, *form, "--kubeconfig", kubeconfig)

    assert (answer.exit_code, answer.stdout) == (expected.exit_code, expected.stdout)
    assert answer.stderr == asked(api) + expected.stderr
    assert {method for method, _ in WatchedApi.requests} == {"GET"}
    assert len(WatchedApi.requests) > 20
    assert api.within(lambda server: server.store.safe_version) == before


@pytest.mark.parametrize("question", [["rebalance"], ["capacity", "--pod", "pod.yaml"]])
@pytest.mark.parametrize("is_default", [False, True], ids=["KUBECONFIG", "~/.kube/config"])
def test_without_files_the_cluster_is_that_of_kubectl(
    question: list[str],
    is_default: bool,
    api: ServerInThread,
    kubeconfig: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(json.dumps(pod_tree("more")))
    if is_default:
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".kube").mkdir()
        kubeconfig.rename(tmp_path / ".kube" / "config")
    else:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    answer = ask(*question, "-o", "json")

    assert answer.exit_code == 0, answer.output
    assert answer.stderr == asked(api)
    assert len(WatchedApi.requests) > 20


def test_files_alone_ask_no_cluster(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    answer = ask("rebalance", "-f", EXAMPLES / "cluster.yaml")

    assert (answer.exit_code, answer.stderr) == (0, "")
    assert WatchedApi.requests == []


def test_the_example_is_placed_as_from_files(kubeconfig: Path) -> None:
    answer = ask("simulate", "--kubeconfig", kubeconfig, "-o", "name")

    assert answer.exit_code == 1
    assert sum(" node/" in line for line in answer.stdout.splitlines()) > 10


def test_a_context_alone_means_the_usual_kubeconfig(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    context = json.loads(kubeconfig.read_text())["current-context"]

    assert ask("rebalance", "--context", context).exit_code == 0
    refused = ask("rebalance", "--context", "elsewhere")
    assert refused.exit_code == 2
    assert "elsewhere" in refused.stderr


def test_with_files_they_are_applied_to_the_live_cluster(
    api: ServerInThread, kubeconfig: Path, tmp_path: Path
) -> None:
    before = api.within(lambda server: server.store.safe_version)
    file = tmp_path / "new.json"
    file.write_text(json.dumps(pod_tree("brand-new", nodeSelector={"only": "here"})))
    node = node_tree("fresh")
    node["metadata"]["labels"]["only"] = "here"
    more = tmp_path / "node.json"
    more.write_text(json.dumps(node))

    alone = ask("explain", "brand-new", "--kubeconfig", kubeconfig, "-f", file)
    both = ask("explain", "brand-new", "--kubeconfig", kubeconfig, "-f", file, "-f", more)

    assert alone.exit_code == 1
    assert both.exit_code == 0
    assert "fresh" in both.stdout
    assert api.within(lambda server: server.store.safe_version) == before


def test_a_pod_that_is_there_stays_as_it_is(
    api: ServerInThread, kubeconfig: Path, tmp_path: Path
) -> None:
    api.make("/api/v1/namespaces/default/pods", pod_tree("there"))
    file = tmp_path / "pods.json"
    changed = pod_tree("there", nodeSelector={"no": "where"})
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [changed]}))

    answer = ask("explain", "there", "--kubeconfig", kubeconfig, "-f", file)

    assert answer.exit_code == 0, answer.output
    assert "note: pod default/there is in the cluster already and stays as it is" in answer.stderr


@pytest.mark.parametrize("question", QUESTIONS)
def test_neither_files_nor_a_cluster(
    question: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(json.dumps(pod_tree("more")))
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    Path("config.yaml").write_text(json.dumps(config))

    answer = ask(*question)

    assert answer.exit_code == 2
    assert answer.stderr == (
        "error: expected manifests (-f FILE) or a cluster (--kubeconfig FILE, KUBECONFIG or ~/.kube/config); "
        "got neither\n"
    )


def test_what_may_not_be_read_is_named_with_its_verb(kubeconfig: Path) -> None:
    WatchedApi.refused.update({"pods", "replicasets"})

    answer = ask("explain", "web", "--kubeconfig", kubeconfig)

    assert answer.exit_code == 2
    lines = answer.stderr.splitlines()
    assert [line.partition(";")[0] for line in lines] == [
        "error: expected to be allowed to list replicasets.apps",
        "error: expected to be allowed to list pods",
    ]
    assert 'User "jane" cannot list resource "pods"' in lines[1]


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    answer = ask("rebalance", "--kubeconfig", write_kubeconfig(tmp_path, "http://127.0.0.1:1"))

    assert answer.exit_code == 2
    assert "error: http://127.0.0.1:1: cannot reach the API server: " in answer.stderr


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    answer = ask("simulate", "--kubeconfig", tmp_path / "nothing")

    assert answer.exit_code == 2
    assert f"error: {tmp_path / 'nothing'}: expected" in answer.stderr


@pytest.mark.parametrize("package", ["aiohttp", "cryptography", "httptools"])
def test_run_without_the_extra_says_how_to_install_it(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec

    def find_none(name: str, *more: Any) -> Any:
        return None if name == package else find_spec(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", find_none)

    answer = ask("run", "--kubeconfig", tmp_path / "any")

    assert answer.exit_code == 2
    assert f"error: {package}: expected it to be installed" in answer.stderr
    assert "pip install 'bayplan[kube]'" in answer.stderr


def test_in_a_notebook(kubeconfig: Path) -> None:
    cluster = Cluster.live(kubeconfig)

    assert len(cluster.node_rows()) == 7
    report = simulate(cluster, seed=1)
    assert len(report.placed) > 10
    assert explain(cluster, report.placed[0].pod.key).verdict in ("fits", "placed")


def test_in_a_notebook_whose_loop_runs(kubeconfig: Path) -> None:
    async def cell() -> Cluster:
        return Cluster.live(str(kubeconfig))

    assert len(asyncio.run(cell())) > 20


NAMED = """
from bayplan.framework import SUCCESS, CustomResource, FilterPlugin, unschedulable


class Named(FilterPlugin):
    name = "Named"
    custom_resources = (CustomResource("configmaps.v1.", "ConfigMap"),)

    def filter_node(self, state, pod, node):
        found = self.handle.custom_objects("configmaps.v1.").get("node", "default")
        wanted = found.raw["data"]["name"] if found else "none"
        return SUCCESS if node.name == wanted else unschedulable(f"it is not {wanted}")
"""
SWITCH = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "node"}}


def test_objects_that_a_plugin_reads_are_read_and_files_applied(
    api: ServerInThread, tmp_path: Path
) -> None:
    api.make("/api/v1/namespaces/default/configmaps", {**SWITCH, "data": {"name": "worker-b1"}})
    plugin, file, pod = tmp_path / "named.py", tmp_path / "file.yaml", tmp_path / "pod.yaml"
    plugin.write_text(NAMED)
    pod.write_text(yaml.safe_dump({**pod_tree("new"), "apiVersion": "v1", "kind": "Pod"}))
    file.write_text(yaml.safe_dump({**SWITCH, "data": {"name": "worker-b2"}}))
    kubeconfig = write_kubeconfig(tmp_path, api.server.url)
    live: list[str | Path] = ["--kubeconfig", kubeconfig, "-f", pod]
    asking = ["explain", "default/new", *live, "--plugins", plugin]

    assert "would go to worker-b1" in ask(*asking).output
    assert "would go to worker-b2" in ask(*asking, "-f", file).output
    cluster = Cluster.live(kubeconfig, plugins=[plugin]) + Cluster.read(pod)
    assert explain(cluster, "new", plugins=[plugin]).node == "worker-b1"


def test_objects_that_a_plugin_reads_must_be_allowed(api: ServerInThread, tmp_path: Path) -> None:
    plugin = tmp_path / "named.py"
    plugin.write_text(NAMED)
    WatchedApi.refused.add("configmaps")
    kubeconfig = write_kubeconfig(tmp_path, api.server.url)

    result = ask("simulate", "--kubeconfig", kubeconfig, "--plugins", plugin)

    assert result.exit_code == 2
    assert "expected to be allowed to list configmaps; got: " in result.stderr


@pytest.mark.parametrize("form", PLANS)
def test_a_plan_for_a_live_cluster_is_that_for_its_snapshot(
    form: list[str], api: ServerInThread, kubeconfig: Path, tmp_path: Path
) -> None:
    snapshot, pools = tmp_path / "cluster.yaml", tmp_path / "pools.yaml"
    one = {"name": "new", "capacity": {"cpu": 16, "memory": "64Gi"}, "price": 0.5}
    spec = {"zones": ["zone-a", "zone-b", "zone-c"], "nodeTypes": [one]}
    head = {"apiVersion": "bayplan.dev/v1", "kind": "NodePool", "metadata": {"name": "p"}}
    pools.write_text(json.dumps(head | {"spec": spec}))
    assert ask("snapshot", "--kubeconfig", kubeconfig, "--to", snapshot).exit_code == 0
    question: list[str | Path] = [
        "plan",
        *form,
        "--pools",
        pools,
        "--time-limit",
        "5s",
        "-o",
        "json",
    ]

    live = ask(*question, "--kubeconfig", kubeconfig)
    stored = ask(*question, "-f", snapshot)

    assert live.exit_code == stored.exit_code, (live.output, stored.output)
    documents = [json.loads(answer.stdout) for answer in (live, stored)]
    for field in ("groups", "price", "pods", "unplaceable", "exchange"):
        assert documents[0].get(field) == documents[1].get(field)
