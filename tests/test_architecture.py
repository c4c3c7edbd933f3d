"""Architecture: which folder may import which.

The table is that of the house rules: a folder may import the folders listed for it, the modules
open to all, and itself. Imports are read from the source; nothing is executed.
"""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "bayplan"

SHARED = {"choices", "errors", "clock", "observe", "releases", "stamped_cache", "yaml_tree"}
BELOW_SCHEDULER = {
    "api",
    "table",
    "framework",
    "config",
    "queue",
    "cache",
    "cluster",
    "plugins",
    "runtime",
    "amounts",
    "engine",
}
ALLOWED: dict[str, set[str]] = {
    "choices": set(),
    "errors": set(),
    "clock": set(),
    "observe": set(),
    "releases": set(),
    "stamped_cache": set(),
    "yaml_tree": set(),
    "compiled_kernel": set(),
    "api": set(),
    "table": {"api"},
    "amounts": {"api", "table", "compiled_kernel"},
    "framework": {"api", "table", "amounts"},
    "config": {"api"},
    "queue": {"api", "framework"},
    "cache": {"api", "framework", "table"},
    "cluster": {"api", "framework"},
    "apiserver": {"api", "framework", "cluster"},
    "kube": {"api", "framework", "cluster.objects"},
    "manifests": {"api", "config", "cluster.objects"},
    "plugins": {"api", "table", "framework", "config", "amounts"},
    "policies": {"api", "table", "framework", "config", "amounts"},
    "runtime": {"api", "table", "framework", "config", "amounts"},
    "engine": {"api", "table", "framework", "amounts", "runtime"},
    "scheduler": BELOW_SCHEDULER,
    "drivers": BELOW_SCHEDULER | {"scheduler", "kube"},
    "sim": {"scheduler", "config", "cluster", "manifests", "api", "amounts"},
    "answers": {
        "api",
        "table",
        "amounts",
        "framework",
        "config",
        "runtime",
        "scheduler",
        "cluster",
        "manifests",
        "sim",
        "trials",
    },
    "trials": {
        "api",
        "table",
        "framework",
        "config",
        "runtime",
        "scheduler",
        "cluster",
        "manifests",
        "sim",
    },
    "planning": {
        "api",
        "table",
        "config",
        "scheduler",
        "cluster",
        "manifests",
        "sim",
        "trials",
        "answers",
    },
    "autoscaling": {"api", "table", "config", "cluster", "manifests", "sim", "trials", "planning"},
    "sweeps": {"scheduler", "config", "cluster", "api", "manifests", "sim", "answers"},
    "shadow": {
        "api",
        "config",
        "framework",
        "scheduler",
        "cluster.objects",
        "kube",
        "manifests",
        "sim",
        "answers",
        "trials",
    },
    "doctor": {"api", "config", "framework", "scheduler", "kube", "sim"},
    "web": {"scheduler", "config", "cluster", "api", "answers", "trials"},
    "cli": {
        "compiled_kernel",
        "scheduler",
        "drivers",
        "config",
        "cluster",
        "apiserver",
        "kube",
        "api",
        "manifests",
        "sim",
        "web",
        "answers",
        "planning",
        "autoscaling",
        "sweeps",
        "shadow",
        "doctor",
        "trials",
    },
    "notebook": {
        "scheduler",
        "config",
        "kube",
        "api",
        "manifests",
        "sim",
        "answers",
        "planning",
        "autoscaling",
        "sweeps",
        "trials",
    },
    "gym": {
        "framework",
        "scheduler",
        "runtime",
        "engine",
        "table",
        "api",
        "manifests",
        "sim",
        "notebook",
    },
    "testing": {
        "api",
        "table",
        "amounts",
        "framework",
        "config",
        "cluster.memory",
        "cluster.objects",
    },
}

# Measures are functions of the table's columns, too. The checks of plugins include those of the registry.
EXCEPTIONS: dict[str, set[str]] = {
    "sim/measures/": {"table"},
    "testing/conformance/": {"runtime"},
}

