from typing import Any

import pytest

from bayplan.config.expand import check_same_queue_sort, expand_plugins
from bayplan.config.types import PluginRef, Plugins, PluginSet, Profile
from bayplan.errors import ConfigError

# A small registry: plugin to the points it implements.
REGISTERED = {
    "Sort": {"queue_sort"},
    "OtherSort": {"queue_sort"},
    "Coscheduling": {"queue_sort"},
    "Bind": {"bind"},
    "A": {"filter", "score"},
    "B": {"filter", "score", "pre_filter"},
    "C": {"score", "placement_score"},
    "Generate": {"placement_generate"},
    "OtherGenerate": {"placement_generate"},
}
NEEDED = ("Sort", "Bind")


def refs(*names: str) -> tuple[PluginRef, ...]:
    """Plugin references from `name` or `name=weight`."""
    pairs = (name.partition("=") for name in names)
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def make_profile(*multi_point: str, **points: PluginSet) -> Profile:
    """A profile named `test` with these plugins under multiPoint and at single points."""
    return Profile("test", plugins=Plugins(multi_point=PluginSet(refs(*multi_point)), **points))


def expand(profile: Profile) -> dict[str, tuple[PluginRef, ...]]:
    return expand_plugins(profile, REGISTERED, lambda name, point: point in REGISTERED[name])


@pytest.mark.parametrize(
    ("multi_point", "here", "expected"),
    [
        pytest.param(("Sort", "Coscheduling"), PluginSet(), "Sort", id="another one is there"),
        pytest.param(
            ("Sort", "Coscheduling"), PluginSet(disabled=("Sort",)), "Coscheduling", id="alone"
        ),
        pytest.param(
            ("Sort", "Coscheduling"),
            PluginSet(refs("Coscheduling"), ("*",)),
            "Coscheduling",
            id="named at the point",
        ),
    ],
)
def test_coscheduling_sorts_the_queue_if_no_other_plugin_does(
    multi_point: tuple[str, ...], here: PluginSet, expected: str
) -> None:
    expanded = expand(make_profile("Bind", *multi_point, queue_sort=here))

    assert [ref.name for ref in expanded["queue_sort"]] == [expected]


@pytest.mark.parametrize(
    ("multi_point", "here", "filters"),
    [
        pytest.param(("A", "B", "C"), PluginSet(), "A B", id="multiPoint reaches what implements"),
        pytest.param(("B", "A"), PluginSet(), "B A", id="in the order of multiPoint"),
        pytest.param(("A", "B"), PluginSet(disabled=("A",)), "B", id="disabled at the point"),
        pytest.param(("A", "B"), PluginSet(disabled=("*",)), "", id="star stops the expansion"),
        pytest.param(
            ("A", "B"), PluginSet(refs("B"), ("*",)), "B", id="star keeps what is listed here"
        ),
        pytest.param(
            ("A", "B"), PluginSet(refs("B")), "B A", id="an overriding plugin comes first"
        ),
        pytest.param(
            ("A",), PluginSet(refs("B")), "A B", id="a plugin listed only here comes last"
        ),
        pytest.param(
            ("A", "B"), PluginSet(refs("B", "A")), "B A", id="overriding plugins as listed here"
        ),
        pytest.param(
            ("A",), PluginSet(refs("A"), ("A",)), "A", id="enabled takes precedence over disabled"
        ),
        pytest.param(
            ("A", "A"), PluginSet(refs("A")), "A", id="twice in multiPoint but listed here"
        ),
    ],
)
def test_order_at_a_point(multi_point: tuple[str, ...], here: PluginSet, filters: str) -> None:
    score = PluginSet(disabled=("*",))

    expanded = expand(make_profile(*NEEDED, *multi_point, filter=here, score=score))

    assert [ref.name for ref in expanded["filter"]] == filters.split()


@pytest.mark.parametrize(
    ("multi_point", "score", "expected"),
    [
        pytest.param(("A=3", "B"), PluginSet(), ("A=3", "B=1"), id="0 becomes 1"),
        pytest.param(("A=3",), PluginSet(refs("A=7")), ("A=7",), id="the point's own weight first"),
        pytest.param(("A=3",), PluginSet(refs("A")), ("A=1",), id="an own weight of 0 is 1 too"),
        pytest.param((), PluginSet(refs("C=2", "A=4")), ("C=2", "A=4"), id="listed here only"),
    ],
)
def test_weights(multi_point: tuple[str, ...], score: PluginSet, expected: tuple[str, ...]) -> None:
    expanded = expand(make_profile(*NEEDED, *multi_point, score=score))

    assert expanded["score"] == refs(*expected)


