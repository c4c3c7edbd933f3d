"""The page of the plugin API: each name that it lists exists, and it lists every name of `bayplan.framework`."""

import importlib
import re
from pathlib import Path
from typing import Any

from bayplan import framework

PAGE = Path(__file__).parents[2] / "docs" / "plugin-api.md"
BLOCK = re.compile(r"^::: (\S+)\n((?:    .*\n)*)", re.M)
DESCRIBED_BY_A_CLASS = {"CLUSTER", "GROUPS", "NODE_OBJECT", "NODE_ROW", "SKIP", "SUCCESS"}
"""Members of Scope and values of Status."""
IN_THE_GUIDE = {"MAX_SCORE"}
"""Constants that docs/plugins.md explains."""


def listed_names() -> dict[str, Any]:
    """The objects on the page by name; AttributeError or ImportError if one does not exist."""
    found: dict[str, Any] = {}
    for target, options in BLOCK.findall(PAGE.read_text() + "\n"):
        members = re.findall(r"\w+", options.partition("members:")[2])
        owner, _, name = target.rpartition(".")
        if members:
            module = importlib.import_module(target)
            found |= {member: getattr(module, member) for member in members}
        else:
            found[name] = getattr(importlib.import_module(owner), name)
    return found


def test_every_name_on_the_page_exists() -> None:
    assert len(listed_names()) > 50


def test_the_page_has_every_name_of_the_contract() -> None:
    missing = set(framework.__all__) - listed_names().keys() - DESCRIBED_BY_A_CLASS

    assert missing == IN_THE_GUIDE
