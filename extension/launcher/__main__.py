"""Stands in for the debugger's launcher, which runs inside the user's terminal.

Only there is it known what the terminal's shell has in PYTHONPATH. Prepends our folder to that, and
becomes the real launcher: the one named by an argument before the launcher's own, or the bundled
one. Any Python 3 must be able to run this: it is the program's own.
"""

import os
import runpy
import sys


def main() -> None:
    """Prepend, then become the launcher."""
    extension = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    backend = os.path.join(extension, "python_backend")
    former = os.environ.get("PYTHONPATH")
    if former != backend and not (former or "").startswith(backend + os.pathsep):
        os.environ["PYTHONPATH"] = backend + os.pathsep + former if former else backend
    if os.path.isabs(sys.argv[1]) and os.path.isdir(sys.argv[1]):
        launcher = sys.argv.pop(1)
    else:
        launcher = os.path.join(extension, "python_libraries", "debugpy", "debugpy", "launcher")
    # As if Python had been started with the launcher: it looks for its package from there.
    sys.argv[0] = sys.path[0] = launcher
    runpy.run_path(os.path.join(launcher, "__main__.py"), run_name="__main__")


if __name__ == "__main__":
    main()
