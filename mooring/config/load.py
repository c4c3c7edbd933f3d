"""Load: a configuration file to a SchedulerConfiguration.

Mirrors cmd/kube-scheduler/app/options/configfile.go. Reading is strict, and everything that is
wrong is said at once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..errors import ConfigError
from . import v1
from .defaults import default_config
from .problems import ProblemKind, Problems, one_of
from .text import parse_text
from .types import SchedulerConfiguration

T = TypeVar("T")
Reader = Callable[[dict[str, Any], Problems], SchedulerConfiguration]

# Who reads which format, by kind and apiVersion. Older formats are added here.
READERS: dict[str, dict[str, Reader]] = {v1.KIND: {v1.API_VERSION: v1.read_v1}}


def load_config(path: str | Path) -> SchedulerConfiguration:
    """Returns the configuration in the file at `path`; raises ConfigError if it is wrong."""
    source = str(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{source}: expected a readable file; got {error.strerror}") from error
    return parse_config(text, source)


def parse_config(
    data: dict[str, Any] | bytes | str | None, source: str = "scheduler.yaml"
) -> SchedulerConfiguration:
    """Returns the configuration in `data`: YAML or JSON text, the mapping it holds, or None for
    the default configuration.

    Raises ConfigError with one line for everything that is wrong, each beginning with `source`.
    """
    if data is None:
        return default_config()
    problems = Problems()
    tree = parse_text(data, problems) if isinstance(data, bytes | str) else data
    config = None if tree is None and problems else _read(tree, problems)
    if problems or config is None:
        raise ConfigError("\n".join(f"{source}: {problem}" for problem in problems))
    return config


def _read(tree: Any, problems: Problems) -> SchedulerConfiguration | None:
    """Returns the configuration in `tree`, read the way its kind and apiVersion say."""
    tree = {} if tree is None else tree
    if not isinstance(tree, dict):
        problems.add("", "a mapping", tree, ProblemKind.SYNTAX)
        return None
    versions = _choice(READERS, tree.get("kind"), "kind", problems)
    if versions is None:
        return None
    reader = _choice(versions, tree.get("apiVersion"), "apiVersion", problems)
    return None if reader is None else reader(tree, problems)


def _choice(choices: dict[str, T], name: Any, field: str, problems: Problems) -> T | None:
    """Returns the choice with this name, None with a problem noted if there is none."""
    choice = choices.get(name) if isinstance(name, str) else None
    if choice is None:
        problems.add(field, one_of(tuple(choices)), name, ProblemKind.VERSION)
    return choice
