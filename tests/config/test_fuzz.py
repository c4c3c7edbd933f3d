"""Fuzzing: reading any file ends in a configuration or in an error that names places."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.config.decode import JsonFloat
from bayplan.config.legacy.policy_plugins import PREDICATES, PRIORITIES
from bayplan.config.load import parse_config
from bayplan.config.plugin_args import ARGS_TYPES, LEGACY_ARGS_TYPES
from bayplan.config.types import POINT_NAMES, SchedulerConfiguration
from bayplan.errors import ConfigError
from tests.rig.random_examples import examples

GROUP = "kubescheduler.config.k8s.io"
ARGUMENTS = {**ARGS_TYPES, **LEGACY_ARGS_TYPES}
FIELDS = sorted(
    {
        "apiVersion", "kind", "profiles", "plugins", "pluginConfig", "schedulerName", "args", "name",
        "weight", "enabled", "disabled", "extenders", "urlPrefix", "tlsConfig", "caData", "argument",
        "managedResources", "httpTimeout", "leaderElection", "leaseDuration", "qps", "parallelism",
        "percentageOfNodesToScore", "podMaxBackoffSeconds", "predicates", "priorities", "data",
        "labelPreference", "serviceAffinity", "requestedToCapacityRatioArguments", "shape",
        "policy.cfg", "multiPoint", *POINT_NAMES.values(),
        *(field for args in ARGUMENTS.values() for field in args.__struct_encode_fields__),
    }
)  # fmt: skip
NAMES = [*ARGUMENTS, *PREDICATES, *PRIORITIES, "*", "PrioritySort", "EBSLimits", "DefaultBinder"]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["", "*", "1s", "-5m", "System", "List", "LeastAllocated", "In", *NAMES]),
)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
        st.dictionaries(st.text(max_size=4), inner, max_size=2),
    ),
    max_leaves=25,
)
plugin_sets = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(NAMES)}, optional={"weight": scalars}),
            max_size=3,
        )
        for name in ("enabled", "disabled")
    },
)
plugin_configs = st.lists(
    st.sampled_from(sorted(ARGUMENTS)).flatmap(
        lambda name: st.fixed_dictionaries(
            {
                "name": st.just(name),
                "args": st.dictionaries(
                    st.sampled_from(ARGUMENTS[name].__struct_encode_fields__), trees, max_size=3
                ),
            }
        )
    ),
    max_size=3,
)
profiles = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": st.sampled_from(["a", "b", ""]),
        "plugins": st.dictionaries(
            st.sampled_from([*POINT_NAMES.values(), "multiPoint"]), plugin_sets, max_size=3
        ),
        "pluginConfig": plugin_configs,
    },
)
files = st.one_of(
    st.fixed_dictionaries(
        {
            "apiVersion": st.sampled_from(
                [f"{GROUP}/{v}" for v in ("v1", "v1beta1", "v1beta2", "v1beta3")]
            ),
            "kind": st.just("KubeSchedulerConfiguration"),
        },
        optional={
            "profiles": st.one_of(st.lists(profiles, max_size=3), trees),
            "extenders": trees,
            "leaderElection": trees,
            "clientConnection": trees,
            "parallelism": scalars,
            "percentageOfNodesToScore": scalars,
        },
    ),
    st.fixed_dictionaries(
        {"apiVersion": st.just("v1"), "kind": st.sampled_from(["Policy", "ConfigMap"])},
        optional={
            "predicates": st.one_of(
                trees,
                st.lists(
                    st.fixed_dictionaries(
                        {"name": st.sampled_from([*PREDICATES, "own"])},
                        optional={"argument": trees},
                    ),
                    max_size=4,
                ),
            ),
            "priorities": st.one_of(
                trees,
                st.lists(
                    st.fixed_dictionaries(
                        {"name": st.sampled_from([*PRIORITIES, "own"]), "weight": scalars},
                        optional={"argument": trees},
                    ),
                    max_size=4,
                ),
            ),
            "extenders": trees,
            "data": st.one_of(trees, st.fixed_dictionaries({"policy.cfg": st.text()})),
        },
    ),
)


def check_ends_well(data: Any) -> None:
    """Read `data`: the result is a configuration, or an error whose lines all have place, expected
    and found."""
    try:
        config = parse_config(data, "file")
    except ConfigError as error:
        lines = str(error).split("\nfile: ")
        assert lines[0].startswith("file: ")
        assert all("expected " in line and "; got " in line for line in lines)
    else:
        assert isinstance(config, SchedulerConfiguration)
        assert config.profiles


@given(files)
@settings(max_examples=examples(100), deadline=None)
def test_a_mapping_similar_to_a_configuration(data: dict[str, Any]) -> None:
    check_ends_well(data)


@given(trees)
@settings(max_examples=examples(80), deadline=None)
def test_any_tree(data: Any) -> None:
    if data is not None and not isinstance(data, str):
        check_ends_well(data)


@given(files)
@settings(max_examples=examples(50), deadline=None)
def test_text_and_mapping_give_the_same_result(data: dict[str, Any]) -> None:
    def outcome(source: Any) -> Any:
        try:
            return parse_config(source, "file")
        except ConfigError as error:
            return str(error)

    check_ends_well(yaml.safe_dump(data, allow_unicode=True))
    text = json.dumps(data)
    if not any(word in text for word in ("NaN", "Infinity")):
        assert outcome(text) == outcome(json.loads(text, parse_float=JsonFloat))


@given(st.one_of(st.text(), st.text(alphabet="{}[]:,-&*!|>'\"#%@ \n\tab01")))
@settings(max_examples=examples(150), deadline=None)
def test_any_text(text: str) -> None:
    check_ends_well(text)


@given(st.binary())
@settings(max_examples=examples(80), deadline=None)
def test_any_bytes(data: bytes) -> None:
    check_ends_well(data)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="deep YAML without an end"),
        pytest.param("[" * 50_000 + "]" * 50_000, id="deep YAML"),
        pytest.param("a: " + "[" * 400 + "]" * 400, id="YAML a little too deep"),
        pytest.param('{"a":' * 50_000, id="deep JSON"),
        pytest.param("a: &x [*x]", id="a list within itself"),
        pytest.param(
            "a: &a [0,0,0,0,0,0,0,0]\n"
            + "".join(
                f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 8)}]\n"
                for i in range(9)
            ),
            id="references to references",
        ),
        pytest.param('{"a": NaN}', id="not a number"),
        pytest.param('{"a": ' + "1" * 5000 + "}", id="many digits in JSON"),
        pytest.param("a: " + "1" * 5000, id="many digits in YAML"),
        pytest.param("\ud800", id="half a character"),
        pytest.param('{"kind": "\\ud800"}', id="half a character, escaped"),
        pytest.param("a: !!bool 5", id="a tag that does not match"),
        pytest.param("a: !!int ''", id="a tag on nothing"),
        pytest.param("a: !!python/object:os.system x", id="a tag of Python"),
        pytest.param("? [a]\n: b", id="a list as key"),
    ],
)
def test_regressions(text: str) -> None:
    check_ends_well(text)