IO_MODULES = {
    "aiohttp",
    "asyncio",
    "concurrent",
    "http",
    "io",
    "multiprocessing",
    "os",
    "pathlib",
    "select",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "urllib",
}
FORBIDDEN_OUTSIDE: dict[str, set[str]] = {
    "api": IO_MODULES | {"numpy", "time", "yaml"},
    "plugins": IO_MODULES | {"time"},
    "policies": IO_MODULES | {"time"},
    "scheduler": IO_MODULES,
}
# Imports that each part of cluster/ may have of the others.
CLUSTER_PARTS: dict[str, set[str]] = {"objects": set(), "memory": {"objects"}}
TABLE_WRITERS = {"table", "cache", "testing"}
# These may name every plugin: one maps names to classes, the other is the package's public
# interface.
UNREASONED = re.compile(r"except (Base)?Exception( as \w+)?:$|# type: ignore\[[\w,-]+\]$|except:")
"""A broad except or an ignored error of mypy without a comment beside it."""
MODULE = re.compile(r"`([\w/]+\.py)`")
PLUGIN_LISTS = {"plugins/in_tree.py", "plugins/__init__.py"}


@cache
def imported_modules(file: str, source: str) -> list[tuple[int, str]]:
    """Return (line, dotted name) of every import in `source`; relative ones are made absolute.

    `from a import b` gives `a.b`, since `b` may be a module.
    """
    package = ["bayplan", *Path(file).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module.split(".") if node.module else [])]
            found += [(node.lineno, ".".join([*module, alias.name])) for alias in node.names]
    return found


def violations(file: str, source: str) -> list[str]:
    """Return the import violations of `file`, a path below bayplan/."""
    room = Path(file).parts[0].removesuffix(".py")
    if room in {"__init__", "__main__"}:
        return []  # the package's public interface may import anything
    found = []
    for line, module in imported_modules(file, source):
        parts = module.split(".")
        if parts[0] == "bayplan":
            problem = inside_problem(file, room, parts[1:])
        else:
            problem = outside_problem(room, parts[0])
        if problem:
            found.append(f"bayplan/{file}:{line}: {problem}")
    return found


def outside_problem(room: str, package: str) -> str | None:
    """Return why `room` must not import the external `package`."""
    if package in FORBIDDEN_OUTSIDE.get(room, set()):
        return f"{room} must not import {package}"
    return None


def inside_problem(file: str, room: str, target: list[str]) -> str | None:
    """Return why `file` of `room` must not import bayplan.`target`."""
    dotted = ".".join(target)
    if target == ["__version__"]:
        return None
    if not target or target[0] not in ALLOWED:
        return f"{room} must not import the package's front (bayplan.{dotted})"
    if target[:2] == ["table", "writer"] and room not in TABLE_WRITERS:
        return f"{room} must not import table.writer; only cache writes the table"
    if target[0] == room:
        return own_room_problem(file, room, target)
    allowed = set(ALLOWED[room])
    for prefix, extra in EXCEPTIONS.items():
        if file.startswith(prefix):
            allowed |= extra
    if target[0] in SHARED | allowed or ".".join(target[:2]) in allowed:
        return None
    return f"{room} must not import {dotted}"


def own_room_problem(file: str, room: str, target: list[str]) -> str | None:
    """Return why a file must not import a sibling; only plugins and clusters are kept apart."""
    if room == "cluster":
        part, other = Path(file).parts[1], target[1]
        if other == part or part not in CLUSTER_PARTS or other in CLUSTER_PARTS[part]:
            return None
        return f"cluster/{part} must not import cluster/{other}"
    if room != "plugins" or file in PLUGIN_LISTS:
        return None
    depth = 3 if Path(file).parts[1] == "legacy" else 2
    unit = [part.removesuffix(".py") for part in Path(file).parts[1:depth]]
    if target[1:depth] == unit:
        return None
    return f"plugin {unit[-1]} must not import another plugin ({'.'.join(target)})"


def module_graph(package: Path) -> dict[str, set[str]]:
    """Return the modules of `package` with the modules of it that each imports, anywhere in its source.

    Imports for type checking and within functions count: they only defer a circle. The package's own
    `__init__` is left out; from below, only the version is imported from it.
    """
    files = {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }
    files.pop("__init__", None)
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        file = path.relative_to(package).as_posix()
        targets = set()
        for _, imported in imported_modules(file, path.read_text("utf-8")):
            inside = imported.removeprefix("bayplan.")
            # `from a import b`: b is a module, or a name in module a
            targets |= {target for target in (inside, inside.rpartition(".")[0]) if target in files}
            if inside in files:
                targets.discard(inside.rpartition(".")[0])
        graph[name] = targets - {name}
    return graph


