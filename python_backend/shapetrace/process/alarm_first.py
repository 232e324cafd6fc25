"""A handler of a signal that sets the clock before it enters Python.

A handler that Python code is behind waits for the interpreter first. Where a fault comes just as a
thread takes the interpreter's lock or gives it back, that is for ever. So a few instructions of the
processor's own come before it: ``signal(SIGALRM, SIG_DFL)``, ``alarm(seconds)``, and on to it.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import struct
import sys
from typing import Final

from shapetrace._asynchronous import is_asynchronous


class AlarmFirst:
    """Code that does this before a handler; the handler alone where there can be none."""

    def __init__(self, handler: int, seconds: int) -> None:
        self.address: Final = _placed(handler, seconds) or handler


def _placed(handler: int, seconds: int) -> int | None:
    make = _MAKERS.get(platform.machine())
    if make is None or sys.platform != "linux":
        return None
    c = ctypes.CDLL(None)
    set_handler, alarm = (ctypes.cast(each, ctypes.c_void_p).value for each in (c.signal, c.alarm))
    if set_handler is None or alarm is None:
        return None
    code = make(set_handler, alarm, handler, seconds)
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        memory[: len(code)] = code
    except (OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return None
    _kept.append(memory)
    # Never to be written and run at once, which hardened systems refuse; some refuse this as well.
    c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if c.mprotect(place, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        return None
    return place


_kept: Final[list[mmap.mmap]] = []
"""For as long as the process runs: a signal may be under way."""


def _x86(set_handler: int, alarm: int, handler: int, seconds: int) -> bytes:
    return b"".join(
        [
            b"\xf3\x0f\x1e\xfa",  # endbr64
            b"\x57",  # push rdi, which is the signal's number; the stack is aligned now
            b"\xbf" + struct.pack("<i", signal.SIGALRM),  # mov edi, SIGALRM
            b"\x31\xf6",  # xor esi, esi
            b"\x48\xb8" + struct.pack("<Q", set_handler),  # mov rax, signal
            b"\xff\xd0",  # call rax
            b"\xbf" + struct.pack("<i", seconds),  # mov edi, seconds
            b"\x48\xb8" + struct.pack("<Q", alarm),  # mov rax, alarm
            b"\xff\xd0",  # call rax
            b"\x5f",  # pop rdi
            b"\x48\xb8" + struct.pack("<Q", handler),  # mov rax, handler
            b"\xff\xe0",  # jmp rax
        ]
    )


_MAKERS: Final = {"x86_64": _x86}
