"""Names of the contract: few enough for a plugin author to know."""

from bayplan import framework

MOST_NAMES = 45


def test_a_plugin_author_has_few_names_to_know() -> None:
    assert len(framework.__all__) <= MOST_NAMES
    assert all(hasattr(framework, name) for name in framework.__all__)
