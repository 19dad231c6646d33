"""Compiled readers of texts: words and characters, terms, rows, and classes."""
