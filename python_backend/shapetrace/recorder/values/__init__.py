"""Fingerprints of what calls returned, where a recording was asked for them."""
