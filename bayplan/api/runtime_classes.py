"""Runtime classes: RuntimeClass, which adds overhead and scheduling constraints to the pods that name it.

Mirrors RuntimeClass of k8s.io/api/node/v1.
"""

from typing import ClassVar

from .meta import KubeObject, Wire
from .taints import Toleration
from .text.quantity import Quantity


class RuntimeClassOverhead(Wire, frozen=True):
    """Resources that a pod of the class takes besides those of its containers."""

    pod_fixed: dict[str, Quantity] | None = None


class RuntimeClassScheduling(Wire, frozen=True):
    """Constraints that are merged into the pods of the class."""

    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClass(KubeObject, frozen=True):
    """A named configuration of the container runtime."""

    kind: ClassVar[str] = "RuntimeClass"
    api_version: ClassVar[str] = "node.k8s.io/v1"
    is_namespaced: ClassVar[bool] = False

    handler: str = ""
    overhead: RuntimeClassOverhead | None = None
    scheduling: RuntimeClassScheduling | None = None
