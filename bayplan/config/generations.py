"""Generations: the versions of KubeSchedulerConfiguration, and their differences.

Mirrors pkg/scheduler/apis/config/{v1,v1beta3,v1beta2,v1beta1}/defaults.go. The defaults of an older
version are those of the release that introduced it, or, for v1beta1, of the last that had it.
"""

from collections.abc import Mapping

import msgspec

from ..releases.feature_gates import FeatureGates
from .defaults import DEFAULT_PLUGINS, default_plugins
from .files import (
    API_VERSION,
    GROUP,
    ConfigurationFile,
    ConfigurationV1,
    ConfigurationV1Beta1,
    ConfigurationV1Beta2,
)
from .gates import DEFAULT_POD_TOPOLOGY_SPREAD
from .legacy.older_plugins import (
    V1BETA1_PLUGINS,
    V1BETA2_PLUGINS,
    V1BETA3_PLUGINS,
    with_selector_spread,
)
from .plugin_args import ARGS_TYPES, LEGACY_ARGS_TYPES, Args
from .types import Plugins
from .validation import REMOVED_PLUGINS

_ALL_ARGS_TYPES = {**ARGS_TYPES, **LEGACY_ARGS_TYPES}
_SCORERS_OF_V1BETA1 = frozenset(
    {
        "NodeLabel",
        "NodePreferAvoidPods",
        "NodeResourcesLeastAllocated",
        "NodeResourcesMostAllocated",
        "RequestedToCapacityRatio",
        "ServiceAffinity",
    }
)


class Generation(msgspec.Struct, frozen=True):
    """One version of the format.

    `args_types` are the plugins whose arguments are typed. `removed` are the plugins of earlier
    versions that it rejects. In a generation that `replaces`, enabling a default plugin again
    changes it in its position; in the others it then occurs twice, which is an error.
    `guesses_defaulting` is of v1beta1: for PodTopologySpread, a list of constraints implies the use
    of that list.
    """

    name: str
    file: type[ConfigurationFile]
    plugins: Plugins
    args_types: Mapping[str, type[Args]]
    removed: frozenset[str] = frozenset()
    replaces: bool = True
    guesses_defaulting: bool = False

    @property
    def api_version(self) -> str:
        """The apiVersion of its files."""
        return f"{GROUP}/{self.name}"

    def default_plugins(self, gates: FeatureGates) -> Plugins:
        """Return the default plugins of this version."""
        if self.api_version != API_VERSION:
            spreads = gates.enabled(DEFAULT_POD_TOPOLOGY_SPREAD)
            return self.plugins if spreads else with_selector_spread(self.plugins)
        return default_plugins(gates)


V1 = Generation("v1", ConfigurationV1, DEFAULT_PLUGINS, _ALL_ARGS_TYPES, removed=REMOVED_PLUGINS)
V1BETA3 = Generation(
    "v1beta3", ConfigurationV1Beta2, V1BETA3_PLUGINS, _ALL_ARGS_TYPES, removed=_SCORERS_OF_V1BETA1
)
V1BETA2 = Generation(
    "v1beta2", ConfigurationV1Beta2, V1BETA2_PLUGINS, _ALL_ARGS_TYPES, removed=_SCORERS_OF_V1BETA1
)
V1BETA1 = Generation(
    "v1beta1",
    ConfigurationV1Beta1,
    V1BETA1_PLUGINS,
    _ALL_ARGS_TYPES,
    replaces=False,
    guesses_defaulting=True,
)
GENERATIONS = (V1, V1BETA3, V1BETA2, V1BETA1)
