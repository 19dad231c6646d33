"""What the papers compare trees with, in the simplest honest form: the models, not the estimators.

Flat softmax and one-vs-all are a tree of one leaf (:mod:`thinleaf.baselines.linear`), so all that
predicts with trees predicts with them. MACH and double sampling score classes in ways of their own.
"""
