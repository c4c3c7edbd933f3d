"""Memory: a cluster in memory with the behaviour of API server and controllers.

Contents: the store with its watch, the API server's processing of new objects (admission), the controllers that
create pods of workloads, those that create and bind volumes, the one that creates resource claims, and the kubelets
that end pods. Imports: api, framework. Never: I/O, or waiting: every effect is complete when the call returns, or
when a given timer fires. Callers: sim, cli, testing; the scheduler uses it as its lister and client.
"""

from .absent_owners import (
    AbsentOwners,
    has_local_storage,
    is_bare,
    is_daemon,
    is_static,
    stays_with_node,
    successor_of,
)
from .admission import (
    Admission,
    AdmissionError,
    AdmissionRefusedError,
    admit_namespace,
    admit_storage,
)
from .admission_dra import admit_devices
from .admission_groups import admit_groups
from .budget_controller import DisruptionController
from .controllers import Controllers
from .cron_job_controller import CronJobController
from .kubelets import Kubelets
from .object_store import MemoryCluster
from .pod_index import is_there
from .protection import Protection
from .provisioners import Provisioning, provisioning_problems
from .quotas import QuotaLedger
from .refusals import AdmissionRefusal
from .resource_claims import ClaimController
from .volume_controller import VolumeController
from .workload_pods import WORKLOAD_KINDS

__all__ = [
    "AbsentOwners",
    "Admission",
    "AdmissionError",
    "DisruptionController",
    "ClaimController",
    "Controllers",
    "CronJobController",
    "Kubelets",
    "MemoryCluster",
    "Protection",
    "Provisioning",
    "QuotaLedger",
    "AdmissionRefusal",
    "AdmissionRefusedError",
    "VolumeController",
    "WORKLOAD_KINDS",
    "admit_devices",
    "admit_groups",
    "admit_namespace",
    "admit_storage",
    "has_local_storage",
    "is_bare",
    "is_daemon",
    "is_static",
    "is_there",
    "stays_with_node",
    "successor_of",
    "provisioning_problems",
]
