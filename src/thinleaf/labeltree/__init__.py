"""M-ary trees over labels with a softmax at each node, fixed or learned (paper 004).

``label_tree`` is the structure, ``fixed_trees`` the kinds that are not learned, ``statistics`` what
a node knows of its labels, ``assign`` algorithms 2 and 3, ``training`` algorithm 1, ``model`` the
nodes and the embeddings, ``predictor`` and ``frozen`` what is deployed, and ``word_features`` the
terms of texts. ``bilinear`` has the contexts of section 6, ``output_layers`` what comes after them.
"""
