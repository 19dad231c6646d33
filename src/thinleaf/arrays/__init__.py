"""Arrays as they come in and as they are kept: rows, checks, files."""
