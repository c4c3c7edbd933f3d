"""LargestNode: the amounts by which policies make cpu and GPUs comparable."""

from __future__ import annotations

import msgspec

from ..api.gpus import WHOLE
from ..errors import InputError
from .gpu_share import GpuPolicy


class LargestNode(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """The arguments of a policy: the capacity of the largest node; by default that of the openb trace."""

    milli_cpu: int = 128_000
    gpu_milli: int = 8 * WHOLE

    def __post_init__(self) -> None:
        for field, value in (("milliCpu", self.milli_cpu), ("gpuMilli", self.gpu_milli)):
            if value <= 0:
                raise InputError(f"args: {field}: expected a number above 0; got {value}")


class ComparingAmounts(GpuPolicy):
    """A policy with cpu and GPUs as parts of the largest node's capacity."""

    args_type = LargestNode

    def __init__(self, largest: LargestNode | None = None) -> None:
        self.largest = largest or LargestNode()
