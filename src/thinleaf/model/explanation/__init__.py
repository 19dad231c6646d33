"""Why one input gets its label: the path, what pushed it there, and what its leaf adds up.

:mod:`~thinleaf.model.explanation.values` says what an explanation is, whatever model it is of;
:mod:`~thinleaf.model.explanation.packed_trees` makes it for packed trees and forests, ``labeltree``
for its own trees. Words and pages are made of these values alone.
"""
