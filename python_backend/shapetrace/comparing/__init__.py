"""Comparing two traces: which calls are the same in both, and what differs in them.

Pure: events in, frozen values out. Ours are called A and B, whichever was good and whichever bad.
"""
