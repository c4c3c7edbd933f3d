"""Group builders: pod groups, their members, and a scheduler with the feature gates of pod groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bayplan.api.pod import Pod
from bayplan.api.pod_groups import PodGroup
from bayplan.testing.builders import make_node, make_object, make_pod

from .scenarios import Scenario

GROUP_GATES = {"GenericWorkload": True, "GangScheduling": True}
PLACEMENT_GATES = {**GROUP_GATES, "TopologyAwareWorkloadScheduling": True}
ALL_GROUP_GATES = {**PLACEMENT_GATES, "WorkloadAwarePreemption": True}
TWO_ZONES = [make_node("a", zone="one", cpu="4"), make_node("b", zone="two", cpu="4")]


def make_pod_group(
    name: str = "g",
    min_count: int | None = None,
    *,
    topology: Iterable[str] = (),
    claims: Mapping[str, str] | None = None,
    templates: Mapping[str, str] | None = None,
    **fields: Any,
) -> PodGroup:
    """A gang of `min_count` pods, or a group without a gang; on nodes with one value of each `topology` key.

    `claims` and `templates` are the claims that its pods share: by entry, the name of the claim or of its template.
    """
    spec: dict[str, Any] = {
        "schedulingPolicy": {"basic": {}}
        if min_count is None
        else {"gang": {"minCount": min_count}},
        "resourceClaims": [
            *({"name": n, "resourceClaimName": c} for n, c in (claims or {}).items()),
            *({"name": n, "resourceClaimTemplateName": t} for n, t in (templates or {}).items()),
        ],
        **fields.pop("spec", {}),
    }
    keys = [{"key": key} for key in topology]
    if keys:
        spec["schedulingConstraints"] = {"topology": keys}
    metadata = {"uid": f"group/{name}", **fields.pop("metadata", {})}
    made = make_object(
        "PodGroup", name, namespace="default", metadata=metadata, spec=spec, **fields
    )
    assert isinstance(made, PodGroup)
    return made


def make_member(name: str, group: str = "g", **fields: Any) -> Pod:
    """A pod of the group."""
    spec = {**fields.pop("spec", {}), "schedulingGroup": {"podGroupName": group}}
    return make_pod(name, spec=spec, **fields)


def group_scenario(
    *objects: Any,
    gates: Mapping[str, bool] = GROUP_GATES,
    args: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Scenario:
    """A scheduler that schedules pod groups; `args` are the arguments of plugins, by name."""
    enabled = [{"name": "GangScheduling"}]
    if gates.get("TopologyAwareWorkloadScheduling"):
        enabled += [{"name": "TopologyPlacementGenerator"}, {"name": "PodGroupPodsCount"}]
    profile = {
        "plugins": {"multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": name, "args": given} for name, given in (args or {}).items()],
    }
    return Scenario(*objects, profile=profile, feature_gates=dict(gates), **options)
