"""The CPU clock of this process counts instructions, a nanosecond for each: they are the same in every run.

Python imports it at the start of a process that has this folder in PYTHONPATH.
"""

import ctypes
import os
import platform
import struct
import time

SYSCALLS = {"x86_64": 298, "aarch64": 241}
"""Number of perf_event_open."""
HARDWARE, INSTRUCTIONS, ATTRIBUTE_BYTES = 0, 1, 112
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6


def open_counter() -> int:
    """A file that has the number of instructions of this process and its threads so far."""
    attribute = bytearray(ATTRIBUTE_BYTES)
    struct.pack_into("IIQ", attribute, 0, HARDWARE, ATTRIBUTE_BYTES, INSTRUCTIONS)
    struct.pack_into("Q", attribute, 40, INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR)
    content = (ctypes.c_char * ATTRIBUTE_BYTES).from_buffer(attribute)
    system = ctypes.CDLL(None, use_errno=True)
    number = SYSCALLS.get(platform.machine())
    if number is None:
        raise SystemExit(f"expected x86_64 or aarch64; got {platform.machine()}")
    counter: int = system.syscall(number, content, 0, -1, -1, 0)
    if counter < 0:
        raise SystemExit(
            f"expected a counter of instructions; got: {os.strerror(ctypes.get_errno())} "
            "(see /proc/sys/kernel/perf_event_paranoid; many virtual machines have none)"
        )
    return counter


if os.environ.get("BAYPLAN_COUNT_INSTRUCTIONS"):
    COUNTER = open_counter()

    def count() -> int:
        """The instructions so far."""
        number: int = struct.unpack("Q", os.read(COUNTER, 8))[0]
        return number

    time.process_time_ns = count
