"""Flags are read as kube-scheduler reads them, and none of its flags is missing."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.flags.command import FlagValues, read_flags
from bayplan.cli.flags.table import BY_NAME
from bayplan.errors import InputError

UPSTREAM = Path(__file__).with_name("kube_scheduler_flags.txt")
KUBEADM = [
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--bind-address=127.0.0.1",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=true",
]
"""The arguments in kubeadm's static pod manifest."""


def upstream() -> list[list[str]]:
    lines = UPSTREAM.read_text().splitlines()
    return [line.split(" ") for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("flag", upstream(), ids=lambda flag: flag[0])
def test_every_flag_of_kube_scheduler_is_there_with_its_kind_and_default(flag: list[str]) -> None:
    name, kind, *default = flag
    ours = BY_NAME[name]

    assert ours.kind.name.lower() == kind
    assert ours.default == "".join(default)
    assert ours.help


def test_the_arguments_of_kubeadm_are_read() -> None:
    values = FlagValues({name: texts[-1] for name, texts in read_flags(KUBEADM).items()})

    values.check()
    assert values.is_on("leader-elect")
    assert values.text("bind-address") == "127.0.0.1"
    assert list(values.remarks()) == []


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        pytest.param(["--v=2"], {"v": ["2"]}, id="a value behind ="),
        pytest.param(["--v", "2"], {"v": ["2"]}, id="a value as the next word"),
        pytest.param(["-v=2"], {"v": ["2"]}, id="the short form with ="),
        pytest.param(["-v", "2"], {"v": ["2"]}, id="the short form and a word"),
        pytest.param(["-v2"], {"v": ["2"]}, id="the short form and a number"),
        pytest.param(
            ["-v", "--leader-elect"], {"v": ["4"], "leader-elect": ["true"]}, id="-v alone"
        ),
        pytest.param(["-vv"], {"v": ["10"]}, id="-vv"),
        pytest.param(["--leader-elect"], {"leader-elect": ["true"]}, id="a switch"),
        pytest.param(["--leader-elect=false"], {"leader-elect": ["false"]}, id="a switch off"),
        pytest.param(["--leader_elect=false"], {"leader-elect": ["false"]}, id="with underscores"),
        pytest.param(["--master", "--odd"], {"master": ["--odd"]}, id="a value like a flag"),
        pytest.param(["--config="], {"config": [""]}, id="an empty value"),
        pytest.param(["--version"], {"version": ["true"]}, id="the version"),
        pytest.param(
            ["--plugins=a.py", "--plugins", "b.py"], {"plugins": ["a.py", "b.py"]}, id="repeated"
        ),
    ],
)
def test_all_forms_are_read(arguments: list[str], found: dict[str, list[str]]) -> None:
    assert read_flags(arguments) == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--leader-elct=true"],
            "expected a flag of kube-scheduler; got --leader-elct=true; did you mean --leader-elect?",
            id="a flag that is not there",
        ),
        pytest.param(["--config"], "--config: expected a value; got none", id="no value"),
        pytest.param(["there"], "expected a flag of kube-scheduler; got there", id="a word"),
        pytest.param(["-x"], "expected a flag of kube-scheduler; got -x", id="a short flag"),
    ],
)
def test_what_cannot_be_read_is_said(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_flags(arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("leader-elect", "yes", "expected true or false"),
        ("secure-port", "many", "expected a whole number"),
        ("kube-api-qps", "fast", "expected a number"),
        ("leader-elect-retry-period", "soon", "expected a duration"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        FlagValues({name: value}).check()
    assert str(caught.value).startswith(f"--{name}: {problem}")
    assert str(caught.value).endswith(f'got "{value}"')


def test_a_flag_without_effect_says_so() -> None:
    unused: list[Any] = [flag for flag in BY_NAME.values() if flag.unused]
    values = FlagValues({flag.name: flag.default for flag in unused})

    assert len(list(values.remarks())) == len(unused)
    assert "--port has no effect: the insecure port is gone" in " ".join(values.remarks())
