"""Traits of published CustomResourceDefinitions that kube-apiserver accepts."""

from typing import Any

import pytest

from tests.rig.api_server import ServerInThread

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = {"type": "string"}
WEBHOOK: dict[str, Any] = {
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


def made(api: ServerInThread, template: dict[str, Any]) -> str:
    """Make the definition of objects with such a template; return their path."""
    api.make(PATH, definition(template))
    api.settle()
    return "/apis/example.io/v1/namespaces/default/plans"


def ruled(rule: str, **schema: Any) -> dict[str, Any]:
    """The schema of a text with a rule."""
    return {"type": "string", **schema, "x-kubernetes-validations": [{"rule": rule}]}


def statuses(api: ServerInThread, path: str, *templates: Any) -> list[int]:
    """The answers to objects with these templates."""
    head = {"apiVersion": "example.io/v1", "kind": "Plan", "metadata": {"name": "a"}}
    return [api.post(f"{path}?dryRun=All", {**head, "template": t}).status for t in templates]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        pytest.param(ruled("isIP(self)"), "10.0.0.1", "10.0.0", id="an address"),
        pytest.param(ruled("isURL(self)"), "https://a.b", "a.b", id="a URL"),
        pytest.param(
            ruled("!format.dns1123Label().validate(self).hasValue()"), "a", "a.b", id="a format"
        ),
        pytest.param(
            ruled("self <= duration('1h')", format="duration"), "30m", "2h", id="a duration"
        ),
        pytest.param(
            ruled("self < timestamp('2030-01-01T00:00:00Z')", format="date-time"),
            "2029-12-31T23:00:00Z",
            "2030-01-01T00:00:00+00:00",
            id="a time",
        ),
        pytest.param(ruled("size(self) < 3", format="byte"), "QUI=", "QUJD", id="bytes"),
    ],
)
def test_a_rule_is_evaluated(
    api: ServerInThread, schema: dict[str, Any], good: str, bad: str
) -> None:
    path = made(api, schema)

    assert statuses(api, path, good, bad) == [201, 422]


def test_bytes_of_a_field_are_bytes(api: ServerInThread) -> None:
    rule = [{"rule": "size(self.data) == 2"}]
    data = {"type": "object", "properties": {"data": {"type": "string", "format": "byte"}}}
    path = made(api, {**data, "x-kubernetes-validations": rule})

    assert statuses(api, path, {"data": "QUI="}, {"data": "QUJD"}) == [201, 422]


def test_a_rule_with_an_unknown_function_is_refused(api: ServerInThread) -> None:
    answer = api.post(PATH, definition(ruled("math.greatest(1, 2) == 2")))

    assert answer.status == 422
    assert "undeclared reference to 'math' (in container '')" in answer.tree["message"]


@pytest.mark.parametrize(
    ("schema", "unknown"),
    [
        pytest.param({"type": "string", "format": "int64"}, "int64", id="of numbers for a text"),
        pytest.param({"type": "integer", "format": "int64"}, "", id="of a number"),
        pytest.param({"type": "integer", "format": "uri"}, "uri", id="of texts for a number"),
        pytest.param({"type": "string", "format": "date-time"}, "", id="with a hyphen"),
        pytest.param(
            {"type": "array", "format": "cidr", "items": {"type": "string"}}, "cidr", id="of a list"
        ),
    ],
)
def test_a_format_is_one_of_its_type(
    api: ServerInThread, schema: dict[str, Any], unknown: str
) -> None:
    warning = api.post(PATH, definition(schema)).headers.get("Warning", "")

    assert warning == (f'299 - "unrecognized format \\"{unknown}\\""' if unknown else "")


def test_a_webhook_has_to_understand_a_known_version(api: ServerInThread) -> None:
    conversion = {**WEBHOOK, "webhook": {**WEBHOOK["webhook"], "conversionReviewVersions": ["v2"]}}

    answer = api.post(PATH, definition({"type": "object"}, conversion=conversion))

    assert answer.tree["message"].endswith(
        'spec.conversion.conversionReviewVersions: Invalid value: ["v2"]:'
        " must include at least one of v1, v1beta1"
    )


def test_a_whole_number_is_written_without_a_point(api: ServerInThread) -> None:
    answer = api.post(PATH, definition({"type": "number", "maximum": 10000.0, "minimum": 0.5}))

    (version,) = answer.tree["spec"]["versions"]
    stored = version["schema"]["openAPIV3Schema"]["properties"]["template"]
    assert (str(stored["maximum"]), stored["minimum"]) == ("10000", 0.5)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param(
            {"type": "integer", "format": "int32", "maximum": 4294967295},
            "Maximum boundary value must be of type integer with format int32 in template",
            id="a maximum above the format",
        ),
        pytest.param(
            {"type": "integer", "minimum": 0.5},
            "Minimum boundary value must be of type integer (default format) in template",
            id="a minimum that is not whole",
        ),
    ],
)
def test_a_limit_that_its_integer_cannot_have_refuses_each_value(
    api: ServerInThread, schema: dict[str, Any], problem: str
) -> None:
    path = made(api, schema)
    head = {"apiVersion": "example.io/v1", "kind": "Plan", "metadata": {"name": "a"}}

    answer = api.post(path, {**head, "template": 5})

    fault = f'<nil>: Invalid value: "": {problem}'
    assert answer.tree["message"] == f'Plan.example.io "a" is invalid: {fault}'


def versioned(**conversion: Any) -> dict[str, Any]:
    """A definition with a deprecated version that has a field which the stored version has not."""
    tree = definition({"type": "object", "properties": {"new": TEXT}}, **conversion)
    (stored,) = tree["spec"]["versions"]
    fields = {"template": {"type": "object", "properties": {"new": TEXT, "old": TEXT}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": fields}}
    beta = {**stored, "name": "v1beta1", "storage": False, "deprecated": True, "schema": schema}
    tree["spec"]["versions"].append(beta)
    return tree


@pytest.mark.parametrize(
    ("conversion", "kept"),
    [
        pytest.param({}, {"new": "x"}, id="as kube-apiserver does"),
        pytest.param({"conversion": WEBHOOK}, {"new": "x", "old": "y"}, id="not with a webhook"),
    ],
)
def test_fields_that_the_stored_version_lacks_are_dropped(
    api: ServerInThread, conversion: dict[str, Any], kept: dict[str, str]
) -> None:
    api.make(PATH, versioned(**conversion))
    api.settle()
    head = {"apiVersion": "example.io/v1beta1", "kind": "Plan", "metadata": {"name": "a"}}

    answer = api.post(
        "/apis/example.io/v1beta1/namespaces/default/plans",
        {**head, "template": {"new": "x", "old": "y"}},
    )

    assert answer.tree["template"] == kept
    advice = "example.io/v1beta1 Plan is deprecated; use example.io/v1 Plan"
    assert answer.headers["Warning"] == f'299 - "{advice}"'


def test_the_prefix_of_a_name_has_the_rules_of_a_name(api: ServerInThread) -> None:
    path = made(api, {"type": "object"})
    head = {"apiVersion": "example.io/v1", "kind": "Plan"}

    good = api.post(path, {**head, "metadata": {"generateName": "a-"}})
    bad = api.post(path, {**head, "metadata": {"generateName": "Ab-"}})

    assert (good.status, bad.status) == (201, 422)
    assert bad.tree["details"]["causes"][0]["field"] == "metadata.generateName"
