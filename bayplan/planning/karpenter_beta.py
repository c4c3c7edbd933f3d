"""Karpenter beta: NodePools of karpenter.sh/v1beta1 in the form of v1, and the kinds before them.

Of what is read, v1 moved `expireAfter` to the template and renamed a consolidation policy; settings of the kubelet are
in the class of nodes since then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..config.problems import Literally, Problems
from .instance_types import InstanceTable
from .karpenter import (
    DEFAULT_EXPIRY,
    KARPENTER_V1,
    NamedValues,
    kubelet_note,
    read_karpenter_pool,
)
from .pool_documents import read_limit
from .pools import WHEN_UNDERUTILIZED, NodePool

KARPENTER_V1BETA1 = "karpenter.sh/v1beta1"
ALPHA_KINDS = ("Provisioner", "AWSNodeTemplate")
_POLICIES = {"WhenUnderutilized": WHEN_UNDERUTILIZED}


def read_beta_pool(
    tree: Mapping[str, Any],
    table: InstanceTable,
    named: NamedValues,
    place: str,
    problems: Problems,
) -> NodePool:
    """The pool of one document of v1beta1; problems are recorded with the paths of that version."""
    spec = _mapping(tree, "spec")
    disruption = dict(_mapping(spec, "disruption"))
    template = dict(_mapping(spec, "template"))
    node = dict(_mapping(template, "spec"))
    expiry = disruption.pop("expireAfter", DEFAULT_EXPIRY)
    if not isinstance(expiry, str) or read_limit(expiry, "", Problems()) is None:
        read_limit(str(expiry), "spec.disruption.expireAfter", problems)
    node["expireAfter"] = expiry if isinstance(expiry, str) and not problems else DEFAULT_EXPIRY
    policy = disruption.get("consolidationPolicy")
    if isinstance(policy, str):
        disruption["consolidationPolicy"] = _POLICIES.get(policy, policy)
    kubelet = node.pop("kubelet", None)
    as_v1 = {
        **tree,
        "apiVersion": KARPENTER_V1,
        "spec": {**spec, "disruption": disruption, "template": {**template, "spec": node}},
    }
    pool = read_karpenter_pool(as_v1, table, named, place, problems)
    note = kubelet_note(kubelet, "spec.template.spec.kubelet")
    return replace(pool, notes=(*pool.notes, note)) if note else pool


def refuse_alpha(version: str, kind: str, problems: Problems) -> None:
    """Record a kind that Karpenter had before its NodePools."""
    found = (
        f"{kind} of {version}, which Karpenter replaced in v0.32; convert it with karpenter-convert"
    )
    problems.add("kind", f"a NodePool of {KARPENTER_V1}", Literally(found))


def _mapping(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}
