"""Custom pods: templates that are computed from fields of Spark, Argo Workflows and operators."""

import re
from typing import Any

import pytest

from bayplan.api.custom_workloads import PodShape, pod_of_fields, spark_shapes, workflow_shapes


def test_a_container_with_the_name_of_the_kind_changes_the_one_of_the_operator() -> None:
    given = [{"name": "proxy"}, {"name": "prometheus", "image": "mine"}]
    fields = {"image": "theirs", "resources": {"requests": {"cpu": "1"}}, "containers": given}

    pod = pod_of_fields(fields, "prometheus")

    own = {"name": "prometheus", "image": "mine", "resources": {"requests": {"cpu": "1"}}}
    assert pod["spec"]["containers"] == [own, {"name": "proxy"}]


@pytest.mark.parametrize(
    ("fields", "metadata", "spec"),
    [
        pytest.param({}, {}, {}, id="nothing beside the container is made up"),
        pytest.param(
            {"initContainers": [{"name": "i"}]},
            {},
            {"initContainers": [{"name": "i"}]},
            id="init containers are those of the pod",
        ),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}, "affinity": None, "retention": "1d"},
            {},
            {"nodeSelector": {"disk": "ssd"}},
            id="of the other fields only those of a pod are taken",
        ),
        pytest.param(
            {"podMetadata": {"labels": {"a": "b"}}},
            {"labels": {"a": "b"}},
            {},
            id="podMetadata is the metadata",
        ),
    ],
)
def test_the_pod_of_an_operator(fields: Any, metadata: Any, spec: Any) -> None:
    pod = pod_of_fields(fields, "alertmanager")

    (container,) = pod["spec"].pop("containers")
    assert container == {"name": "alertmanager", "image": "alertmanager", "resources": {}}
    assert (pod["metadata"], pod["spec"]) == (metadata, spec)


# Spark


def executor_of(spec: dict[str, Any]) -> PodShape:
    (found,) = (shape for shape in spark_shapes(spec) if shape.role == "exec")
    return found


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({}, 1, id="one unless given"),
        pytest.param({"executor": {"instances": 0}}, 0, id="none"),
        pytest.param(
            {
                "executor": {"instances": 5},
                "dynamicAllocation": {"enabled": True, "initialExecutors": 2, "minExecutors": 3},
            },
            2,
            id="the initial ones come before the least and the instances",
        ),
        pytest.param(
            {
                "executor": {"instances": 5},
                "dynamicAllocation": {"enabled": True, "minExecutors": 0},
            },
            0,
            id="a least number of 0 is given",
        ),
        pytest.param(
            {"executor": {"instances": 5}, "dynamicAllocation": {"enabled": True}},
            5,
            id="the instances where the allocation names no number",
        ),
        pytest.param({"dynamicAllocation": {"enabled": True}}, 0, id="none where nothing does"),
        pytest.param(
            {"dynamicAllocation": {"enabled": False, "initialExecutors": 4}},
            1,
            id="an allocation that is off does not count",
        ),
    ],
)
def test_the_number_of_executors(spec: dict[str, Any], count: int) -> None:
    assert executor_of(spec).replicas == count


@pytest.mark.parametrize(
    ("part", "requests", "limits"),
    [
        pytest.param(
            {"cores": 2, "coreLimit": "2500m"},
            {"cpu": "2"},
            {"cpu": "2500m"},
            id="cores have a limit only if it is given",
        ),
        pytest.param(
            {"gpu": {"name": "nvidia.com/gpu", "quantity": 2}},
            {"cpu": "1", "nvidia.com/gpu": "2"},
            {"nvidia.com/gpu": "2"},
            id="a GPU is requested and limited",
        ),
        pytest.param(
            {"gpu": {"quantity": 2}}, {"cpu": "1"}, {}, id="a GPU without a name does not count"
        ),
    ],
)
def test_resources_of_an_executor(part: Any, requests: Any, limits: Any) -> None:
    (container,) = executor_of({"executor": part}).template["spec"]["containers"]

    memory = {"memory": "1408Mi"}
    expected = {"requests": {**requests, **memory}, "limits": {**limits, **memory}}
    assert container["resources"] == expected


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("512m", 512),
        ("512", 512),
        ("4g", 4096),
        ("1t", 1 << 20),
        ("2048k", 2),
        ("3145728b", 3),
        ("2GB", 2048),
        (" 2g ", 2048),
        ("3Gi", 3072),
    ],
)
def test_memory_is_in_the_notation_of_java(text: str, mib: int) -> None:
    part = {"memory": text, "memoryOverhead": "100m"}

    (container,) = executor_of({"executor": part}).template["spec"]["containers"]

    assert container["resources"]["requests"]["memory"] == f"{mib + 100}Mi"


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"memory": "much"}, "spec.executor.memory"),
        ({"memoryOverhead": "1.5g"}, "spec.executor.memoryOverhead"),
    ],
)
def test_memory_that_cannot_be_read_is_named_with_its_path(part: Any, path: str) -> None:
    (text,) = part.values()

    with pytest.raises(ValueError, match="expected memory such as 512m or 4g") as error:
        executor_of({"executor": part})

    assert str(error.value) == f"{path}: expected memory such as 512m or 4g; got {text}"


