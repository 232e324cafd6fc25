"""Fingerprints of returned tensors, imported only by recordings that ask for them.

Modules:

- ``looking_state``: one thread's part: reads what a call returned
- ``inside``: the tensors in a value
- ``readable``: whether a tensor can be read; reads it unnoticed
- ``looking``: the fingerprint of one tensor
- ``moments``: counts, sums and extremes of a tensor
- ``places``: which elements are sampled
- ``fingerprints``: the fingerprints of each variant
- ``keeping``: bounded memory for many calls
"""
