"""Compares two traces: which calls are in both, and what differs in them.

Pure: events in, frozen values out. The two runs are called A and B; either may be the good one.

Modules:

- ``call_groups``: the calls below one call, grouped by place, with keys for matching
- ``shared_places``: a place in words that both runs share
- ``sequences``: aligns two sequences, in nearly linear time
- ``matching``: pairs groups: same, moved, renamed, rebuilt, wrapped, replaced
- ``walk``: both traces as one sequence of steps
- ``loops``: which calls belong to one loop, and to which round
- ``aspects``: what differs in a call that both runs made
- ``limits``: the largest numbers of dtypes, which programs use for infinity
- ``addresses``: removes memory addresses from texts
- ``value_differences``: whether fingerprints differ by more than rounding
- ``counts``: whether calls were made differently often
- ``throughout``: differences that are so everywhere, to be said once
- ``compare``: the comparison: ``compare(a, b)``
- ``swapping``: swaps the sides of a comparison
- ``comparison``: the result, as frozen values
"""
