"""Two hosts, as far as programs can tell: network namespaces with a cable between them.

They are made inside a user namespace, where every user may make them.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.machine import find_ip

PORT = 29500
"""In a namespace of its own any port is free."""


@dataclass(frozen=True)
class Host:
    address: str
    interface: str
    prefix: Sequence[str]
    """What goes before a command that runs there."""
    cut_command: Sequence[str]

    def cut_off(self) -> None:
        """Pull the cable."""
        _run(self.cut_command)


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    """The hosts, whose programs run in that folder."""
    # The namespaces end with the last process in them.
    with subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-c", "echo; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        inside = ["nsenter", f"--target={holder.pid}", "--user", "--mount", "--net"]
        inside += ["--preserve-credentials", "--"]
        yield _cabled(inside, folder)


def _cabled(inside: Sequence[str], folder: Path) -> tuple[Host, Host]:
    # Where `ip netns` keeps the names of namespaces.
    _run([*inside, "mount", "-t", "tmpfs", "none", "/run"])
    ip = find_ip() or "ip"
    for name in "ab":
        _run([*inside, ip, "netns", "add", name])
    cable = ["link", "add", "cable-a", "netns", "a"]
    _run([*inside, ip, *cable, "type", "veth", "peer", "name", "cable-b", "netns", "b"])
    hosts = []
    for number, name in enumerate("ab", 1):
        address, interface = f"10.213.77.{number}", f"cable-{name}"
        # As `ip netns exec` does, without its mount of /sys: not every system lets a user do that.
        there = [*inside, "nsenter", f"--net=/run/netns/{name}", "--"]
        _run([*there, ip, "address", "add", f"{address}/24", "dev", interface])
        for device in ("lo", interface):
            _run([*there, ip, "link", "set", device, "up"])
        cut = [*there, ip, "link", "set", interface, "down"]
        # Who enters other mounts is at their root.
        in_folder = [*there, "sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
        hosts.append(Host(address, interface, in_folder, cut))
    return hosts[0], hosts[1]


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)
