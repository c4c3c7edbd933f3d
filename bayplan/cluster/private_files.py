"""Private files: folders and files that only their owner can read, also those that existed before.

A path that belongs to another user is refused: that user could read it, or could have put it there. Checks and
changes are made on the open file, so that it cannot be exchanged in between, and links are not followed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from secrets import token_hex

from ..errors import InputError

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_private_folder(folder: Path) -> None:
    """Make a folder for its owner only, with its parents; one that exists gets the mode of a new one.

    Raises InputError if it belongs to another user or any user can write to it, OSError if it cannot be made.
    """
    for parent in reversed(folder.parents):
        if not parent.exists():
            parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        _check_owner(folder, found)
        if found.st_mode & (stat.S_IWOTH | stat.S_ISVTX):
            expected = "expected a folder that only its owner writes to, as this command makes one"
            mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
            raise InputError(f"{folder}: {expected}; got one that all users share ({mode})")
        _set_mode(descriptor, found, FOLDER_MODE)
    finally:
        os.close(descriptor)


def open_private(file: Path, flags: int = os.O_WRONLY) -> int:
    """Open a file for its owner only, and make it if it does not exist; returns the descriptor.

    Raises InputError if it belongs to another user or is no regular file, OSError if it cannot be opened.
    """
    descriptor = os.open(
        file, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE
    )
    try:
        found = os.fstat(descriptor)
        _check_file(file, found)
        _set_mode(descriptor, found, FILE_MODE)
    except BaseException:  # closed in any case
        os.close(descriptor)
        raise
    return descriptor


def keep_private(file: Path) -> None:
    """Let only the owner read a file, if it exists, without opening it: closing it would drop the locks of SQLite.

    Its folder must be private, so that no other user can exchange it meanwhile. Raises InputError if it belongs to
    another user or is no regular file.
    """
    try:
        found = file.lstat()
    except FileNotFoundError:
        return
    _check_file(file, found)
    if stat.S_IMODE(found.st_mode) != FILE_MODE:
        file.chmod(FILE_MODE)


def write_private(file: Path, content: bytes) -> None:
    """Write a file for its owner only, whole or not at all.

    Raises InputError if the file belongs to another user, OSError if it cannot be written.
    """
    check_owner(file)
    beside = file.with_name(f".{file.name}.{token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(beside, flags, FILE_MODE), "wb") as opened:
            opened.write(content)
        os.replace(beside, file)
    finally:
        beside.unlink(missing_ok=True)


def read_private(file: Path) -> bytes | None:
    """The bytes of a file, which gets a mode for its owner only; None if there is none.

    Raises InputError if it belongs to another user, OSError if it cannot be read.
    """
    try:
        file.lstat()
    except FileNotFoundError:
        return None
    with os.fdopen(open_private(file, os.O_RDONLY), "rb") as opened:
        return opened.read()


def check_owner(path: Path) -> None:
    """Raise InputError if there is something at `path` that belongs to another user."""
    try:
        found = path.lstat()
    except OSError:
        return  # absent or unreachable: writing reports the error
    _check_owner(path, found)


def _check_owner(path: Path, found: os.stat_result) -> None:
    user = os.geteuid()
    if found.st_uid != user:
        kind = "folder" if stat.S_ISDIR(found.st_mode) else "file"
        expected = f"expected a {kind} of the user who runs this command (uid {user})"
        raise InputError(f"{path}: {expected}; got one of uid {found.st_uid}")


def _check_file(path: Path, found: os.stat_result) -> None:
    _check_owner(path, found)
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: expected a regular file; got something else")


def _set_mode(descriptor: int, found: os.stat_result, mode: int) -> None:
    if stat.S_IMODE(found.st_mode) != mode:
        os.fchmod(descriptor, mode)
