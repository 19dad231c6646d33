"""Hostile model files: each made from a good one by a named function of ``corpus``."""
