"""Quantity: exact parsing, rounding up, and formatting."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.text.quantity import (
    MAX_INT64,
    NANO,
    Quantity,
    format_quantity,
    nano_to_milli,
    nano_to_value,
    parse_quantity,
    parse_value,
)

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "e3": Fraction(1000),
    "E3": Fraction(1000),
    "e-3": Fraction(1, 1000),
    "e+2": Fraction(100),
}


@pytest.mark.parametrize(
    ("quantity", "value", "milli"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("250m", 1, 250, id="a fraction of a unit rounds up to one"),
        pytest.param("1500m", 2, 1500, id="one and a half rounds up to two"),
        pytest.param("2", 2, 2000, id="plain"),
        pytest.param("0.1m", 1, 1, id="less than a milli rounds up to one"),
        pytest.param("1n", 1, 1, id="nano"),
        pytest.param("1u", 1, 1, id="micro"),
        pytest.param("0.1n", 1, 1, id="less than a nano is not lost"),
        pytest.param("1k", 1000, 10**6, id="kilo"),
        pytest.param("1Ki", 1024, 1024000, id="kibi"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, id="fraction of a binary unit"),
        pytest.param("1.1Ki", 1127, 1126400, id="binary fraction that is no whole number"),
        pytest.param(".5", 1, 500, id="no digit before the point"),
        pytest.param("1.", 1, 1000, id="no digit after the point"),
        pytest.param("+1", 1, 1000, id="explicit plus"),
        pytest.param("-1.5", -2, -1500, id="negative rounds away from zero"),
        pytest.param("12e3", 12000, 12000000, id="exponent"),
        pytest.param("1E", 10**18, MAX_INT64, id="exa, whose milli is out of range"),
        pytest.param("1E2", 100, 100000, id="capital exponent is not exa"),
        pytest.param("7Ei", 7 * 2**60, MAX_INT64, id="exbi"),
        pytest.param("16Ei", MAX_INT64, MAX_INT64, id="binary beyond int64 is capped"),
        pytest.param("1e999999999", MAX_INT64, MAX_INT64, id="absurd exponent"),
        pytest.param("1e-999999999", 1, 1, id="absurdly small"),
        pytest.param("0e999999999", 0, 0, id="zero stays zero"),
        pytest.param(" 100m ", 1, 100, id="blanks around"),
        pytest.param(3, 3, 3000, id="integer"),
        pytest.param(0.1, 1, 100, id="float is taken as written"),
        pytest.param(None, 0, 0, id="null is zero"),
    ],
)
def test_parse(quantity: Quantity, value: int, milli: int) -> None:
    assert parse_value(quantity) == value
    assert nano_to_milli(parse_quantity(quantity)) == milli


@pytest.mark.parametrize(
    "text",
    ["", "1O0m", "m", ".", "-", "1e", "1ki", "1 Gi", "1Gib", "0x10", "1.2.3", "NaN", "٣", "1mm"],
)
def test_parse_rejects_invalid_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as caught:
        parse_quantity(text)
    assert str(caught.value) == f'"{text}" is not a quantity'


def test_parse_rejects_a_boolean() -> None:
    with pytest.raises(ValueError, match="True is not a quantity"):
        parse_quantity(True)


@given(
    whole=st.integers(0, 10**12),
    part=st.text("0123456789", max_size=12),
    suffix=st.sampled_from(sorted(SUFFIXES)),
    sign=st.sampled_from(["", "-", "+"]),
)
def test_parse_rounds_up_exactly(whole: int, part: str, suffix: str, sign: str) -> None:
    exact = Fraction(f"{whole}.{part or '0'}") * SUFFIXES[suffix]
    in_nano = math.ceil(exact * NANO)
    factor = -1 if sign == "-" else 1
    text = f"{sign}{whole}.{part}{suffix}"

    if suffix.endswith("i"):
        in_nano = min(in_nano, MAX_INT64 * NANO)
    assert parse_quantity(text) == factor * in_nano
    assert parse_value(text) == factor * min(math.ceil(Fraction(in_nano, NANO)), MAX_INT64)
    assert nano_to_milli(parse_quantity(text)) == factor * min(
        math.ceil(Fraction(in_nano, 10**6)), MAX_INT64
    )


@given(st.floats(0, 1e15, allow_subnormal=False))
def test_parse_takes_a_float_as_it_is_written(number: float) -> None:
    assert parse_quantity(number) == math.ceil(Fraction(repr(number)) * NANO)


@pytest.mark.parametrize(
    ("value", "resource", "text"),
    [
        pytest.param(250, "cpu", "250m", id="part of a cpu"),
        pytest.param(2000, "cpu", "2", id="whole cpus"),
        pytest.param(1536 * 2**20, "memory", "1536Mi", id="largest suffix that loses nothing"),
        pytest.param(2**30, "memory", "1Gi", id="one gibibyte"),
        pytest.param(1000, "memory", "1000", id="bytes that no suffix divides"),
        pytest.param(0, "memory", "0", id="no memory"),
        pytest.param(2**31, "hugepages-2Mi", "2Gi", id="huge pages are bytes"),
        pytest.param(1024, "example.com/gpu", "1024", id="others are counted"),
        pytest.param(110, "pods", "110", id="pods"),
    ],
)
def test_format(value: int, resource: str, text: str) -> None:
    assert format_quantity(value, resource) == text


@given(st.integers(0, 2**62), st.sampled_from(["cpu", "memory", "pods"]))
def test_format_parses_back(value: int, resource: str) -> None:
    parsed = parse_quantity(format_quantity(value, resource))

    assert (nano_to_milli if resource == "cpu" else nano_to_value)(parsed) == value
