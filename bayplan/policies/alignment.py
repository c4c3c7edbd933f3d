"""NodeResourcesAlignment: the node on which the resources are free in the mix of the pod's requests.

A pod with much memory for its cpu leaves cpu behind that no pod can use once the memory is gone, unless it goes where
much memory is left. By this score nodes with different ratios of memory to cpu are used up in all resources. It
does not fill one node after the other: NodeResourcesFit with `MostAllocated` does that beside it.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from ..amounts import AlignmentRule, AmountRules, rule_points
from ..api.pod import Pod, PodSpec
from ..api.resources import CPU, MEMORY
from ..errors import InputError
from ..framework import NODE_ROW, CycleState, ScorePlugin
from ..table import Ints, NodeTable, Rows


class NodeResourcesAlignmentArgs(
    msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True
):
    """The resources that count."""

    resources: tuple[str, ...] = (CPU, MEMORY)

    def __post_init__(self) -> None:
        if len(set(self.resources)) < 2:
            raise InputError(
                f"args: resources: expected two names or more; got {list(self.resources)}"
            )


class NodeResourcesAlignment(ScorePlugin):
    """The similarity of the two mixes: 100 for the same mix, 0 if the pod wants no free resource."""

    name = "NodeResourcesAlignment"
    scope = NODE_ROW

    args_type = NodeResourcesAlignmentArgs

    def __init__(self, args: NodeResourcesAlignmentArgs | None = None) -> None:
        self._resources = (args or NodeResourcesAlignmentArgs()).resources

    def spec_key(self, spec: PodSpec) -> Hashable:
        return tuple([spec.requests.get(resource, 0) for resource in self._resources])

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return rule_points(table, rows, self._rule(pod))

    def amount_rules(self, pod: Pod) -> AmountRules:
        return AmountRules(score=self._rule(pod))

    def _rule(self, pod: Pod) -> AlignmentRule:
        wanted = pod.requests
        return AlignmentRule(tuple([(name, wanted.get(name, 0)) for name in self._resources]))