def without_leaves(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the modules that import others of the result; empty if there is no circle."""
    rest = graph
    while True:
        inner = {name: targets & rest.keys() for name, targets in rest.items()}
        inner = {name: targets for name, targets in inner.items() if targets}
        if len(inner) == len(rest):
            return inner
        rest = inner


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return a circle through each module that is on one, each circle once, as a path back to its start."""
    graph = without_leaves(graph)
    found: dict[frozenset[str], list[str]] = {}
    for start in sorted(graph):
        paths = [[start]]
        reached: set[str] = set()
        for path in paths:  # breadth first, so the first way back is a shortest one
            if start in graph[path[-1]]:
                found.setdefault(frozenset(path), [*path, start])
                break
            paths += ([*path, target] for target in sorted(graph[path[-1]] - reached))
            reached |= graph[path[-1]]
    return list(found.values())


def sources_of(room: str) -> list[Path]:
    """Return the source files of a folder or module of the package, empty if it does not exist."""
    module = PACKAGE / f"{room}.py"
    return sorted((PACKAGE / room).rglob("*.py")) + ([module] if module.exists() else [])


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_follow_the_table(room: str) -> None:
    found = [
        problem
        for path in sources_of(room)
        for problem in violations(path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8"))
    ]

    assert found == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    found = [" -> ".join(circle) for circle in circles(module_graph(PACKAGE))]

    assert found == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("from .b import y", "from bayplan.x import a", id="imports at the top"),
        pytest.param(
            "from .b import y", "if TYPE_CHECKING:\n    from .a import z", id="for type checking"
        ),
        pytest.param("from . import b", "def f():\n    from .a import z", id="within a function"),
    ],
)
def test_circle_is_found(first: str, second: str, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for name, source in {"a": first, "b": second, "c": "from .a import b", "__init__": ""}.items():
        (tmp_path / "x" / f"{name}.py").write_text(source)

    assert circles(module_graph(tmp_path)) == [["x.a", "x.b", "x.a"]]


def test_every_room_is_in_the_table() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}

    assert rooms | modules <= set(ALLOWED)


def test_no_test_file_is_long() -> None:
    tests = PACKAGE.parent / "tests"
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in tests.rglob("*.py")}

    assert {path.as_posix(): count for path, count in lengths.items() if count > 500} == {}


def test_pods_and_nodes_of_tests_come_from_the_builders() -> None:
    tests = PACKAGE.parent / "tests"
    beside = re.compile(r"^\s*def (make_pod|make_node)\b", re.MULTILINE)

    assert [
        path.as_posix() for path in tests.rglob("*.py") if beside.search(path.read_text())
    ] == []


def test_broad_excepts_and_ignored_types_have_a_reason() -> None:
    without = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in PACKAGE.rglob("*.py")
        for number, (line, following) in enumerate(pairwise(path.read_text("utf-8").split("\n")), 1)
        if UNREASONED.search(line) and not following.strip().startswith("#")
    ]

    assert without == []


