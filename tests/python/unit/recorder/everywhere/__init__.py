"""Programs, and what a trace says of them on every Python."""
