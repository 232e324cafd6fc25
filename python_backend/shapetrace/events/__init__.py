"""What happened, as plain values: the model, its stored form, and its nesting."""
