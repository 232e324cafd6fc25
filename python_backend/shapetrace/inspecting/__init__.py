"""Looking at a value so that neither the program nor torch notices."""
