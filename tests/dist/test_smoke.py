"""Messages of the smoke test of `make dist` about installed commands that fail."""

from pathlib import Path

import pytest

from .smoke import (
    Environment,
    SmokeError,
    check_kernel,
    check_page,
    check_up,
    check_without_extras,
    simulated,
)


def make_environment(folder: Path, **programs: str) -> Environment:
    """An environment whose commands are these shell scripts."""
    bin_folder, work = folder / "venv" / "bin", folder / "work"
    bin_folder.mkdir(parents=True)
    work.mkdir()
    for name, script in programs.items():
        path = bin_folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return Environment(bin_folder, work)


def location(folder: Path, extras: str = "[]") -> str:
    return f"""echo '["{folder}/venv/lib/bayplan/__init__.py", {extras}]'"""


def test_a_wrong_exit_code_is_told_with_what_was_printed(tmp_path: Path) -> None:
    environment = make_environment(tmp_path, bayplan="echo no such file >&2; exit 2")

    with pytest.raises(SmokeError, match=r"expected exit code 1; got 2\nno such file"):
        simulated(environment)


def test_a_command_that_is_not_installed_is_named(tmp_path: Path) -> None:
    environment = make_environment(tmp_path, python=location(tmp_path))

    with pytest.raises(SmokeError, match=r"kubectl-bayplan --help: .*No such file"):
        check_without_extras(environment, ["kubectl-bayplan"], "1.2.3", "NumPy")


def test_another_version_is_told(tmp_path: Path) -> None:
    environment = make_environment(
        tmp_path, python=location(tmp_path), bayplan="echo bayplan 1.2.4"
    )

    with pytest.raises(
        SmokeError, match=r"--version: expected 'bayplan 1.2.3 \(kernel: NumPy\)\\n'; got"
    ):
        check_without_extras(environment, [], "1.2.3", "NumPy")


def test_another_kernel_than_that_of_the_wheel_is_told(tmp_path: Path) -> None:
    environment = make_environment(
        tmp_path, bayplan="echo 'bayplan 1.2.3 (kernel: compiled)'", python="echo NumPy"
    )

    with pytest.raises(SmokeError, match=r"KERNEL: expected 'compiled\\n'; got 'NumPy\\n'"):
        check_kernel(environment, "1.2.3", "compiled")
    with pytest.raises(SmokeError, match=r"--version: expected .*NumPy.*; got .*compiled"):
        check_kernel(environment, "1.2.3", "NumPy")


def test_a_package_from_elsewhere_is_told(tmp_path: Path) -> None:
    environment = make_environment(tmp_path, python=location(Path("/elsewhere")))

    with pytest.raises(SmokeError, match="expected the installed package; got /elsewhere"):
        check_without_extras(environment, [], "1.2.3", "NumPy")


def test_an_extra_that_was_not_asked_for_is_told(tmp_path: Path) -> None:
    environment = make_environment(tmp_path, python=location(tmp_path, '["pandas"]'))

    with pytest.raises(SmokeError, match=r"expected \[\]; got \['pandas'\]"):
        check_without_extras(environment, [], "1.2.3", "NumPy")


def test_a_page_without_its_script_is_told(tmp_path: Path) -> None:
    environment = make_environment(tmp_path, bayplan="echo '<style>huge' > page.html; exit 1")

    with pytest.raises(SmokeError, match="expected '<script' in the page"):
        check_page(environment)


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    environment = make_environment(tmp_path, bayplan="echo port in use >&2; exit 2")

    with pytest.raises(SmokeError, match=r"exports KUBECONFIG; got ''\nport in use"):
        check_up(environment)
