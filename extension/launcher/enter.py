"""Run by the debugger in a program that it was attached to: brings Shapetrace's agent in.

``backend``, a folder of this extension, and ``session`` are given. What stands in the way is raised
as a RuntimeError, which the extension puts into words. Any Python has to be able to read this.
"""

import os
import sys

OLDEST = (3, 11)


def enter(backend, session):
    """Start the agent; its folder is on the path only for as long as it is looked for."""
    if sys.version_info[:2] < OLDEST:
        version = ".".join(map(str, sys.version_info[:3]))
        raise RuntimeError("shapetrace: python " + version)
    if not os.path.isdir(os.path.join(backend, "shapetrace")):
        raise RuntimeError("shapetrace: elsewhere")
    sys.path.insert(0, backend)
    try:
        from shapetrace.agent import bootstrap
    finally:
        if backend in sys.path:
            sys.path.remove(backend)
    bootstrap.enter(session)


enter(backend, session)  # noqa: F821 (both are given, as said above)
