"""Faults of HorizontalPodAutoscalers and disruption budgets, in the API server's words."""

from typing import Any

import pytest

from .faults import faults

WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SHARE = {"type": "Utilization", "averageUtilization": 50}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": SHARE}}
TARGET = "spec.metrics[0].%s.target"


def autoscaler(**spec: Any) -> list[str]:
    whole = {"maxReplicas": 3, "scaleTargetRef": WEB, **spec}
    return faults("horizontalpodautoscalers.autoscaling", spec=whole)


def metric(kind: str, **fields: Any) -> dict[str, Any]:
    """A metric of that kind, whose target has a value unless it is given."""
    name = kind[0].lower() + kind[1:]
    return {"type": kind, name: {"target": {"type": "Value", "value": "3"}, **fields}}


REQUESTS = {"metric": {"name": "requests"}}
POD = {"describedObject": {"kind": "Service", "name": "web"}}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({"metrics": [CPU], "minReplicas": 1}, [], id="valid"),
        pytest.param(
            {"minReplicas": -1},
            ["spec.minReplicas: Invalid value: -1: must be greater than or equal to 1"],
            id="fewer than one",
        ),
        pytest.param(
            {"minReplicas": 0, "metrics": [CPU]},
            [
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.metrics: Forbidden: must specify at least one Object or External metric to support "
                "scaling to zero replicas",
            ],
            id="zero without a metric that is there without pods",
        ),
        pytest.param(
            {"maxReplicas": 0},
            ["spec.maxReplicas: Required value: must be set and greater than 0"],
            id="no maximum",
        ),
        pytest.param(
            {"maxReplicas": -2},
            ["spec.maxReplicas: Invalid value: -2: must be greater than or equal to 1"],
            id="a negative maximum",
        ),
        pytest.param(
            {"minReplicas": 5},
            ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
            id="less than the minimum",
        ),
        pytest.param(
            {"scaleTargetRef": {"apiVersion": "v1"}},
            [
                "spec.scaleTargetRef.kind: Required value",
                "spec.scaleTargetRef.name: Required value",
                'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
            ],
            id="a reference without kind and name",
        ),
        pytest.param(
            {"scaleTargetRef": {**WEB, "apiVersion": "a/b/c"}},
            [
                'spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'
            ],
            id="a version with two slashes",
        ),
    ],
)
def test_replicas_and_target(spec: dict[str, Any], found: list[str]) -> None:
    assert autoscaler(**spec) == found


