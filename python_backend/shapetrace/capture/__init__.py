"""Capturing values: which, when they changed, from which ranks, and where they are kept."""
