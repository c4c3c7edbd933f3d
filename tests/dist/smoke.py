"""Smoke: install the wheel in an empty environment and use it as a new user would."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 120
INSTALL_TIMEOUT_S = 900
EXTRA_MODULES = (
    "aiohttp",
    "cryptography",
    "httptools",
    "re2",
    "cel_expr_python",
    "pandas",
    "matplotlib",
)
NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "KUBECONFIG")

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: large, labels: {disk: hdd}}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: small, labels: {disk: ssd}}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
"""
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: "web:1", resources: {requests: {cpu: 500m, memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: main, image: "huge:1", resources: {requests: {cpu: "16"}}}]}
"""
PLUGIN = """
from bayplan.framework import NODE_OBJECT, FilterPlugin, Verdict


class OnlySsd(FilterPlugin):
    name = "OnlySsd"
    scope = NODE_OBJECT

    def filter_rows(self, state, pod, table, rows):
        verdict = Verdict.accept(table, rows)
        verdict.reject(~table.labels.equal("disk", "ssd", rows), "node(s) without ssd")
        return verdict
"""
FILES = ("-f", "cluster.yaml", "-f", "pods.yaml")
POD_TO_BIND = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "web:1"}]},
}


class SmokeError(Exception):
    """A command failed; the message has the command, the expectation and the result."""


def expect(where: str, found: object, expected: object) -> None:
    if found != expected:
        raise SmokeError(f"{where}: expected {expected!r}; got {found!r}")


class Environment:
    """A virtual environment and a folder to work in, outside of the source."""

    def __init__(self, bin_folder: Path, work: Path) -> None:
        self.bin_folder = bin_folder
        self.work = work
        kept = {
            key: value
            for key, value in os.environ.items()
            if key not in NOT_INHERITED and not key.startswith("BAYPLAN_")
        }
        self.variables = {**kept, "HOME": str(work), "NO_COLOR": "1", "PYTHONNOUSERSITE": "1"}
        for name, text in (("cluster", CLUSTER), ("pods", PODS)):
            (work / f"{name}.yaml").write_text(text)
        (work / "only_ssd.py").write_text(PLUGIN)

    @classmethod
    def make(cls, folder: Path, work: Path) -> Environment:
        """A new environment with nothing but pip in it."""
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        return cls(folder / "bin", work)

    def install(self, requirement: str, lock: Path) -> None:
        """Installs the packages of a lock, then the requirement, whose dependencies must be among them."""
        self.pip("--require-hashes", "--no-deps", "-r", str(lock))
        self.pip("--no-index", requirement)

    def pip(self, *arguments: str) -> None:
        pip = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        self.run("python", *pip, *arguments, timeout_s=INSTALL_TIMEOUT_S)

    def run(
        self, *command: str, exit_code: int = 0, timeout_s: float = TIMEOUT_S
    ) -> tuple[str, str]:
        """Standard output and standard error of a command of the environment."""
        try:
            done = subprocess.run(
                self.words(command),
                cwd=self.work,
                env=self.variables,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise SmokeError(f"{' '.join(command)}: {problem}") from None
        if done.returncode != exit_code:
            raise SmokeError(
                f"{' '.join(command)}: expected exit code {exit_code}; got {done.returncode}\n"
                f"{done.stdout}{done.stderr}"
            )
        return done.stdout, done.stderr

    def words(self, command: Sequence[str]) -> list[str]:
        return [str(self.bin_folder / command[0]), *command[1:]]

    @contextmanager
    def start(self, *command: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs in the background; killed at the end if it is still there."""
        errors = self.work / "stderr.txt"
        with errors.open("w") as file:
            process = subprocess.Popen(
                self.words(command),
                cwd=self.work,
                env=self.variables,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        try:
            yield process
        except (SmokeError, OSError, subprocess.TimeoutExpired) as problem:
            raise SmokeError(f"{problem}\n{errors.read_text()}") from None
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def check_kernel(environment: Environment, version: str, kernel: str) -> None:
    """The version and the kernel in use, as the command prints them and as the package has them; one simulation."""
    out, _ = environment.run("bayplan", "--version")
    expect("bayplan --version", out, f"bayplan {version} (kernel: {kernel})\n")
    out, _ = environment.run(
        "python", "-c", "import bayplan.amounts; print(bayplan.amounts.KERNEL)"
    )
    expect("bayplan.amounts.KERNEL", out, f"{kernel}\n")
    expect("bayplan simulate", simulated(environment), {"web": "large", "huge": None})


def check_without_extras(
    environment: Environment, scripts: Sequence[str], version: str, kernel: str
) -> None:
    """The commands that need no extra; `kernel` is the one that the wheel should bring."""
    check_location(environment)
    for script in scripts:
        environment.run(script, "--help")
    check_kernel(environment, version, kernel)
    with_plugin = simulated(environment, "--plugins", "only_ssd.py")
    expect("bayplan simulate --plugins only_ssd.py", with_plugin, {"web": "small", "huge": None})
    check_explain(environment)
    check_page(environment)
    _, err = environment.run("bayplan", "up", exit_code=2)
    if "pip install 'bayplan[kube]'" not in err:
        raise SmokeError(f"bayplan up: expected a hint to install bayplan[kube]; got {err!r}")


def check_location(environment: Environment) -> None:
    """The package is the installed one, and no extra came with it."""
    probe = (
        "import bayplan, importlib.util, json; "
        f"found = [m for m in {EXTRA_MODULES!r} if importlib.util.find_spec(m)]; "
        "print(json.dumps([bayplan.__file__, found]))"
    )
    file, extras = json.loads(environment.run("python", "-c", probe)[0])
    if not Path(file).is_relative_to(environment.bin_folder.parent):
        raise SmokeError(f"import bayplan: expected the installed package; got {file}")
    expect("modules of extras that were not asked for", extras, [])


def simulated(environment: Environment, *options: str) -> dict[str, str | None]:
    """The node of each pod. One pod stays pending, so the command ends with 1."""
    out, _ = environment.run("bayplan", "simulate", *FILES, *options, "-o", "json", exit_code=1)
    return {pod["name"]: pod["node"] for pod in json.loads(out)["pods"]}


def check_explain(environment: Environment) -> None:
    command = ("bayplan", "explain", "pod/huge", *FILES)
    tree = json.loads(environment.run(*command, "-o", "json", exit_code=1)[0])
    expect("bayplan explain pod/huge: verdict", tree["verdict"], "unschedulable")
    out, _ = environment.run(*command, exit_code=1)
    if "Insufficient cpu" not in out:
        raise SmokeError(f'bayplan explain pod/huge: expected "Insufficient cpu"; got {out!r}')


def check_page(environment: Environment) -> None:
    environment.run("bayplan", "simulate", *FILES, "--html", "page.html", exit_code=1)
    text = (environment.work / "page.html").read_text()
    for part in ("<script", "<style", "huge"):
        if part not in text:
            raise SmokeError(f"bayplan simulate --html page.html: expected {part!r} in the page")


def check_up(environment: Environment) -> None:
    """`bayplan up` takes a pod over plain HTTP, binds it, and ends on a signal."""
    with environment.start("bayplan", "up", "--http", "--kubeconfig", "kubeconfig") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("export KUBECONFIG="):
            raise SmokeError(f"bayplan up: expected a line that exports KUBECONFIG; got {line!r}")
        found = re.search(r"server: (\S+)", (environment.work / "kubeconfig").read_text())
        if found is None:
            raise SmokeError("bayplan up: kubeconfig: expected the address of a server")
        address = urlsplit(found[1]).netloc
        pods = "/api/v1/namespaces/default/pods"
        with request(address, "POST", pods, POD_TO_BIND) as response:
            expect(f"POST {pods}: status", response.status, 201)
        with request(address, "GET", f"{pods}?watch=true&timeoutSeconds=60") as response:
            if not any(json.loads(line)["object"]["spec"].get("nodeName") for line in response):
                raise SmokeError(f"GET {pods}?watch=true: expected the pod to be bound within 60 s")
        process.send_signal(signal.SIGTERM)
        expect("bayplan up: exit code after SIGTERM", process.wait(TIMEOUT_S), 0)


@contextmanager
def request(
    address: str, method: str, path: str, body: Any = None
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        yield connection.getresponse()
    finally:
        connection.close()
