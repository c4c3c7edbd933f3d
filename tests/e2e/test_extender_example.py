"""The example extender: a real server, called over HTTP and HTTPS by a whole scheduler."""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_node, make_pod
from tests.rig.certificates import make_certificate
from tests.rig.scenarios import Scenario

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "extender"
PRODUCTS = "licence.example.com/products"
NEEDS_CAD = {"licence.example.com/product": "cad"}
VERBS = {
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "preemptVerb": "preempt",
    "bindVerb": "bind",
    "weight": 5,
}
MANY = make_node("many", labels={PRODUCTS: "cad.render.mail"})
CAD = make_node("cad", labels={PRODUCTS: "cad"})
NONE = make_node("none")


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("example_extender", FOLDER / "extender.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def serve(example: Any) -> Iterator[Callable[..., int]]:
    """Starts the example on a free port, any number of times."""
    servers = []

    def start(**options: Any) -> int:
        server = example.make_server(**options)
        server.daemon_threads = True
        servers.append(server)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port: int = server.server_port
        return port

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def make_bench(*objects: Any, url: str, **config: Any) -> Scenario:
    return Scenario(*objects, extenders=[{"urlPrefix": url, **VERBS, **config}])


def test_all_verbs_over_http(serve: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    bench = make_bench(MANY, CAD, NONE, url=f"http://127.0.0.1:{serve()}/")
    bench.add(make_pod("plain"), make_pod("drawing", annotations=NEEDS_CAD))

    placed = {attempt.pod.name: attempt.node_name for attempt in bench.run()}

    assert placed == {"plain": "none", "drawing": "cad"}, "the node with the fewest licences"
    assert "bound default/drawing to cad" in capsys.readouterr().out


def test_no_licence_is_no_reason_to_preempt(serve: Callable[..., int]) -> None:
    bench = make_bench(CAD, NONE, url=f"http://127.0.0.1:{serve()}")
    music = {"licence.example.com/product": "music"}
    bench.add(make_pod("low", node_name="none"))
    bench.add(make_pod("song", priority=9, annotations=music))

    (attempt, *_) = bench.run()

    assert attempt.fit_error == "0/2 nodes are available: 2 node(s) had no licence for music."
    assert attempt.message.endswith("2 Preemption is not helpful for scheduling.")
    assert attempt.outcome is Outcome.UNSCHEDULABLE
    assert "Extender" in attempt.unschedulable_plugins


def test_protected_pods_are_not_preempted(serve: Callable[..., int]) -> None:
    bench = make_bench(CAD, NONE, url=f"http://127.0.0.1:{serve()}", bindVerb="")
    keep = {"licence.example.com/keep": "please"}
    bench.add(
        make_pod("kept", node_name="cad", cpu="4", priority=1, annotations=keep),
        make_pod("dear", node_name="none", cpu="4", priority=5),
    )

    bench.add(make_pod("high", cpu="4", priority=9))

    assert bench.run()[0].nominated_node_name == "none", "though its pod is worth more"
    assert bench.pod("kept").node_name == "cad"


@pytest.mark.parametrize("trusting", [True, False])
def test_https(serve: Callable[..., int], tmp_path: Path, trusting: bool) -> None:
    made = make_certificate()
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(made.cert)
    key.write_bytes(made.key)
    port = serve(cert=str(cert), key=str(key))
    tls = {} if trusting else {"tlsConfig": {"caFile": str(cert)}}

    bench = make_bench(MANY, CAD, url=f"https://127.0.0.1:{port}", enableHTTPS=True, **tls)
    bench.add(make_pod("p", annotations=NEEDS_CAD))

    assert [attempt.node_name for attempt in bench.run()] == ["cad"]


def test_the_scheduler_continues_without_the_server_and_uses_it_when_it_is_back(
    serve: Callable[..., int], example: Any
) -> None:
    gone = example.make_server()
    port = gone.server_port
    gone.server_close()
    bench = make_bench(MANY, url=f"http://127.0.0.1:{port}", httpTimeout="5s", bindVerb="")
    bench.add(make_pod("p"))

    (attempt,) = bench.run()
    assert attempt.outcome is Outcome.ERROR
    assert attempt.message == f'Post "http://127.0.0.1:{port}/filter": Connection refused'
    assert bench.events_of("p")[-1].note == attempt.message

    serve(port=port)
    assert [attempt.node_name for attempt in bench.settle()] == ["many"]


def test_an_unknown_verb(serve: Callable[..., int]) -> None:
    url = f"http://127.0.0.1:{serve()}"
    bench = make_bench(MANY, url=url, filterVerb="sieve")
    bench.add(make_pod("p"))

    (attempt,) = bench.run()

    assert attempt.message == f"failed sieve with extender at URL {url}/sieve, code 404"


def test_simulate_with_the_files_of_the_folder(serve: Callable[..., int], tmp_path: Path) -> None:
    config = yaml.safe_load((FOLDER / "config.yaml").read_text())
    (extender,) = config["extenders"]
    extender["urlPrefix"] = f"http://127.0.0.1:{serve()}"
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))

    result = CliRunner().invoke(
        app,
        ["simulate", "--config", str(file), "-f", str(FOLDER / "cluster.yaml"), "-o", "json"],
    )

    assert result.exit_code == 1, "one pod has no licence anywhere"
    pods = {pod["name"]: pod for pod in json.loads(result.stdout)["pods"]}
    placed = {name: pod.get("node") for name, pod in pods.items()}
    assert placed == {"drawing": "many", "film": "render-only", "web": "none", "song": None}
    assert "3 node(s) had no licence for music" in json.dumps(pods["song"])


def test_the_explanation_shows_the_scores_of_the_extender(
    serve: Callable[..., int], tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{serve()}"
    config = yaml.safe_load((FOLDER / "config.yaml").read_text())
    config["extenders"][0]["urlPrefix"] = url
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))

    result = CliRunner().invoke(
        app, ["simulate", "--config", str(file), "-f", str(FOLDER / "cluster.yaml"), "--explain"]
    )

    assert result.exit_code == 1
    assert url in result.stdout
