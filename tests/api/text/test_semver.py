from itertools import pairwise

import pytest

from bayplan.api.text.semver import parse_semver

IN_ORDER = [
    "0.9.9",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0",
    "10.0.0",
]


def test_versions_sort_as_the_standard_says() -> None:
    versions = [parse_semver(text) for text in IN_ORDER]

    assert all(lower < higher for lower, higher in pairwise(versions))


def test_build_metadata_is_ignored() -> None:
    assert parse_semver("1.2.3+left") == parse_semver("1.2.3+right.7") == parse_semver("1.2.3")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1.2", id="two parts"),
        pytest.param("v1.2.3", id="a letter before it"),
        pytest.param("01.2.3", id="a leading zero"),
        pytest.param("1.2.3-01", id="a leading zero in the pre-release"),
        pytest.param("1.2.3-", id="nothing after the dash"),
        pytest.param("", id="nothing"),
        pytest.param("1.2.3 ", id="a space"),
    ],
)
def test_invalid_texts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a semantic version"):
        parse_semver(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param("v1.2.3", "1.2.3", id="a letter before it"),
        pytest.param("1.2", "1.2.0", id="two parts"),
        pytest.param("1", "1.0.0", id="one part"),
        pytest.param("01.02.03", "1.2.3", id="leading zeros"),
        pytest.param("v1.2-rc.1", "1.2.0-rc.1", id="a pre-release"),
    ],
)
def test_normalize_corrects_the_text(text: str, meant: str) -> None:
    assert parse_semver(text, normalize=True) == parse_semver(meant)
