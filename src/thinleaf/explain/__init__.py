"""Looking at fitted trees. Nothing here trains, and nothing is imported before it is asked for.

:mod:`thinleaf.explain.plots` draws figures, and needs the ``plot`` extra.
"""
