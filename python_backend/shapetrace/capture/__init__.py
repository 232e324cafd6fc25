"""Values of a model while it runs: outputs, arguments and variables, by path."""
