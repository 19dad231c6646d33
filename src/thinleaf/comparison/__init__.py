"""Models side by side: ours, the baselines and other libraries, trained and measured alike.

A :class:`Split` is the data, an :class:`Entry` names a model, :func:`compare` runs each entry in a
process of its own under a time limit, and :mod:`thinleaf.comparison.report` makes a table.
"""

from thinleaf.comparison.entries import Entry
from thinleaf.comparison.run import compare
from thinleaf.comparison.split import Split

__all__ = ["Entry", "Split", "compare"]
