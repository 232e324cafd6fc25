"""Captured values of many processes, brought to rank 0 without any collective call."""