KINDS = '"ContainerResource", "External", "Object", "Pods", "Resource"'


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param(metric("Object", **REQUESTS, **POD), [], id="a metric of an object"),
        pytest.param(metric("External", **REQUESTS), [], id="an external metric"),
        pytest.param(
            {},
            [
                "spec.metrics[0].type: Required value: must specify a metric source type",
                f'spec.metrics[0].type: Unsupported value: "": supported values: {KINDS}',
                f'spec.metrics[0].type: Unsupported value: "": supported values: {KINDS}',
            ],
            id="nothing",
        ),
        pytest.param(
            {"type": "Resource"},
            [
                "spec.metrics[0].resource: Required value: must populate information for the given metric source"
            ],
            id="a kind without its source",
        ),
        pytest.param(
            {
                **CPU,
                **metric("Pods", **REQUESTS, target={"type": "AverageValue", "averageValue": "1"}),
                "type": "Resource",
            },
            ["spec.metrics[0].pods: Forbidden: must populate the given metric source only"],
            id="two sources",
        ),
        pytest.param(
            metric("Resource", target=SHARE),
            ["spec.metrics[0].resource.name: Required value: must specify a resource name"],
            id="no resource",
        ),
        pytest.param(
            metric("ContainerResource", name="cpu", target=SHARE),
            [
                "spec.metrics[0].containerResource.container: Required value: must specify a container"
            ],
            id="no container",
        ),
        pytest.param(
            metric("External"),
            ["spec.metrics[0].external.metric.name: Required value: must specify a metric name"],
            id="no name of a metric",
        ),
        pytest.param(
            metric("Object", **REQUESTS),
            [
                "spec.metrics[0].object.describedObject.kind: Required value",
                "spec.metrics[0].object.describedObject.name: Required value",
            ],
            id="no object",
        ),
        pytest.param(
            metric("Resource", name="cpu", target={"type": "Utilization"}),
            [
                f"{TARGET % 'resource'}.averageUtilization: Required value: must set either a target raw value "
                "or a target utilization"
            ],
            id="no target of a resource",
        ),
        pytest.param(
            metric("Resource", name="cpu", target={**SHARE, "averageValue": "1"}),
            [
                f"{TARGET % 'resource'}.averageValue: Forbidden: may not set both a target raw value and a "
                "target utilization"
            ],
            id="two targets of a resource",
        ),
        pytest.param(
            metric("Pods", **REQUESTS),
            [
                f"{TARGET % 'pods'}.averageValue: Required value: must specify a positive target averageValue"
            ],
            id="pods have an average",
        ),
        pytest.param(
            metric("Object", **REQUESTS, **POD, target={"type": "Value"}),
            [
                f"{TARGET % 'object'}.averageValue: Required value: must set either a target value or averageValue"
            ],
            id="no target of an object",
        ),
        pytest.param(
            metric("External", **REQUESTS, target={"type": "Value"}),
            [
                f"{TARGET % 'external'}.averageValue: Required value: must set either a target value for metric "
                "or a per-pod target"
            ],
            id="no target of an external metric",
        ),
        pytest.param(
            metric(
                "External", **REQUESTS, target={"type": "Value", "value": "1", "averageValue": "1"}
            ),
            [
                f"{TARGET % 'external'}.value: Forbidden: may not set both a target value for metric and a "
                "per-pod target"
            ],
            id="two targets of an external metric",
        ),
        pytest.param(
            metric("Resource", name="cpu", target={"averageUtilization": 0}),
            [
                f"{TARGET % 'resource'}.type: Required value: must specify a metric target type",
                f'{TARGET % "resource"}.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
                f"{TARGET % 'resource'}.averageUtilization: Invalid value: 0: must be greater than 0",
            ],
            id="a target without a type, of nothing",
        ),
        pytest.param(
            metric("External", **REQUESTS, target={"type": "Value", "value": "0"}),
            [f'{TARGET % "external"}.value: Invalid value: "0": must be positive'],
            id="a value of nothing",
        ),
    ],
)
def test_metrics(given: dict[str, Any], found: list[str]) -> None:
    assert autoscaler(metrics=[given]) == found


UP = "spec.behavior.scaleUp"
HUNDRED = {"type": "Percent", "value": 100, "periodSeconds": 15}


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        pytest.param({"policies": [HUNDRED], "selectPolicy": "Max"}, [], id="valid"),
        pytest.param(
            {"policies": [HUNDRED], "stabilizationWindowSeconds": -1},
            [
                f"{UP}.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"
            ],
            id="a negative window",
        ),
        pytest.param(
            {"policies": [HUNDRED], "stabilizationWindowSeconds": 3601},
            [
                f"{UP}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"
            ],
            id="a window of more than an hour",
        ),
        pytest.param(
            {"policies": []},
            [f"{UP}.policies: Required value: must specify at least one Policy"],
            id="no policy",
        ),
        pytest.param(
            {"policies": [{"type": "Some"}]},
            [
                f'{UP}.policies[0].type: Unsupported value: "Some": supported values: "Percent", "Pods"',
                f"{UP}.policies[0].value: Invalid value: 0: must be greater than zero",
                f"{UP}.policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
            ],
            id="a policy of nothing",
        ),
        pytest.param(
            {"policies": [{**HUNDRED, "periodSeconds": 1801}]},
            [
                f"{UP}.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"
            ],
            id="a period of more than half an hour",
        ),
    ],
)
def test_scaling_rules(rules: dict[str, Any], found: list[str]) -> None:
    assert autoscaler(behavior={"scaleUp": rules}) == found


SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({"minAvailable": 1}, [], id="valid"),
        pytest.param(
            {"minAvailable": 1, "maxUnavailable": 1, "selector": None},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
                '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'
            ],
            id="both numbers",
        ),
        pytest.param(
            {"maxUnavailable": "120%"},
            ['spec.maxUnavailable: Invalid value: "120%": must not be greater than 100%'],
            id="more than all",
        ),
        pytest.param(
            {"unhealthyPodEvictionPolicy": "Never"},
            [
                'spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: '
                '"AlwaysAllow", "IfHealthyBudget"'
            ],
            id="an unknown policy",
        ),
    ],
)
def test_budgets(spec: dict[str, Any], found: list[str]) -> None:
    assert faults("poddisruptionbudgets.policy", spec={"selector": SELECTOR, **spec}) == found