def test_a_part_of_spark_takes_precedence_over_the_application_and_that_over_the_template() -> None:
    template = {"spec": {"schedulerName": "t", "priorityClassName": "t", "restartPolicy": "Never"}}
    spec = {
        "nodeSelector": {"of": "application"},
        "schedulerName": "application",
        "executor": {"nodeSelector": {"of": "executor"}, "template": template},
    }

    found = executor_of(spec).template["spec"]

    del found["containers"]
    assert found == {
        "nodeSelector": {"of": "executor"},
        "schedulerName": "application",
        "priorityClassName": "t",
        "restartPolicy": "Never",
    }


# Argo Workflows

WORK = {"name": "work", "container": {"image": "i"}}


def first_pods(*templates: Any) -> list[tuple[str, int]]:
    """Role and number of the pods that a workflow with these templates begins with, at `main`."""
    spec = {"entrypoint": "main", "templates": [*templates, WORK]}
    return [(shape.role, shape.replicas) for shape in workflow_shapes(spec)]


def steps(*group: Any, name: str = "main") -> dict[str, Any]:
    return {"name": name, "steps": [list(group)]}


@pytest.mark.parametrize(
    ("template", "pods"),
    [
        pytest.param(
            steps({"template": "work", "withSequence": {"count": "5"}}),
            [("work", 5)],
            id="a sequence repeats its step",
        ),
        pytest.param(
            steps({"template": "work", "withSequence": {"count": 3}}),
            [("work", 3)],
            id="the count of a sequence may be a number",
        ),
        pytest.param(
            {
                "name": "main",
                "dag": {
                    "tasks": [
                        {"name": "a", "template": "work"},
                        {"name": "b", "template": "work", "dependencies": ["a"]},
                        {"name": "c", "template": "work", "depends": "a && b"},
                        {"name": "d", "template": "work", "withItems": [1, 2]},
                    ]
                },
            },
            [("work", 1), ("work", 2)],
            id="tasks that depend on others come later",
        ),
        pytest.param(
            {"name": "main", "steps": [{"template": "work"}, {"template": "work"}]},
            [("work", 1)],
            id="a group may be a single step",
        ),
    ],
)
def test_the_first_pods_of_steps(template: Any, pods: list[tuple[str, int]]) -> None:
    assert first_pods(template) == pods


def test_repetitions_multiply() -> None:
    outer = steps({"template": "inner", "withItems": ["a", "b"]})
    inner = steps({"template": "work", "withSequence": {"count": "3"}}, name="inner")

    assert first_pods(outer, inner) == [("work", 6)]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        pytest.param(
            steps({"template": "absent"}),
            "expected a template absent; got none",
            id="a template that is not there",
        ),
        pytest.param(
            steps({"template": "main"}),
            "expected a template main; got none",
            id="a template that names itself",
        ),
        pytest.param(
            {"name": "main", "inputs": {}},
            "template main: expected container, script, steps or dag; got none",
            id="a template that does nothing",
        ),
        pytest.param(
            steps({"templateRef": {"name": "t"}}),
            "template main: the pods depend on templateRef",
            id="a template of another object",
        ),
        pytest.param(
            steps({"template": "work", "withSequence": {"count": "{{inputs.n}}"}}),
            "template main: the pods depend on withSequence",
            id="a sequence with the count of a parameter",
        ),
        pytest.param(
            steps({"template": "work", "withSequence": {"start": "1", "end": "4"}}),
            "template main: the pods depend on withSequence",
            id="a sequence without a count",
        ),
    ],
)
def test_a_workflow_whose_first_pods_are_unknown_is_refused(template: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        first_pods(template)

    assert str(error.value) == reason
