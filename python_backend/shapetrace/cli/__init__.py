"""The command line: ``python -m shapetrace``."""
