"""Documents: plain data as JSON and YAML on standard output."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import yaml

try:
    from yaml import CSafeDumper as _SafeDumper
except ImportError:  # PyYAML without libyaml
    from yaml import SafeDumper as _SafeDumper  # type: ignore[assignment]


class _Dumper(_SafeDumper):
    """Writes the same object out in full each time it comes, instead of a reference."""

    def ignore_aliases(self, data: Any) -> bool:
        """Nothing is ever referred to."""
        return True


def print_json_document(document: Any) -> None:
    """Print plain data as JSON."""
    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def print_yaml_document(document: Any) -> None:
    """Print plain data as YAML, in the order it has."""
    sys.stdout.write(format_yaml_document(document))


def format_yaml_document(document: Any) -> str:
    """Plain data as YAML, in the order it has."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text
