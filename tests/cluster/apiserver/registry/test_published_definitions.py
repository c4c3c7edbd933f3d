"""Traits of published CustomResourceDefinitions that kube-apiserver accepts."""

from typing import Any

import pytest

from bayplan.testing.api_server import ServerInThread

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = {"type": "string"}
WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "a", "namespace": "b"}},
    },
}


def definition(template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A definition whose objects have a template."""
    schema = {"type": "object", "properties": {"template": template}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "plans.example.io"},
        "spec": {
            "group": "example.io",
            "scope": "Namespaced",
            "names": {"plural": "plans", "kind": "Plan"},
            "versions": [version],
            **spec,
        },
    }


def embedded(rule: str, **head: Any) -> dict[str, Any]:
    """A template that is an object, with a rule."""
    names = {"name": TEXT, "generateName": TEXT, "namespace": TEXT}
    return {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {**head, "metadata": {"type": "object", "properties": names}},
        "x-kubernetes-validations": [{"rule": rule, "message": "wrong namespace"}],
    }


RULE = "!has(self.metadata.namespace) || self.metadata.namespace == 'x'"


def test_a_rule_reads_the_declared_namespace_of_a_template(api: ServerInThread) -> None:
    api.make(PATH, definition(embedded(RULE, kind=TEXT, apiVersion=TEXT)))
    api.settle()
    plans = "/apis/example.io/v1/namespaces/default/plans"

    def status(namespace: str) -> Any:
        template = {
            "apiVersion": "v1",
            "kind": "A",
            "metadata": {"name": "t", "namespace": namespace},
        }
        head = {"apiVersion": "example.io/v1", "kind": "Plan"}
        tree = {**head, "metadata": {"name": namespace}, "template": template}
        return api.post(plans, tree).status

    assert (status("x"), status("y")) == (201, 422)


def test_a_template_without_kind_and_version_has_no_namespace(api: ServerInThread) -> None:
    answer = api.post(PATH, definition(embedded(RULE)))

    assert answer.status == 422
    assert "undefined field 'namespace'" in answer.tree["message"]


@pytest.mark.parametrize(
    "conversion",
    [
        pytest.param({}, id="without conversion"),
        pytest.param({"conversion": {"strategy": "None"}}, id="without effect"),
        pytest.param({"conversion": WEBHOOK}, id="with a webhook"),
    ],
)
def test_a_definition_is_applied_again_without_conversion(
    api: ServerInThread, conversion: dict[str, Any]
) -> None:
    path = f"{PATH}/plans.example.io?fieldManager=kubectl"
    template = {"type": "object"}
    first = api.patch(path, definition(template, **conversion), "apply")

    again = api.patch(path, definition(template), "apply")

    assert (first.status, again.status) == (201, 200)
    assert again.tree["spec"]["conversion"] == {"strategy": "None"}
