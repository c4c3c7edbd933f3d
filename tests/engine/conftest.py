"""Fixtures for the tests of the engine."""

import pytest

from bayplan.amounts import kernel


@pytest.fixture(params=["compiled", "NumPy"])
def kernel_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each form of the kernel."""
    form: str = request.param
    if form == "NumPy":
        monkeypatch.setattr(kernel, "compiled", None)
    elif kernel.compiled is None:
        pytest.skip("the extension module is not built (make kernel)")
    return form
