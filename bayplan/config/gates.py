"""Gates: the --feature-gates flag.

Mirrors Set of staging/src/k8s.io/component-base/featuregate/feature_gate.go; the gates are in
`releases/feature_gates.py`.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from ..errors import ConfigError
from ..releases.feature_gates import FeatureGates
from ..releases.release import DEFAULT_RELEASE, Release
from .plugin_args import Args, DynamicResourcesArgs, UtilizationShapePoint, VolumeBindingArgs
from .problems import Literally, Problems

# GatedArgs: arguments of plugins whose defaults, or whose presence, depend on feature gates.
# Mirrors the gates in pkg/scheduler/apis/config/v1/defaults.go and ValidateDynamicResourcesArgs of
# pkg/scheduler/apis/config/validation/validation_pluginargs.go.

BINDING_GATES = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
FILTER_TIMEOUT_GATE = "DRASchedulerFilterTimeout"
SCORING_GATE = "StorageCapacityScoring"
DEFAULT_SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


def apply_gates(args: Args, gates: FeatureGates) -> Args:
    """Returns `args` with the defaults that gates add, without the fields of gates that are off."""
    match args:
        case VolumeBindingArgs() if gates.enabled(SCORING_GATE):
            return structs.replace(args, shape=args.shape or DEFAULT_SHAPE)
        case DynamicResourcesArgs():
            unset = {_FIELDS[name]: None for name in _fields_switched_off(gates)}
            return structs.replace(args, **unset)
        case _:
            return args


def forbid_gated_fields(
    args: Args, data: Mapping[str, Any], path: str, problems: Problems, gates: FeatureGates
) -> None:
    """Record the fields of `data`, the arguments as written, whose gates are off."""
    if not isinstance(args, DynamicResourcesArgs):
        return
    missing = gates.release.missing_config_fields
    for name in missing & data.keys():
        refuse_field(f"{path}.{name}", gates, problems)
    for name, switches in _fields_switched_off(gates).items():
        if data.get(name) is not None and name not in missing:
            expected = f"nothing while feature gate {' or '.join(switches)} is off"
            got = Literally(str(data[name]))
            problems.add(f"{path}.{name}", expected, got)


def refuse_field(path: str, gates: FeatureGates, problems: Problems) -> None:
    """Record a field that the release does not have."""
    expected = f"a field of v{gates.release.version}"
    problems.add(path, expected, Literally("an unknown field"))


_FIELDS = {"filterTimeout": "filter_timeout_s", "bindingTimeout": "binding_timeout_s"}


def _fields_switched_off(gates: FeatureGates) -> dict[str, tuple[str, ...]]:
    """The fields of DynamicResourcesArgs that cannot be set, with their gates."""
    found: dict[str, tuple[str, ...]] = {}
    if not gates.enabled(FILTER_TIMEOUT_GATE):
        found["filterTimeout"] = (FILTER_TIMEOUT_GATE,)
    if not all(map(gates.enabled, BINDING_GATES)):
        found["bindingTimeout"] = BINDING_GATES
    return found


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
