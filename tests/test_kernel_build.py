"""hatch_build.py: the kernel is compiled where that is possible; its absence is reported and is no error."""

import importlib.util
import os
import re
import shutil
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hatchling.bridge.app import Application

ROOT = Path(__file__).resolve().parent.parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
EXTENSION = f"bayplan/amounts/_kernel{SUFFIX}"


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hatch_build = load(ROOT / "hatch_build.py", "hatch_build")

needs_compiler = pytest.mark.skipif(
    hatch_build.missing_part() is not None,
    reason="nothing to compile with (hatch_build.py --check)",
)


(DIGEST,) = re.findall(
    r"^cdef extern from \*:.*?^SOURCE_DIGEST = .*?$",
    (ROOT / hatch_build.SOURCE).read_text(),
    re.DOTALL | re.MULTILINE,
)
"""The part of the real source that puts the digest into the module."""
SMALL = "\n\ndef wrapped(long long number):\n    return number + number\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose kernel is one small function."""
    monkeypatch.delenv("BAYPLAN_BUILD_KERNEL", raising=False)
    (tmp_path / "bayplan" / "amounts").mkdir(parents=True)
    (tmp_path / hatch_build.SOURCE).write_text(f"{DIGEST}{SMALL}")
    (tmp_path / "hatch_build.py").touch()
    return tmp_path


def run_hook(root: Path, version: str = "standard", target: str = "wheel") -> dict[str, Any]:
    """The build data after the hook, which begin as those of a pure wheel."""
    data: dict[str, Any] = {"force_include": {}, "pure_python": True, "infer_tag": False}
    hook = hatch_build.KernelBuildHook(str(root), {}, None, None, str(root), target, Application())
    hook.initialize(version, data)
    data["existed"] = [Path(path).is_file() for path in data["force_include"]]
    hook.finalize(version, data, "")
    return data


PURE = {"force_include": {}, "pure_python": True, "infer_tag": False, "existed": []}


@needs_compiler
def test_a_wheel_holds_the_extension_module_and_is_tagged_for_this_python(source: Path) -> None:
    data = run_hook(source)

    ((path, inside),) = data["force_include"].items()
    assert inside == EXTENSION
    assert data["existed"] == [True]
    assert not Path(path).exists(), "expected the files of the build to be removed"
    assert (data["pure_python"], data["infer_tag"]) == (False, True)


def test_a_wheel_without_a_compiler_is_pure_which_one_line_reports(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")

    assert run_hook(source) == PURE
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "kernel: not compiled: no C compiler (no-such-compiler). "
        "The wheel is pure Python and uses NumPy, which is slower."
    )


@needs_compiler
def test_a_wheel_whose_kernel_does_not_compile_is_pure(
    source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (source / hatch_build.SOURCE).write_text("def broken(:\n")

    assert run_hook(source) == PURE
    assert "kernel: not compiled: CompileError" in capfd.readouterr().err


def test_a_kernel_that_is_required_and_cannot_be_compiled_is_an_error(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("BAYPLAN_BUILD_KERNEL", "require")

    with pytest.raises(hatch_build.KernelError, match=r"no C compiler \(no-such-compiler\)"):
        run_hook(source)
    with pytest.raises(hatch_build.KernelError):
        hatch_build.compile_in_place(source)


def test_skip_compiles_nothing(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAYPLAN_BUILD_KERNEL", "skip")

    assert run_hook(source) == PURE
    assert "BAYPLAN_BUILD_KERNEL=skip" in hatch_build.compile_in_place(source)
    assert not (source / EXTENSION).exists()


@pytest.mark.parametrize(
    ("version", "target"),
    [
        pytest.param("editable", "wheel", id="an editable install is a path entry"),
        pytest.param("standard", "sdist", id="an sdist holds the source"),
    ],
)
def test_other_builds_compile_nothing(version: str, target: str, source: Path) -> None:
    assert run_hook(source, version, target) == PURE


def test_an_unknown_mode_is_named(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAYPLAN_BUILD_KERNEL", "yes")

    with pytest.raises(SystemExit, match='expected auto, require or skip; got "yes"'):
        run_hook(source)


@needs_compiler
def test_in_place_it_is_compiled_once_and_again_when_the_source_changes(source: Path) -> None:
    assert hatch_build.compile_in_place(source) == f"kernel: compiled {EXTENSION}"
    assert hatch_build.compile_in_place(source) is None
    assert sorted(path.name for path in (source / EXTENSION).parent.iterdir()) == [
        f"_kernel{SUFFIX}",
        "_kernel.pyx",
    ]
    module = load(source / EXTENSION, "bayplan.amounts._kernel")
    assert module.wrapped(2**62) == -(2**63)
    folder = (source / EXTENSION).parent
    assert hatch_build.compiled_kernel.source_digest(folder) == module.SOURCE_DIGEST

    os.utime(source / hatch_build.SOURCE, (2**31, 2**31))
    assert hatch_build.compile_in_place(source) is None, "the time of a file proves nothing"

    with (source / hatch_build.SOURCE).open("a") as stream:
        stream.write("\n\ndef another():\n    return 1\n")
    assert hatch_build.compile_in_place(source) == f"kernel: compiled {EXTENSION}"


@needs_compiler
def test_a_copied_module_is_stale_where_the_sources_differ(
    source: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (source / "bayplan/amounts/_vectors.h").touch()
    hatch_build.compile_in_place(source)
    folder = tmp_path_factory.mktemp("checkouts")

    copy = shutil.copytree(source, folder / "same")
    assert hatch_build.compiled_kernel.is_fresh(copy / EXTENSION)
    for changed in (hatch_build.SOURCE, "bayplan/amounts/_vectors.h", "hatch_build.py"):
        copy = shutil.copytree(source, folder / Path(changed).stem)
        (copy / changed).write_text("# changed\n")
        shutil.copyfile(source / EXTENSION, copy / EXTENSION)
        assert not hatch_build.compiled_kernel.is_fresh(copy / EXTENSION), changed


def test_a_stale_module_that_cannot_be_compiled_is_removed(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    (source / EXTENSION).touch()

    line = hatch_build.compile_in_place(source)

    assert line == (
        "kernel: not compiled: no C compiler (no-such-compiler). NumPy is used, which is slower."
    )
    assert not (source / EXTENSION).exists()


def test_a_module_for_another_python_is_left_alone(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    other = source / "bayplan" / "amounts" / "_kernel.cpython-27-x86_64-linux-gnu.so"
    other.touch()

    hatch_build.compile_in_place(source)

    assert other.exists()


@needs_compiler
def test_in_place_a_kernel_that_does_not_compile_is_an_error(source: Path) -> None:
    (source / hatch_build.SOURCE).write_text("def broken(:\n")

    with pytest.raises(hatch_build.KernelError, match="CompileError"):
        hatch_build.compile_in_place(source)


@pytest.mark.parametrize("module", ["Cython", "setuptools"])
def test_a_missing_tool_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == module else find(name)
    )

    assert hatch_build.missing_part() == f"{module} is not installed"


def test_the_command_names_the_missing_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hatch_build, "missing_part", lambda: "no C compiler (cc)")

    assert hatch_build.main(["--check"]) == 1
    assert capsys.readouterr().out == "kernel: no C compiler (cc)\n"
    assert hatch_build.main(["--sheck"]) == 2
