"""Compiled loops over the rows that a leaf keeps."""
