"""Start-up: help, version and completion import none of the packages that only work needs."""

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan import __version__, compiled_kernel
from bayplan.amounts import KERNEL
from bayplan.cli import main
from bayplan.cli.command_table import COMMANDS

HEAVY = {
    "aiohttp",
    "asyncio",
    "bayplan.answers",
    "bayplan.config",
    "bayplan.plugins",
    "bayplan.scheduler",
    "bayplan.sim",
    "cryptography",
    "matplotlib",
    "msgspec",
    "numpy",
    "pandas",
    "rich",
    "yaml",
}
MAY_USE_ASYNCIO = {"doctor", "record", "run", "shadow", "up"}
COUNT = """
import atexit, sys
atexit.register(lambda: print("MODULES", *sys.modules))
from bayplan.cli.main import main
main()
"""


def imported(*arguments: str, **variables: str) -> tuple[set[str], str]:
    """The modules that the command imports, and its output."""
    command = [sys.executable, "-c", COUNT, *arguments]
    result = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True, timeout=60
    )
    printed, _, modules = result.stdout.rpartition("MODULES ")
    return set(modules.split()), printed


def complete(words: str, count: int) -> tuple[set[str], str]:
    """Imports and output of a completion of the last word."""
    return imported(_BAYPLAN_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(count))


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads that /proc shows")
def test_numpy_starts_no_threads_of_its_own_in_a_command(tmp_path: Path) -> None:
    counting = """
import sys
from bayplan.cli.main import main
try:
    main()
finally:
    print(sys.modules["numpy"].__name__, len(list(__import__("pathlib").Path("/proc/self/task").iterdir())))
"""
    pods = str(Path(__file__).resolve().parents[2] / "examples" / "capacity" / "api.yaml")
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", counting, "simulate", "-f", pods]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert result.stdout.splitlines()[-1] == "numpy 1"


def test_the_version_imports_nothing_heavy() -> None:
    modules, printed = imported("--version")

    assert printed == f"bayplan {__version__} (kernel: {KERNEL})\n"
    assert modules & (HEAVY | {"bayplan.amounts"}) == set()


def test_the_version_says_that_the_environment_asks_for_numpy() -> None:
    _, printed = imported("--version", BAYPLAN_KERNEL="numpy")

    assert printed == f"bayplan {__version__} (kernel: NumPy)\n"


@pytest.mark.parametrize(
    ("suffix", "kernel"),
    [
        pytest.param(EXTENSION_SUFFIXES[0], "compiled", id="for this Python"),
        pytest.param(".cpython-27-x86_64-linux-gnu.so", "NumPy", id="for another Python"),
        pytest.param(".pyx", "NumPy", id="the source alone"),
    ],
)
def test_the_version_finds_an_extension_module(
    suffix: str, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"_kernel{suffix}").touch()
    monkeypatch.setattr(compiled_kernel, "FOLDER", tmp_path)
    monkeypatch.delenv("BAYPLAN_KERNEL", raising=False)

    result = CliRunner().invoke(main.app, ["--version"])

    assert result.output == f"bayplan {__version__} (kernel: {kernel})\n"


@pytest.mark.parametrize(
    ("changed", "is_used"),
    [
        pytest.param("_kernel.pyx", False, id="the source changed"),
        pytest.param("_domains.pxi", False, id="a file that it includes changed"),
        pytest.param("kernel.py", True, id="another file changed"),
    ],
)
def test_an_extension_module_of_other_sources_is_not_used(
    changed: str, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_kernel.pyx", "_domains.pxi", "kernel.py"):
        (tmp_path / name).write_text(name)
    digest = compiled_kernel.source_digest(tmp_path)
    (tmp_path / changed).write_text("changed")
    (tmp_path / f"_kernel{EXTENSION_SUFFIXES[0]}").write_text(f"compiled from {digest}\0")
    monkeypatch.setattr(compiled_kernel, "FOLDER", tmp_path)
    monkeypatch.delenv("BAYPLAN_KERNEL", raising=False)

    result = CliRunner().invoke(main.app, ["--version"])

    assert ("make kernel" not in result.output) is is_used
    assert ("kernel: compiled" in result.output) is is_used


def test_a_stale_extension_module_is_named_in_a_warning() -> None:
    code = """
from bayplan import compiled_kernel
compiled_kernel.why_not_compiled = lambda: compiled_kernel.STALE
from bayplan.amounts import KERNEL
print(KERNEL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "NumPy\n"
    assert "RuntimeWarning: NumPy is used, which is slower: the compiled kernel" in done.stderr


def test_the_list_of_commands_imports_none_of_them() -> None:
    modules, printed = imported("--help")

    assert "Local cluster" in printed
    assert modules & HEAVY == set()
    commands = {f"bayplan.cli.{entry.module}" for entry in COMMANDS.values()}
    assert modules & commands == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy(name: str) -> None:
    modules, printed = imported(name, "--help")

    assert f"Usage: bayplan {name} " in printed
    allowed = {"asyncio"} if name in MAY_USE_ASYNCIO else set()
    assert modules & HEAVY == allowed
    others = {f"bayplan.cli.{e.module}" for word, e in COMMANDS.items() if word != name}
    shared = {"bayplan.cli.commands.record", "bayplan.cli.commands.replay"}
    assert modules & others <= shared  # record and shadow share options with them


CLUSTER = """{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
]}"""


def test_a_simulation_of_json_imports_no_yaml_no_asyncio_no_questions_no_packages_and_not_what_only_typer_needs(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(CLUSTER)

    modules, printed = imported("simulate", "-f", str(file), "-o", "wide")

    assert "1 of 1 pod placed" in printed
    unused = {"aiohttp", "asyncio", "bayplan.answers", "bayplan.policies", "importlib.metadata"}
    assert modules & (unused | {"pydantic", "yaml"}) == set()


@pytest.mark.parametrize(
    ("words", "count", "expected"),
    [
        pytest.param("bayplan sim", 1, "simulate", id="a command"),
        pytest.param("bayplan what-if dr", 2, "drain", id="a command of a group"),
        pytest.param("bayplan explain --nod", 2, "--node", id="an option"),
        pytest.param("bayplan simulate -o js", 3, "json", id="a choice"),
        pytest.param("bayplan rebalance --objective pa", 3, "pack", id="an objective"),
    ],
)
def test_a_completion_imports_nothing_heavy(words: str, count: int, expected: str) -> None:
    modules, printed = complete(words, count)

    assert printed.split() == [expected]
    assert modules & HEAVY == set()


def test_python_runs_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bayplan", "--version"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("bayplan ")


def test_a_word_that_is_no_command_is_answered_with_those_near_it() -> None:
    command = [sys.executable, "-m", "bayplan", "explian"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert result.returncode == 2
    assert "explain" in result.stderr
