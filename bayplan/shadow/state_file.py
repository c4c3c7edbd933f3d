"""State file: the account on disk, so that a shadow continues after a restart."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ..api.own_documents import API_VERSION
from ..errors import InputError, OutputError
from .decision_account import DecisionAccount, account_of, account_tree

KIND = "ShadowState"


class StateFile:
    """Reads and writes the account at `path`; a file is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> DecisionAccount:
        """The account in the file; an empty one if there is no file."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return DecisionAccount()
        except OSError as error:
            raise self._fault(f"expected a file to read; got {error.strerror}") from None
        try:
            tree = msgspec.json.decode(content, type=dict)
            if (tree.get("apiVersion"), tree.get("kind")) != (API_VERSION, KIND):
                found = f"{tree.get('apiVersion')} {tree.get('kind')}"
                raise self._fault(f"expected {API_VERSION} {KIND}; got {found}")
            return account_of(tree.get("account") or {})
        except msgspec.DecodeError as error:
            raise self._fault(f"expected a file that `bayplan shadow` wrote; got {error}") from None

    def write(self, account: DecisionAccount) -> None:
        """Replace the file."""
        tree = {"apiVersion": API_VERSION, "kind": KIND, "account": account_tree(account)}
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            beside.write_bytes(msgspec.json.encode(tree) + b"\n")
            os.replace(beside, self._path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            problem = f"--state: {self._path}: expected room to write; got {error.strerror}"
            raise OutputError(problem) from None

    def _fault(self, problem: str) -> InputError:
        return InputError(f"--state: {self._path}: {problem}")