def test_placement_score_has_weights_of_its_own() -> None:
    profile = make_profile(*NEEDED, "C=3", placement_score=PluginSet(refs("C=5")))

    expanded = expand(profile)

    assert expanded["score"] == refs("C=3")
    assert expanded["placement_score"] == refs("C=5")


def test_other_points_have_no_weights() -> None:
    assert expand(make_profile(*NEEDED, "A=9"))["filter"] == refs("A")


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        pytest.param(
            make_profile(filter=PluginSet(refs("Nope"))),
            'FilterPlugin "Nope" does not exist',
            id="an unknown plugin at a point",
        ),
        pytest.param(
            make_profile("Nope"),
            'PreFilterPlugin "Nope" does not exist',
            id="an unknown plugin in multiPoint is reported at the first point",
        ),
        pytest.param(
            make_profile("Nope", pre_filter=PluginSet(disabled=("*",))),
            'FilterPlugin "Nope" does not exist',
            id="or at the first point that expands multiPoint",
        ),
        pytest.param(
            make_profile(filter=PluginSet(refs("C"))),
            'plugin "C" does not extend FilterPlugin plugin',
            id="a plugin that does not implement the point",
        ),
        pytest.param(
            make_profile(filter=PluginSet(refs("A", "A"))),
            'plugin "A" already registered as "FilterPlugin"',
            id="twice at a point",
        ),
        pytest.param(
            make_profile(*NEEDED, "A", "A"),
            'plugin "A" already registered as "FilterPlugin"',
            id="twice in multiPoint",
        ),
        pytest.param(
            make_profile("Nope", score=PluginSet(refs("Sort"))),
            'plugin "Sort" does not extend ScorePlugin plugin',
            id="single points are checked before multiPoint",
        ),
        pytest.param(
            make_profile("Bind"),
            'only one queue sort plugin required for profile with scheduler name "test", but got 0',
            id="no queue sort",
        ),
        pytest.param(
            make_profile(*NEEDED, "OtherSort"),
            'only one queue sort plugin required for profile with scheduler name "test", but got 2',
            id="two queue sorts",
        ),
        pytest.param(
            make_profile("Sort"),
            'at least one bind plugin is needed for profile with scheduler name "test"',
            id="no bind plugin",
        ),
        pytest.param(
            make_profile(*NEEDED, "Generate", "OtherGenerate"),
            "at most one placement generate plugin is allowed for profile with scheduler name "
            '"test"',
            id="two placement generators",
        ),
        pytest.param(
            make_profile(*NEEDED, "A=-1", "B=1"),
            "score plugins: total score of Score plugins could overflow",
            id="a weight after a negative one",
        ),
    ],
)
def test_contradictions_are_rejected(profile: Profile, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand(profile)

    assert str(caught.value) == message


def test_largest_weights_do_not_overflow() -> None:
    largest = 2**31 - 1
    profile = make_profile(*NEEDED, f"A={largest}", f"B={largest}", f"C={largest}")

    assert {ref.weight for ref in expand(profile)["score"]} == {largest}


@pytest.mark.parametrize(
    ("second", "args", "message"),
    [
        pytest.param("Sort", {}, None, id="the same"),
        pytest.param(
            "OtherSort",
            {},
            'different queue sort plugins for profile "two": "OtherSort", first: "Sort"',
            id="another plugin",
        ),
        pytest.param(
            "Sort",
            {"Sort": {"reverse": True}},
            'different queue sort plugin args for profile "two"',
            id="other arguments",
        ),
    ],
)
def test_profiles_share_one_queue_sort(
    second: str, args: dict[str, dict[str, Any]], message: str | None
) -> None:
    one = Profile("one", plugins=Plugins(multi_point=PluginSet(refs("Sort", "Bind"))))
    plugins = Plugins(multi_point=PluginSet(refs(second, "Bind")))
    two = Profile("two", plugins=plugins, plugin_config=args)
    expanded = {"one": expand(one), "two": expand(two)}

    if message is None:
        check_same_queue_sort((one, two), expanded)
        return
    with pytest.raises(ConfigError) as caught:
        check_same_queue_sort((one, two), expanded)
    assert str(caught.value) == message
