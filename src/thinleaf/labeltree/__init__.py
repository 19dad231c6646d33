"""M-ary trees over labels with a softmax at each node, fixed or learned (paper 004).

``tree`` is the structure, ``kinds`` the fixed trees, ``statistics`` what a node knows of its
labels, ``assign`` algorithms 2 and 3, ``training`` algorithm 1, ``model`` what predicts, and
``words`` the terms of texts. ``bilinear`` has the contexts of section 6, ``outputs`` what comes
after them.
"""
