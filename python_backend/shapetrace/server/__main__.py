"""``python -m shapetrace.server --stdio``: what the extension starts."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import BinaryIO


def main() -> int:
    """Serve the editor at the other end of standard input and output."""
    parser = argparse.ArgumentParser(prog="shapetrace.server", description=__doc__)
    parser.add_argument("--stdio", action="store_true", required=True, help="the only way so far")
    parser.add_argument("--log-level", default="WARNING", metavar="LEVEL", help="default: WARNING")
    options = parser.parse_args()
    # Before anything else is imported that might write or read something.
    reader, writer = take_standard_streams()
    logging.basicConfig(
        stream=sys.stderr,
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # Below this level, it writes every message in full.
    logging.getLogger("pygls").setLevel(logging.ERROR)

    from shapetrace.server import garbage
    from shapetrace.server.app import create_server

    garbage.begin()
    create_server().start_io(reader, writer)
    return 0


def take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """The channel to the editor, which only the server uses from now on.

    What is printed goes to standard error, and who reads from standard input finds it empty.
    """
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return reader, writer


if __name__ == "__main__":
    raise SystemExit(main())
