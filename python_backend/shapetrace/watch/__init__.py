"""Following variables by name wherever a program assigns them, without editing it."""
