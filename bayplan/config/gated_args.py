"""GatedArgs: arguments of plugins whose defaults, or whose presence, depend on feature gates.

Mirrors the gates in pkg/scheduler/apis/config/v1/defaults.go and ValidateDynamicResourcesArgs of
pkg/scheduler/apis/config/validation/validation_pluginargs.go.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from .gates import FeatureGates
from .plugin_args import Args, DynamicResourcesArgs, UtilizationShapePoint, VolumeBindingArgs
from .problems import Literally, ProblemKind, Problems

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
    for name, switches in _fields_switched_off(gates).items():
        if data.get(name) is not None:
            expected = f"nothing while feature gate {' or '.join(switches)} is off"
            problems.add(
                f"{path}.{name}",
                expected,
                Literally(str(data[name])),
                ProblemKind.FORBIDDEN,
                _UPSTREAM[name],
            )


_FIELDS = {"filterTimeout": "filter_timeout_s", "bindingTimeout": "binding_timeout_s"}
_UPSTREAM = {
    # kube-scheduler writes the name of the first gate like this.
    "filterTimeout": "DRASchedulingFilterTimeout feature gate is disabled",
    "bindingTimeout": f"{' or '.join(BINDING_GATES)} feature gate is disabled",
}


def _fields_switched_off(gates: FeatureGates) -> dict[str, tuple[str, ...]]:
    """The fields of DynamicResourcesArgs that cannot be set, with their gates."""
    found: dict[str, tuple[str, ...]] = {}
    if not gates.enabled(FILTER_TIMEOUT_GATE):
        found["filterTimeout"] = (FILTER_TIMEOUT_GATE,)
    if not all(map(gates.enabled, BINDING_GATES)):
        found["bindingTimeout"] = BINDING_GATES
    return found
