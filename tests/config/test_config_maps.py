"""ConfigMaps: the configuration in one of their entries."""

from typing import Any

import pytest

from bayplan.config.load import parse_config
from bayplan.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def test_the_configuration_in_a_config_map() -> None:
    data = {"second.yaml": HEAD + "profiles: [{schedulerName: second}]", "notes": "none"}

    config = parse_config(config_map(**data))

    assert [profile.scheduler_name for profile in config.profiles] == ["second"]


ONE_ENTRY = "one entry with a KubeSchedulerConfiguration, or a Policy under policy.cfg"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param({}, f"data: expected {ONE_ENTRY}; got none", id="no entry"),
        pytest.param({"a": "x"}, f"data: expected {ONE_ENTRY}; got a", id="none in the entries"),
        pytest.param({"a": HEAD, "b": HEAD}, f"data: expected {ONE_ENTRY}; got a, b", id="two"),
        pytest.param(
            {"a": HEAD + "parallelism: many"},
            'data.a.parallelism: expected a whole number; got "many"',
            id="an invalid one",
        ),
        pytest.param(
            {"a": "- KubeSchedulerConfiguration"},
            "data.a: expected a mapping; got a list of 1",
            id="a list",
        ),
        pytest.param(
            {"a": "text: KubeSchedulerConfiguration"},
            "data.a.kind: expected KubeSchedulerConfiguration, Policy or ConfigMap; got nothing",
            id="another document",
        ),
    ],
)
def test_a_config_map_without_a_valid_configuration(data: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(config_map(**data), "m")

    assert str(caught.value) == f"m: {problem}"
