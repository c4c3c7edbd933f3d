"""Config options: the options that name a scheduler's configuration, and its reading."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...choices import PROVIDER_NAMES
from ...errors import ConfigError, InputError
from ..render.consoles import note
from .option_groups import completing, option, option_group

if TYPE_CHECKING:
    from ...config.internal_form import Reading
    from ...config.load import Check
    from ...releases.feature_gates import FeatureGates
    from ...shadow.evidence import EvidenceFolder
    from ...sim.settings import Settings

STDIN = Path("-")


CONFIG = option("--config FILE", "A KubeSchedulerConfiguration or Policy file of any version.")
FEATURE_GATES = option(
    "--feature-gates A=true,B=false", "Feature gates to switch on or off.", default=""
)
KUBERNETES_VERSION = option(
    "--kubernetes-version 1.36",
    "The release whose decisions are taken, 1.33 to 1.37. Default: that of the cluster, else 1.36.",
    default="",
)
PLUGIN_FILES = option(
    "--plugins FILE",
    "Python file, or module, with plugins of your own. May be given several times.",
)
PROVIDER = option(
    "--algorithm-provider NAME",
    f"Instead of a file, an algorithm provider of v1.20: {' or '.join(PROVIDER_NAMES)}.",
    autocompletion=completing(PROVIDER_NAMES),
)
SEED = option("--seed NUMBER", "Seed for breaking ties between nodes with equal scores.")


@option_group
class SchedulerChoice:
    """The options that name a scheduler, for groups of options that have them."""

    config: Path | None = CONFIG
    kubernetes_version: str = KUBERNETES_VERSION
    feature_gates: str = FEATURE_GATES
    plugins: list[Path] | None = PLUGIN_FILES
    seed: int | None = SEED

    def settings(self, version: str = "", provider: str | None = None) -> Settings:
        """The scheduler; of `version` if the options name no release."""
        version = self.kubernetes_version or version
        given = self.config, provider, self.feature_gates, self.plugins, self.seed
        return read_settings(*given, version)


@option_group
class EvidenceChoice:
    """The options of commands that judge decisions."""

    evidence: Path | None = option(
        "--evidence FOLDER",
        "Write the objects of each difference to a file here, for `bayplan explain -f`; at most 50 files.",
    )
    evidence_sampled: bool = option(
        "--evidence-sampled", "Write the objects of sampled decisions, too; at most 50 files more."
    )

    def check(self) -> None:
        """Raise InputError for an option without that which it belongs to."""
        if self.evidence_sampled and self.evidence is None:
            raise InputError("--evidence-sampled: expected --evidence FOLDER with it; got none")

    def folder(self, settings: Settings, version: str) -> EvidenceFolder | None:
        """The folder for evidence of a cluster of this version; None if none is given."""
        from ...shadow.evidence import EvidenceFolder

        if self.evidence is None:
            return None
        return EvidenceFolder(self.evidence, settings, version, takes_sampled=self.evidence_sampled)


def read_settings(
    config: Path | None,
    algorithm_provider: str | None,
    feature_gates: str,
    plugins: Sequence[Path] | None,
    seed: int | None,
    kubernetes_version: str = "",
) -> Settings:
    """The scheduler that the options describe."""
    from ...sim.settings import Settings

    gates = read_gates(feature_gates, kubernetes_version)
    reading = read_configuration(config, algorithm_provider, gates)
    return Settings(reading.config, gates, tuple(str(path) for path in plugins or ()), seed)


def read_gates(feature_gates: str, kubernetes_version: str = "") -> FeatureGates:
    """The feature gates, and with them the release; a release that is not known is a warning."""
    from ...config.gates import parse_feature_gates
    from ...config.releases import choose_release, release_warning

    release = choose_release(kubernetes_version)
    warn_once(release_warning(kubernetes_version))
    return parse_feature_gates(feature_gates, release=release)


@functools.cache
def warn_once(text: str) -> None:
    """Print a warning, if there is one, on standard error."""
    if text:
        note(text, "warning", "yellow")


def read_configuration(
    config: Path | None,
    provider: str | None,
    gates: FeatureGates,
    check: Check | None = None,
) -> Reading:
    """The configuration in a file, of a provider or, with neither, the default.

    `check` finds further faults of a file.
    """
    from ...config.defaults import default_config
    from ...config.files import API_VERSION as CURRENT_VERSION
    from ...config.internal_form import Reading, gate_notes
    from ...config.legacy.policy import provider_reading

    if config is not None and provider is not None:
        raise ConfigError("expected a file or --algorithm-provider; got both")
    if provider is not None:
        return provider_reading(provider, gates)
    if config is not None:
        return read_file(config, gates, check)
    return Reading(default_config(gates), CURRENT_VERSION, notes=gate_notes(gates))


def read_file(path: Path, gates: FeatureGates, check: Check | None = None) -> Reading:
    """The configuration in a file, or on standard input for `-`."""
    from ...config.load import load_reading, no_check, parse_reading

    check = check or no_check
    if path == STDIN:
        return parse_reading(_standard_input(), source_name(path), gates, check)
    return load_reading(path, gates, check)


def read_bytes(path: Path) -> bytes:
    """The content of a file, or of standard input for `-`."""
    return _standard_input() if path == STDIN else path.read_bytes()


@functools.cache
def _standard_input() -> bytes:
    """All of it; it can be read once, and a configuration is read again when the release of the cluster is known."""
    from ...manifests.input_bytes import open_input

    with open_input(STDIN) as stream:
        return stream.read()


def source_name(path: Path) -> str:
    """The file's name in messages."""
    return "standard input" if path == STDIN else str(path)
