"""``python -m shapetrace``: see ``shapetrace.cli.main``."""

from __future__ import annotations

import sys

from shapetrace.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
