"""The explorer: a model as one page in which its tree can be walked, without a server.

What a page holds is in three blocks (:mod:`thinleaf.explain.explorer.block`): the tree with what
was counted at its nodes, what takes an input through it, and the weights of its leaves. Scripts and
styles are hand-written files in ``assets``; nothing is built, and a page loads nothing.
"""

from thinleaf.explain.explorer.counts import NodeCounts
from thinleaf.explain.explorer.page import Page, explore, write_page
from thinleaf.explain.explorer.samples import rows_in_words

__all__ = ["NodeCounts", "Page", "explore", "rows_in_words", "write_page"]
