"""Kubectl: as a plugin, the commands take kubectl's cluster and namespace."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.kubectl import app, completions
from bayplan.cli.options.cluster_options import CLUSTER_DEFAULTS, ClusterDefaults, with_namespace
from tests.rig.api_server import ServerInThread, api_server
from tests.rig.trees import node_tree, pod_tree

COMPLETE = "from bayplan.cli.kubectl import complete; complete()"
MAIN = "from bayplan.cli.kubectl import main; main()"


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    """A server with a node, and a pod of the same name in two namespaces."""
    with api_server(runs_pods=False) as server:
        server.make("/api/v1/nodes", node_tree("node-1"))
        server.make("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        server.make("/api/v1/namespaces/default/pods", pod_tree("web-7"))
        refused = pod_tree("web-7", nodeSelector={"no": "where"})
        refused["metadata"]["namespace"] = "shop"
        server.make("/api/v1/namespaces/shop/pods", refused)
        yield server


@pytest.fixture
def kubeconfig(api: ServerInThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two contexts: `bayplan`, which is current, and `shop`, with that namespace."""
    path = tmp_path / "kubeconfig"
    tree = make_kubeconfig(api.server.url)
    [current] = tree["contexts"]
    tree["contexts"].append(
        {"name": "shop", "context": {**current["context"], "namespace": "shop"}}
    )
    path.write_text(json.dumps(tree))
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def ask(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.mark.parametrize(
    ("args", "namespace"),
    [
        pytest.param(["explain", "pod/web-7"], "default", id="no namespace in the context"),
        pytest.param(["explain", "web-7"], "default", id="a name alone"),
        pytest.param(["explain", "web-7", "--context", "shop"], "shop", id="the context's"),
        pytest.param(["--context", "shop", "explain", "web-7"], "shop", id="context in front"),
        pytest.param(["explain", "pod/web-7", "-n", "shop"], "shop", id="-n after the command"),
        pytest.param(["-n", "shop", "explain", "pod/web-7"], "shop", id="-n before the command"),
        pytest.param(["explain", "shop/web-7"], "shop", id="the name says it"),
        pytest.param(["explain", "pod/shop/web-7"], "shop", id="kind and name say it"),
        pytest.param(
            ["--context", "shop", "explain", "web-7", "-n", "default"],
            "default",
            id="-n before the context's",
        ),
    ],
)
def test_names_are_in_the_namespace_of_the_context(
    args: list[str], namespace: str, kubeconfig: Path
) -> None:
    result = ask(*args, "-o", "json")

    pod = json.loads(result.stdout)["pod"]
    assert (pod["namespace"], pod["name"]) == (namespace, "web-7")
    assert result.exit_code == (1 if namespace == "shop" else 0)


def test_it_says_which_cluster_it_asked(api: ServerInThread, kubeconfig: Path) -> None:
    result = ask("explain", "web-7", "--context", "shop")

    asked = (
        f"note: asked the cluster at {api.server.url} (context shop), Kubernetes v1.36.4+bayplan"
    )
    assert result.stderr == f"{asked}\n"


def test_the_kubeconfig_may_stand_in_front(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG")

    assert ask("--kubeconfig", kubeconfig, "explain", "web-7").exit_code == 0
    assert ask("explain", "web-7", "--kubeconfig", kubeconfig).exit_code == 0
    refused = ask("explain", "web-7")
    assert refused.exit_code == 2
    assert "-f FILE" in refused.stderr
    assert "KUBECONFIG" in refused.stderr


def test_what_if_takes_the_namespace(kubeconfig: Path) -> None:
    result = ask("-n", "shop", "what-if", "delete", "pod/web-7", "-o", "json")

    assert result.exit_code == 0, result.output
    assert "default" not in {pod["namespace"] for pod in json.loads(result.stdout)["pods"]}
    missing = ask("-n", "kube-system", "what-if", "delete", "pod/web-7")
    assert missing.exit_code == 2


def test_the_options_in_front_hold_for_one_call(kubeconfig: Path) -> None:
    ask("-n", "shop", "explain", "web-7")

    assert CLUSTER_DEFAULTS.get() == ClusterDefaults()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("pod/a", "pod/shop/a", id="a pod"),
        pytest.param("deploy/a", "deploy/shop/a", id="a workload"),
        pytest.param("pod/x/a", "pod/x/a", id="with a namespace"),
        pytest.param("node/a", "node/a", id="a kind without namespaces"),
        pytest.param("x/a", "x/a", id="namespace and name"),
        pytest.param("a", "a", id="a name alone"),
    ],
)
def test_with_namespace(target: str, expected: str) -> None:
    assert with_namespace(target, "shop") == expected
    assert with_namespace(target, None) == target


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["expl"], ["explain"], id="a command"),
        pytest.param(["what-if", "dr"], ["drain"], id="a command of a group"),
        pytest.param(["-n", "shop", "explain", "--nod"], ["--node"], id="options in front"),
        pytest.param(["explain", "-f", "clu"], [], id="a file, which the shell completes"),
        pytest.param(["explain", "x y", "--nod"], ["--node"], id="a word with a space"),
    ],
)
def test_completions(
    words: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_KUBECTL_BAYPLAN_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
        monkeypatch.setenv(name, "")  # is put back at the end

    assert completions(words) == expected


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        pytest.param(["expl"], "explain\n:4\n", id="no names of files besides"),
        pytest.param(["explain", "-f", ""], ":0\n", id="names of files"),
    ],
)
def test_the_completion_is_in_the_form_that_kubectl_reads(words: list[str], printed: str) -> None:
    command = [sys.executable, "-c", COMPLETE, *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (result.stdout, result.stderr) == (printed, "")


def test_help_says_kubectl() -> None:
    command = [sys.executable, "-c", MAIN, "explain", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert result.stdout.startswith("Usage: kubectl bayplan explain [OPTIONS] POD\n")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_finds_the_plugin(kubeconfig: Path) -> None:
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    command = ["kubectl", "bayplan", "explain", "pod/web-7", "--context", "shop"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert result.returncode == 1
    assert "web-7" in result.stdout
