"""Requirements of some tests on the machine. Without them they are skipped, and `npm test` says so.

Run as a program, it says what is missing.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

IP = "the program ip (Debian: apt-get install iproute2)"
NAMESPACES = "namespaces of the kernel's, by unshare as a user may call it; not in a chroot"


def has_ip() -> bool:
    # Debian has it where only root's PATH looks.
    return find_ip() is not None


def find_ip() -> str | None:
    return shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")


@functools.cache
def has_namespaces() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--mount", "--net", "true"]
    return shutil.which("unshare") is not None and _works(command)


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


NEEDS: dict[str, Callable[[], bool]] = {IP: has_ip, NAMESPACES: has_namespaces}

needs_ip = pytest.mark.skipif(not has_ip(), reason=f"needs {IP}")
needs_namespaces = pytest.mark.skipif(not has_namespaces(), reason=f"needs {NAMESPACES}")

if __name__ == "__main__":
    missing = [what for what, has in NEEDS.items() if not has()]
    for what in missing:
        print(f"some tests are skipped: they need {what}")
    sys.exit(len(missing))
