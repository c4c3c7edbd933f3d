"""Gpus: shares of GPUs as a resource, and the requests of a pod for it.

A GPU is 1,000 of the resource `bayplan.dev/gpu-milli`. Below 1,000 a pod asks for a share of one GPU, otherwise for
whole ones. The label `bayplan.dev/gpu-model` of a node names the model of its GPUs.
"""

from __future__ import annotations

from .pod_spec import PodSpec

GPU_MILLI = "bayplan.dev/gpu-milli"
GPU_MODEL = "bayplan.dev/gpu-model"
GPU_INDEX = "bayplan.dev/gpu-index"
"""Annotation of a pod on a node: the numbers of its GPUs, as in "0" or "2-3"."""
WHOLE = 1000
"""Units of `GPU_MILLI` of one GPU."""


def is_share(milli: int) -> bool:
    """Whether the amount is a share of one GPU."""
    return 0 < milli < WHOLE


def gpu_count(milli: int) -> int:
    """The number of GPUs that an amount is spread over."""
    return 1 if is_share(milli) else milli // WHOLE


def is_valid(milli: int) -> bool:
    """Whether the amount is a share of one GPU or whole GPUs."""
    return milli < WHOLE or milli % WHOLE == 0


def models_of(spec: PodSpec) -> frozenset[str]:
    """The GPU models that the node selector or the required node affinity names; empty when any will do."""
    by_label = (spec.node_selector or {}).get(GPU_MODEL)
    if by_label is not None:
        return frozenset({by_label})
    selector = spec.required_node_selector
    models: set[str] = set()
    for term in selector.terms if selector is not None else ():
        named = [
            requirement.values or ()
            for requirement in term.expressions
            if requirement.key == GPU_MODEL and requirement.operator == "In"
        ]
        if not named:
            return frozenset()
        models.update(named[0])
    return frozenset(models)
