"""Problems of a configuration as kube-scheduler reports them at its start."""

import json
from typing import Any

from tests.rig.conformance.config import run_start

GROUP = "kubescheduler.config.k8s.io/v1"
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
RANGE = "not in valid range [0, 100]"

Error = tuple[str, str, str, str | None]


def errors_of(data: dict[str, Any]) -> list[Error]:
    outcome = run_start(
        json.dumps({"apiVersion": GROUP, "kind": "KubeSchedulerConfiguration", **data})
    )
    assert outcome.decode_error_kind is None
    assert outcome.validation_errors is not None
    return sorted(
        (
            error["field"],
            error["type"].removeprefix("FieldValue"),
            error["detail"],
            error["badValue"],
        )
        for error in outcome.validation_errors
    )
