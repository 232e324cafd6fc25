"""Where traces go: each sink owns a resource, and opens, writes and closes it."""
