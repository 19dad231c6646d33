"""Compiled inner loops: numba only, no objects, no allocation decisions.

A wrapper allocates, a kernel fills. Nothing here knows what training minimises.
"""
