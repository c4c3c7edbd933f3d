"""hatch_build: compile the amounts kernel, for wheels (as hatchling's build hook) and in place (`make kernel`).

The extension module is optional: without it bayplan/amounts/kernel.py uses NumPy. So a missing compiler never fails a
build; one line says that the wheel is pure Python, and why. The environment variable BAYPLAN_BUILD_KERNEL changes that:
`require` makes it an error, `skip` does not try to compile. An editable install is a path entry and compiles nothing.

    python hatch_build.py           # compile next to the source, unless the extension was compiled from it
    python hatch_build.py --check   # say what is missing for compiling; ends with 1 when something is
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
SOURCE = "bayplan/amounts/_kernel.pyx"
MODULE = "bayplan.amounts._kernel"
VARIABLE = "BAYPLAN_BUILD_KERNEL"
PURE = "The wheel is pure Python and uses NumPy, which is slower."
MODES = ("auto", "require", "skip")

# The numbers must be those of NumPy: int64 wraps around, and no product and sum are fused into one operation with one
# rounding. Errors and traps of the floating-point unit are not read, which lets the compiler use vectors.
UNIX_FLAGS = (
    "-O3",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-g0",
)
# MSVC wraps around without being told; /fp:precise is what forbids the reordering of floating-point operations.
MSVC_FLAGS = ("/O2", "/fp:precise")
DIGEST_MACRO = "KERNEL_SOURCE_DIGEST"
"""The source turns this into a text that `bayplan/compiled_kernel.py` searches for in the module."""


def load_compiled_kernel() -> ModuleType:
    """The module `bayplan.compiled_kernel`, from its file: the package may not be importable during a build."""
    path = ROOT / "bayplan" / "compiled_kernel.py"
    spec = importlib.util.spec_from_file_location("bayplan_compiled_kernel", path)
    assert spec is not None, f"expected a Python file: {path}"
    assert spec.loader is not None, f"expected a Python file: {path}"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled_kernel = load_compiled_kernel()


class KernelError(Exception):
    """The extension module could not be compiled."""


class KernelBuildHook(BuildHookInterface[Any]):
    """Adds the compiled kernel to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        mode = build_mode()
        if mode == "skip":
            self.app.display_info(f"kernel: not compiled: {VARIABLE}=skip. {PURE}")
            return
        self._folder = tempfile.TemporaryDirectory(prefix="bayplan-kernel-")
        try:
            extension = compile_kernel(Path(self.root), Path(self._folder.name))
        except KernelError as problem:
            if mode == "require":
                raise
            self.app.display_warning(f"kernel: not compiled: {problem}. {PURE}")
            return
        build_data["force_include"][str(extension)] = extension_path()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()


def build_mode() -> str:
    """Value of BAYPLAN_BUILD_KERNEL: auto, require or skip."""
    mode = os.environ.get(VARIABLE) or "auto"
    if mode not in MODES:
        raise SystemExit(
            f'{VARIABLE}: expected {", ".join(MODES[:-1])} or {MODES[-1]}; got "{mode}"'
        )
    return mode


def extension_path() -> str:
    """Path of the extension module for this Python in the package."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return f"{SOURCE.removesuffix('.pyx')}{suffix}"


def missing_part() -> str | None:
    """Name of the part that compiling lacks on this machine with this Python; None if all are there."""
    for module in ("Cython", "setuptools"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    if os.name == "nt":  # setuptools searches for MSVC; compiling says whether it found it
        return None
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    name = compiler.split()[0]
    if shutil.which(name) is None:
        return f"no C compiler ({name})"
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        return f"no headers of Python ({header})"
    return None


def compile_kernel(root: Path, folder: Path) -> Path:
    """Compile into `folder`, with the digest of the sources; returns the module. Raises a KernelError."""
    missing = missing_part()
    if missing is not None:
        raise KernelError(missing)
    from Cython.Build import cythonize
    from Cython.Compiler.Errors import CompileError
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext
    from setuptools.errors import BaseError

    digest = compiled_kernel.source_digest((root / SOURCE).parent)

    class BuildKernel(build_ext):
        def build_extensions(self) -> None:
            is_msvc = self.compiler.compiler_type == "msvc"
            for extension in self.extensions:
                extension.extra_compile_args = list(MSVC_FLAGS if is_msvc else UNIX_FLAGS)
                extension.define_macros = [(DIGEST_MACRO, digest)]
            super().build_extensions()

    before = Path.cwd()
    os.chdir(root)  # the path of the source in the generated C code is relative
    try:
        extension = Extension(MODULE, [SOURCE], include_dirs=[str(Path(SOURCE).parent)])
        modules = cythonize([extension], quiet=True, force=True, build_dir=str(folder / "cython"))
        command = BuildKernel(Distribution({"ext_modules": modules}))
        command.build_lib = str(folder / "lib")
        command.build_temp = str(folder / "temp")
        command.ensure_finalized()
        command.run()
    except (BaseError, CompileError, OSError) as problem:
        raise KernelError(f"{type(problem).__name__}: {problem}") from problem
    finally:
        os.chdir(before)
    return folder / "lib" / extension_path()


def compile_in_place(root: Path = ROOT) -> str | None:
    """Bring the extension module beside the source up to date; returns a line about it, None if it is fresh.

    A stale module that cannot be compiled is removed.
    """
    target = root / extension_path()
    mode = build_mode()
    if target.is_file() and compiled_kernel.is_fresh(target):
        return None
    missing = f"{VARIABLE}=skip" if mode == "skip" else missing_part()
    if missing is not None:
        target.unlink(missing_ok=True)
        if mode == "require":
            raise KernelError(missing)
        return f"kernel: not compiled: {missing}. NumPy is used, which is slower."
    with tempfile.TemporaryDirectory(prefix="bayplan-kernel-") as folder:
        extension = compile_kernel(root, Path(folder))
        new = target.with_name(f"{target.name}.new")
        shutil.copyfile(extension, new)
        new.replace(target)  # another process may have the old one open
    return f"kernel: compiled {target.relative_to(root)}"


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        missing = missing_part()
        print(f"kernel: {missing}" if missing else "kernel: can be compiled")
        return 1 if missing else 0
    if arguments:
        print(
            f"hatch_build.py: expected no argument or --check; got {' '.join(arguments)}",
            file=sys.stderr,
        )
        return 2
    try:
        done = compile_in_place()
    except KernelError as problem:
        print(f"kernel: not compiled: {problem}", file=sys.stderr)
        return 1
    if done is not None:
        print(done)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
