"""Guarded folder: a temporary folder that is removed also when its process is killed."""

from __future__ import annotations

import os
import subprocess
import tempfile

GUARD = 'exec 3<&0; (cat <&3; rm -rf -- "$1") >/dev/null 2>&1 &'
"""Removes a folder when its standard input ends, in a process that is no child of the one that started it."""


class GuardedFolder:
    """A temporary folder with a shell beside it, which waits for the end of a pipe.

    The pipe ends with this process, however it ends. Where there is no shell, as on Windows, a killed process leaves
    its folder.
    """

    def __init__(self, prefix: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=prefix)
        self.name = self._folder.name
        self._guard: subprocess.Popen[bytes] | None = None
        if os.name == "posix":
            self._guard = subprocess.Popen(
                ("/bin/sh", "-c", GUARD, "sh", self.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._guard.wait()

    def cleanup(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
