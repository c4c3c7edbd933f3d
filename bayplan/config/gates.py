"""Gates: the --feature-gates flag.

Mirrors Set of staging/src/k8s.io/component-base/featuregate/feature_gate.go; the gates are in
`framework/feature_gates.py`.
"""

from collections.abc import Mapping

from ..errors import ConfigError
from ..framework.feature_gates import CURRENT_VERSION, GATES, FeatureGates
from ..framework.release import DEFAULT_RELEASE, Release

GateSettings = Mapping[str, bool]
"""The gates that are set: read already, or by name."""

DEFAULT_POD_TOPOLOGY_SPREAD = "DefaultPodTopologySpread"
DYNAMIC_RESOURCE_ALLOCATION = "DynamicResourceAllocation"
GANG_SCHEDULING = "GangScheduling"
NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
TOPOLOGY_AWARE_WORKLOAD_SCHEDULING = "TopologyAwareWorkloadScheduling"

_TRUTH = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_feature_gates(
    text: str,
    source: str = "--feature-gates",
    version: str = "",
    release: Release = DEFAULT_RELEASE,
) -> FeatureGates:
    """Returns the gates of `release` with those set by `A=true,B=false`; `version` is the emulated one.

    Raises ConfigError with a line for each mistake.
    """
    settings: dict[str, bool] = {}
    faults: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if value in _TRUTH:
            settings[name] = _TRUTH[value]
        else:
            got = f'"{value}"' if equals else "nothing"
            faults.append(f"{source}: {name}: expected true or false; got {got}")
    try:
        gates = FeatureGates(settings, release=release, version=version, source=source)
    except ConfigError as error:
        faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return gates


__all__ = [
    "CURRENT_VERSION",
    "DEFAULT_POD_TOPOLOGY_SPREAD",
    "DYNAMIC_RESOURCE_ALLOCATION",
    "GANG_SCHEDULING",
    "GATES",
    "NODE_DECLARED_FEATURES",
    "TOPOLOGY_AWARE_WORKLOAD_SCHEDULING",
    "FeatureGates",
    "GateSettings",
    "parse_feature_gates",
]
