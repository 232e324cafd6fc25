"""Two hosts, as far as programs can tell: network namespaces with a cable between them.

Where those are not permitted, two launchers on this host play the two: the processes then find each
other by the loopback interface, and no cable can be cut.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    address: str
    interface: str
    prefix: Sequence[str]
    """What goes before a command that runs there."""
    namespace: str = ""

    def cut_off(self) -> None:
        """Pull the cable."""
        _ip("-n", self.namespace, "link", "set", self.interface, "down")


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    with contextlib.ExitStack() as stack:
        try:
            hosts = _namespaces(stack)
        except (OSError, subprocess.CalledProcessError):
            hosts = Host("127.0.0.1", "lo", []), Host("127.0.0.1", "lo", [])
        yield hosts


def free_port(host: Host) -> int:
    """In a namespace of its own any port is free."""
    if host.namespace:
        return 29500
    with socket.socket() as chosen:
        chosen.bind((host.address, 0))
        port: int = chosen.getsockname()[1]
        return port


def _namespaces(stack: contextlib.ExitStack) -> tuple[Host, Host]:
    if shutil.which("ip") is None:
        raise FileNotFoundError("ip")
    names = [f"shapetrace-{os.getpid()}-{end}" for end in "ab"]
    # At most 15 characters.
    cables = [f"st{os.getpid()}{end}" for end in "ab"]
    hosts = []
    for name in names:
        _ip("netns", "add", name)
        stack.callback(_ip, "netns", "del", name)
    _ip(
        "link",
        "add",
        cables[0],
        "netns",
        names[0],
        "type",
        "veth",
        "peer",
        "name",
        cables[1],
        "netns",
        names[1],
    )
    for number, (name, cable) in enumerate(zip(names, cables, strict=True), 1):
        address = f"10.213.77.{number}"
        _ip("-n", name, "address", "add", f"{address}/24", "dev", cable)
        for interface in ("lo", cable):
            _ip("-n", name, "link", "set", interface, "up")
        hosts.append(Host(address, cable, ["ip", "netns", "exec", name], name))
    return hosts[0], hosts[1]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
