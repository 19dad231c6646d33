"""Models side by side: ours, the baselines and other libraries, trained and measured alike.

A :class:`Split` is the data, an :class:`Entry` names a model, :func:`compare` runs each entry in a
process of its own under a time limit, and :mod:`thinleaf.measuring.report` makes a table.
"""

from thinleaf.measuring.entries import Entry
from thinleaf.measuring.run import compare
from thinleaf.measuring.split import Split

__all__ = ["Entry", "Split", "compare"]
