"""Arguments of plugins, typed or as a file has them."""

from typing import Any

import pytest

from bayplan.config.plugin_args import NodeLabelArgs
from bayplan.errors import InputError
from bayplan.framework import typed_args


@pytest.mark.parametrize(
    ("given", "args"),
    [
        pytest.param(None, NodeLabelArgs(), id="none: the defaults"),
        pytest.param(NodeLabelArgs(("a",)), NodeLabelArgs(("a",)), id="typed already"),
        pytest.param({"absentLabels": ["b"]}, NodeLabelArgs((), ("b",)), id="as in a file"),
    ],
)
def test_typed_args(given: Any, args: NodeLabelArgs) -> None:
    assert typed_args(NodeLabelArgs, given) == args


@pytest.mark.parametrize("given", [{"presentLabels": 1}, ["a"], {"presentLabels": [None]}])
def test_what_does_not_fit_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="args: Expected"):
        typed_args(NodeLabelArgs, given)
