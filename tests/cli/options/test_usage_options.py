"""The use for a live page: files are read once, the cluster is read each time."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bayplan.cli.options.cluster_options import page_use
from bayplan.errors import InputError
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from bayplan.web.live import UseByPod
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

Found = TypeVar("Found")
OF_FILE = {("default", "old"): {"cpu": 420}, ("default", "p"): {"cpu": 7}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The measured use of two pods."""
    path = tmp_path / "use.csv"
    path.write_text("namespace,pod,cpu\ndefault,old,420m\ndefault,p,7m\n")
    return path


def run_pod(api: ServerInThread, name: str, cpu: str) -> None:
    """Have a pod run; the server gives its request as its use."""
    api.make(PODS, pod_tree(name, cpu, nodeName="n0"))
    api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})


def with_connection(kubeconfig: Path, work: Callable[[Connection], Awaitable[Found]]) -> Found:
    """The result of `work` with a connection to the server."""

    async def go() -> Found:
        connection = Connection(await load_credentials(kubeconfig))
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(go())


async def read_once(usage: list[str], connection: Connection | None = None) -> UseByPod:
    read = page_use(usage, connection)
    assert read is not None
    return await read()


def cpu_of(use: UseByPod) -> dict[str, int]:
    return {name: units["cpu"] for (_, name), units in use.items()}


def test_without_an_option_no_use_is_shown() -> None:
    assert page_use([]) is None


def test_the_use_of_files_needs_no_connection(file: Path) -> None:
    assert asyncio.run(read_once([str(file)])) == OF_FILE


def test_files_are_read_before_the_page_asks(file: Path) -> None:
    async def read_later() -> UseByPod:
        read = page_use([str(file)])
        file.unlink()
        assert read is not None
        return await read()

    assert asyncio.run(read_later()) == OF_FILE


def test_a_wrong_file_is_named_before_the_page_opens(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("name,cpu\np,1\n")

    with pytest.raises(InputError, match=r"wrong\.csv: expected a PodMetricsList"):
        page_use([str(wrong)])


@pytest.mark.parametrize("with_file", [False, True], ids=["live alone", "live and a file"])
def test_the_use_of_the_cluster_needs_a_connection(with_file: bool, file: Path) -> None:
    usage = ["live", str(file)] if with_file else ["live"]

    with pytest.raises(InputError, match="--usage: expected a file; got live: nothing runs here"):
        page_use(usage)


def test_a_cluster_that_is_not_asked_for_is_not_asked(
    file: Path, api: ServerInThread, kubeconfig: Path
) -> None:
    api.make("/api/v1/nodes", node_tree("n0"))
    run_pod(api, "p", "1")

    use = with_connection(kubeconfig, lambda connection: read_once([str(file)], connection))

    assert use == OF_FILE


def test_the_use_of_the_cluster_goes_before_that_of_a_file(
    file: Path, api: ServerInThread, kubeconfig: Path
) -> None:
    api.make("/api/v1/nodes", node_tree("n0"))
    run_pod(api, "p", "1")

    use = with_connection(kubeconfig, lambda connection: read_once([str(file), "live"], connection))

    assert cpu_of(use) == {"old": 420, "p": 1000}


def test_the_use_of_the_cluster_is_read_each_time(api: ServerInThread, kubeconfig: Path) -> None:
    api.make("/api/v1/nodes", node_tree("n0"))
    run_pod(api, "p", "1")

    async def read_twice(connection: Connection) -> list[UseByPod]:
        read = page_use(["live"], connection)
        assert read is not None
        first = await read()
        await asyncio.to_thread(run_pod, api, "q", "2")
        return [first, await read()]

    first, second = with_connection(kubeconfig, read_twice)

    assert cpu_of(first) == {"p": 1000}
    assert cpu_of(second) == {"p": 1000, "q": 2000}


def test_a_cluster_that_has_measured_nothing_is_an_input_error(
    api: ServerInThread, kubeconfig: Path
) -> None:
    with pytest.raises(InputError, match="got no pods: it may have measured none yet"):
        with_connection(kubeconfig, lambda connection: read_once(["live"], connection))
