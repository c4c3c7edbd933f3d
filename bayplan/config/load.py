"""Load: a configuration file to a SchedulerConfiguration.

Mirrors cmd/kube-scheduler/app/options/configfile.go. Reading is strict, and all problems are
reported at once.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from ..errors import ConfigError, one_of, os_errors_named
from ..releases.feature_gates import FeatureGates
from .decode import decode
from .defaults import default_config
from .files import KIND
from .gates import GateSettings
from .generations import GENERATIONS
from .internal_form import Reading, read_component
from .legacy.policy import API_VERSION as POLICY_VERSION
from .legacy.policy import CONFIG_MAP_KEY, CONFIG_MAP_KIND, ConfigMapFile, read_policy
from .legacy.policy import KIND as POLICY_KIND
from .problems import Literally, Problem, Problems
from .types import SchedulerConfiguration

T = TypeVar("T")
Reader = Callable[[dict[str, Any], Problems, FeatureGates], Reading | None]
Check = Callable[[SchedulerConfiguration], Iterable[str]]
"""Finds faults for which the plugins must be known."""


def no_check(config: SchedulerConfiguration) -> tuple[str, ...]:
    """A check that finds nothing."""
    return ()


def _component_reader(data: dict[str, Any], problems: Problems, gates: FeatureGates) -> Reading:
    generation = next(g for g in GENERATIONS if g.api_version == data["apiVersion"])
    return read_component(data, problems, generation, gates)


def _config_map_reader(
    data: dict[str, Any], problems: Problems, gates: FeatureGates
) -> Reading | None:
    """Return the configuration in the one entry of a ConfigMap that has one, or the policy under `policy.cfg`."""
    entries = decode(ConfigMapFile, data, "", problems).data
    keys = [key for key, text in entries.items() if isinstance(text, str) and KIND in text]
    if CONFIG_MAP_KEY in entries:
        keys = [CONFIG_MAP_KEY]
    if len(keys) != 1:
        expected = f"one entry with a {KIND}, or a {POLICY_KIND} under {CONFIG_MAP_KEY}"
        got = Literally(", ".join(keys or entries) or "none")
        problems.add("data", expected, got)
        return None
    key, found = keys[0], Problems()
    tree = _parsed(entries[key], found) if isinstance(entries[key], str) else entries[key]
    reading = None
    if not isinstance(tree, dict):
        if not found:
            found.add("", "a mapping", tree)
    elif key == CONFIG_MAP_KEY:
        reading = read_policy(tree, found, gates)
    else:
        reading = _read(tree, found, gates)
    for problem in found:
        where = f"data.{key}.{problem.path}" if problem.path else f"data.{key}"
        problems.append(Problem(where, problem.expected, problem.got))
    return reading


# Readers by kind and apiVersion.
READERS: dict[str, dict[str, Reader]] = {
    KIND: dict.fromkeys((generation.api_version for generation in GENERATIONS), _component_reader),
    POLICY_KIND: {POLICY_VERSION: read_policy},
    CONFIG_MAP_KIND: {POLICY_VERSION: _config_map_reader},
}


def load_config(
    path: str | Path, feature_gates: GateSettings | None = None
) -> SchedulerConfiguration:
    """Return the configuration in the file at `path`; raise ConfigError if it is invalid."""
    return load_reading(path, feature_gates).config


def load_reading(
    path: str | Path, feature_gates: GateSettings | None = None, check: Check = no_check
) -> Reading:
    """Return the configuration in the file at `path` with notes on settings without effect."""
    source = str(path)
    with os_errors_named(source, "a readable file", ConfigError):
        text = Path(path).read_bytes()
    return parse_reading(text, source, feature_gates, check)


def parse_config(
    data: dict[str, Any] | bytes | str | None,
    source: str = "scheduler.yaml",
    feature_gates: GateSettings | None = None,
) -> SchedulerConfiguration:
    """Return the configuration in `data`: YAML or JSON text, the mapping it holds, or None for the
    default configuration.

    Raises ConfigError with one line per problem, each beginning with `source`.
    """
    if data is None:
        return default_config(feature_gates)
    return parse_reading(data, source, feature_gates).config


def parse_reading(
    data: dict[str, Any] | bytes | str,
    source: str = "scheduler.yaml",
    feature_gates: GateSettings | None = None,
    check: Check = no_check,
) -> Reading:
    """Return the configuration in `data` with notes on settings without effect; see parse_config."""
    gates = FeatureGates.of(feature_gates)
    problems = Problems()
    tree = _parsed(data, problems) if isinstance(data, bytes | str) else data
    reading = None if tree is None and problems else _read(tree, problems, gates)
    faults = [str(problem) for problem in problems]
    if reading is not None:
        faults += check(reading.config)
    if faults or reading is None:
        raise ConfigError("\n".join(f"{source}: {fault}" for fault in faults))
    return reading


def _parsed(text: bytes | str, problems: Problems) -> Any:
    from .text import parse_text  # the default configuration needs no YAML

    return parse_text(text, problems)


def _read(tree: Any, problems: Problems, gates: FeatureGates) -> Reading | None:
    """Return the configuration in `tree`, read according to its kind and apiVersion."""
    tree = {} if tree is None else tree
    if not isinstance(tree, dict):
        problems.add("", "a mapping", tree)
        return None
    versions = _choice(READERS, tree.get("kind"), "kind", problems)
    if versions is None:
        return None
    reader = _choice(versions, tree.get("apiVersion"), "apiVersion", problems)
    return None if reader is None else reader(tree, problems, gates)


def _choice(choices: dict[str, T], name: Any, field: str, problems: Problems) -> T | None:
    """Returns the choice with this name, None with a problem noted if there is none."""
    choice = choices.get(name) if isinstance(name, str) else None
    if choice is None:
        problems.add(field, one_of(tuple(choices)), name)
    return choice