def test_every_folder_says_what_lives_there_and_names_modules_that_exist() -> None:
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("__init__.py")}
    docs = {path.parent: ast.get_docstring(ast.parse(text)) for path, text in sources.items()}
    named = [(at, name) for at, doc in docs.items() for name in MODULE.findall(doc or "")]

    assert [at for at, doc in docs.items() if not doc] == []
    assert [
        pair for pair in named if not any((at / pair[1]).exists() for at in (pair[0], PACKAGE))
    ] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        pytest.param("api/pod.py", "import numpy as np", id="api imports numpy"),
        pytest.param("api/pod.py", "from pathlib import Path", id="api imports I/O"),
        pytest.param("api/pod.py", "from ..table import NodeTable", id="api imports upwards"),
        pytest.param("table/labels.py", "from ..plugins import registry", id="table, a plugin"),
        pytest.param("config/load.py", "from .. import plugins", id="room named after the dots"),
        pytest.param("queue/heap.py", "import bayplan.cache", id="queue imports cache"),
        pytest.param("queue/heap.py", "from ..table import Rows", id="queue imports table"),
        pytest.param(
            "runtime/score_plugins.py",
            "def f():\n    from bayplan.plugins.node_name import NodeName",
            id="runtime imports a plugin inside a function",
        ),
        pytest.param(
            "plugins/node_name.py", "from .node_ports import NodePorts", id="plugin to plugin"
        ),
        pytest.param(
            "plugins/volume_binding/binder.py",
            "from ..volume_zone import VolumeZone",
            id="plugin folder to plugin",
        ),
        pytest.param("plugins/node_name.py", "from ..table.writer import Writer", id="writer"),
        pytest.param("plugins/node_name.py", "from ..table import writer", id="writer as name"),
        pytest.param("scheduler/cycle.py", "from ..table import writer", id="scheduler, writer"),
        pytest.param("plugins/node_name.py", "import time", id="plugin reads the wall clock"),
        pytest.param("plugins/node_name.py", "import threading", id="plugin starts threads"),
        pytest.param("plugins/node_name.py", "from ..engine import Engine", id="plugin, engine"),
        pytest.param("policies/fgd.py", "from ..plugins import NodeName", id="policy to plugin"),
        pytest.param("scheduler/build.py", "from ..policies import FGD", id="scheduler, policy"),
        pytest.param(
            "runtime/score_plugins.py", "from ..engine import Engine", id="runtime, engine"
        ),
        pytest.param("engine/engine.py", "from ..plugins import IN_TREE", id="engine, plugins"),
        pytest.param("amounts/rules.py", "from ..framework import Status", id="amounts, framework"),
        pytest.param("scheduler/cycle.py", "from ..cli.main import main", id="upwards to cli"),
        pytest.param("scheduler/cycle.py", "import asyncio", id="scheduler uses an event loop"),
        pytest.param("scheduler/build.py", "from ..drivers import core_thread", id="to drivers"),
        pytest.param("scheduler/cycle.py", "from ..testing import builders", id="testing"),
        pytest.param("testing/builders.py", "from ..kube import connection", id="kube"),
        pytest.param("cluster/memory/jobs.py", "from ...apiserver import server", id="apiserver"),
        pytest.param("cluster/objects/pod_life.py", "from ..memory import jobs", id="objects"),
        pytest.param("kube/sender.py", "from ..cluster.memory import jobs", id="kube, memory"),
        pytest.param("manifests/loader.py", "from ..sim import Simulation", id="manifests, sim"),
        pytest.param("planning/fleet.py", "from ..autoscaling import pool_use", id="planning"),
        pytest.param(
            "plugins/legacy/node_label.py",
            "from .selector_spread import SelectorSpread",
            id="legacy plugin to plugin",
        ),
        pytest.param("errors.py", "from .api.pod import Pod", id="errors imports a room"),
        pytest.param("sim/run.py", "from bayplan import Scheduler", id="the package's front"),
    ],
)
def test_forbidden_import_is_found(file: str, source: str) -> None:
    assert len(violations(file, source)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        pytest.param("api/pod.py", "import msgspec\nfrom .quantity import Quantity", id="itself"),
        pytest.param("config/load.py", "from ..errors import ConfigError", id="everyone's modules"),
        pytest.param("cache/cache.py", "from ..table.writer import Writer", id="cache writes"),
        pytest.param("plugins/volume_binding/plugin.py", "from .binder import Binder", id="own"),
        pytest.param("plugins/in_tree.py", "from .node_name import NodeName", id="registry"),
        pytest.param("testing/storage.py", "from ..cluster.memory import Store", id="memory"),
        pytest.param("engine/engine.py", "from ..runtime import ProfileRuntime", id="engine"),
        pytest.param("plugins/node_ports.py", "from ..amounts import FitRule", id="amounts"),
        pytest.param("cli/main.py", "from bayplan import __version__", id="version"),
    ],
)
def test_allowed_import_is_not_reported(file: str, source: str) -> None:
    assert violations(file, source) == []
