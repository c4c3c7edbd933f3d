"""CEL: device expressions with Kubernetes' own functions and rules."""

from typing import Any

import msgspec
import pytest

from bayplan.api.cel import device_expressions
from bayplan.api.cel.device_expressions import CelError, SeenDevice, compile_expression, names_in
from bayplan.api.devices import Device
from bayplan.testing.devices import DRIVER, make_device

OWN = f'device.attributes["{DRIVER}"]'
CAPACITY = f'device.capacity["{DRIVER}"]'


def seen(**more: Any) -> SeenDevice:
    device = make_device(
        "gpu-0",
        capacity={"memory": "40Gi"},
        model="H100",
        numa=1,
        ecc=True,
        version={"version": "2.1.0-rc.1"},
        fields={"allowMultipleAllocations": False, **more},
    )
    device["attributes"]["other.example.com/rack"] = {"string": "r7"}
    return SeenDevice(msgspec.convert(device, Device), DRIVER)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        pytest.param(f'device.driver == "{DRIVER}"', True, id="the driver"),
        pytest.param(f'{OWN}.model == "H100"', True, id="a text"),
        pytest.param(f"{OWN}.numa % 2 == 1", True, id="a number"),
        pytest.param(f"!{OWN}.ecc", False, id="a boolean"),
        pytest.param(f"{OWN}.ecc", True, id="a boolean attribute as the result"),
        pytest.param(f'{OWN}.model in ["A100", "L4"]', False, id="in a list"),
        pytest.param(f'{OWN}.model.matches("^[AH][0-9]+$")', True, id="a pattern"),
        pytest.param(f'{OWN}.model.lowerAscii() == "h100"', True, id="the string library"),
        pytest.param(f'{OWN}.numa == "1"', False, id="values of two types are not equal"),
        pytest.param('device.attributes["other.example.com"].rack == "r7"', True, id="a domain"),
        pytest.param('has(device.attributes["no.example.com"].rack)', False, id="no such domain"),
        pytest.param(f'"rack" in {OWN}', False, id="no such attribute"),
        pytest.param(f"{OWN}.?rack.orValue(5) == 5", True, id="an optional attribute"),
        pytest.param(f"{OWN}.rack == 1 || {OWN}.ecc", True, id="an error absorbed by ||"),
        pytest.param(f"cel.bind(d, {OWN}, d.ecc && d.numa == 1)", True, id="cel.bind"),
        pytest.param("device.allowMultipleAllocations", False, id="allowMultipleAllocations"),
        pytest.param(f'{CAPACITY}.memory == quantity("40960Mi")', True, id="equal amounts"),
        pytest.param(
            f'{CAPACITY}.memory.compareTo(quantity("80Gi")) < 0', True, id="amounts compared"
        ),
        pytest.param(
            f'{CAPACITY}.memory.isGreaterThan(quantity("30G"))', True, id="amounts of two kinds"
        ),
        pytest.param(
            f'{CAPACITY}.memory.sub(quantity("39Gi")).asInteger() == 1073741824',
            True,
            id="quantity arithmetic",
        ),
        pytest.param('isQuantity("40Gi") && !isQuantity("40Giga")', True, id="isQuantity"),
        pytest.param(f'{OWN}.version.isLessThan(semver("2.1.0"))', True, id="versions compared"),
        pytest.param(f'{OWN}.version == semver("2.1.0-rc.1+b")', True, id="equal versions"),
        pytest.param(f"{OWN}.version.major() == 2 && {OWN}.version.patch() == 0", True, id="parts"),
        pytest.param('semver("v1.2", true).minor() == 2', True, id="a normalized version"),
        pytest.param('isSemver("v1.2", true) && !isSemver("v1.2")', True, id="isSemver"),
    ],
)
def test_an_expression_selects_or_rejects_a_device(expression: str, answer: bool) -> None:
    assert compile_expression(expression).matches(seen()) is answer


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param(f'{OWN}.rack == "r7"', "^no such key: rack$", id="no such attribute"),
        pytest.param(
            'device.attributes["no.example.com"].rack == "r7"',
            "^no such key: rack$",
            id="no such domain",
        ),
        pytest.param(f"{OWN}.numa", "could not be converted to bool", id="a number"),
        pytest.param(f'{CAPACITY}.memory.compareTo(semver("1.0.0")) > 0', "overload", id="mixed"),
        pytest.param('quantity("much").sign() > 0', "not a quantity", id="no amount"),
        pytest.param(f'{OWN}.model.matches("(")', "regular expression", id="no pattern"),
    ],
)
def test_a_failing_expression_reports_the_reason(expression: str, problem: str) -> None:
    with pytest.raises(CelError, match=problem):
        compile_expression(expression).matches(seen())


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("device.driver ==", "Syntax error", id="an incomplete expression"),
        pytest.param("device.nope == 1", "undeclared reference", id="no such field"),
        pytest.param('"a" + 1 == ""', "no matching overload", id="incompatible types"),
        pytest.param("device.driver", "must evaluate to bool", id="a text"),
    ],
)
def test_an_invalid_expression_is_rejected_in_one_line(expression: str, problem: str) -> None:
    with pytest.raises(CelError, match=problem) as caught:
        compile_expression(expression)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param('device.driver == "d"', {"device", "driver", "d"}, id="none"),
        pytest.param(
            f"{OWN}.numa == 1 && {CAPACITY}.memory.sign() > 0", {"numa", "memory"}, id="two"
        ),
        pytest.param(f'"rack" in {OWN} && {OWN}["ecc"]', {"rack", "ecc"}, id="by text"),
        pytest.param(f"{OWN}.?rack.hasValue()", {"rack"}, id="an optional one"),
        pytest.param(f"cel.bind(d, {OWN}, d.ecc)", None, id="a name for all of them"),
        pytest.param(f'{OWN}.exists(k, k == "ecc")', None, id="each of them"),
        pytest.param(f'"e" + "cc" in {OWN}', None, id="a computed name with in"),
        pytest.param(f"{OWN} == {OWN}", None, id="all of them compared"),
        pytest.param('device.attributes.exists(d, d == "x")', None, id="each domain"),
        pytest.param("device.attributes[device.driver].ecc", None, id="a computed domain"),
        pytest.param(f'{OWN}["e" + "cc"]', None, id="a computed name"),
        pytest.param(f"device.attributes [ '{DRIVER}' ] . ecc", None, id="unusual spacing"),
        pytest.param(f"size({OWN}) > 2", None, id="how many there are"),
    ],
)
def test_attributes_that_an_expression_can_read(expression: str, names: set[str] | None) -> None:
    found = names_in(expression)

    assert (found is None) == (names is None)
    assert found is None or names is None or names <= found


def test_without_the_library_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cel_expr_python", None)
    device_expressions._environment.cache_clear()
    try:
        with pytest.raises(CelError, match=r"install bayplan\[dra\]"):
            device_expressions.Expression("true")
    finally:
        monkeypatch.undo()
        device_expressions._environment.cache_clear()
    assert device_expressions.Expression("true").matches(seen())
