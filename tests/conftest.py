"""What all tests in Python have in common."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No test fails for being slow: the machine may be busy with others.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("patient")
