"""Autoscalers: HorizontalPodAutoscalers, which set the replicas of workloads.

Mirrors autoscaling/v2 of k8s.io/api. Metrics are left out: nothing here scales by them. A series in a Timeline may name
an autoscaler, and questions name the one that sets the number of pods.
"""

from typing import Any, ClassVar

from .meta import KubeObject, Wire


class AutoscalerSpec(Wire, frozen=True):
    """The workload of an autoscaler, and the limits of its replicas; checked where they are used."""

    scale_target_ref: Any = None
    min_replicas: Any = None
    max_replicas: Any = None


class HorizontalPodAutoscaler(KubeObject, frozen=True):
    """Sets the number of a workload's pods."""

    kind: ClassVar[str] = "HorizontalPodAutoscaler"
    api_version: ClassVar[str] = "autoscaling/v2"

    spec: AutoscalerSpec = AutoscalerSpec()
