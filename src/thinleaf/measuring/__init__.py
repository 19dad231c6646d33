"""Models measured: errors and reliability of one, and several side by side.

:func:`evaluate` says what a model does on labelled rows. A :class:`Split` is the data, an
:class:`Entry` names a model, :func:`compare` runs each entry in a process of its own under a time
limit, and :mod:`thinleaf.measuring.report` makes a table: ours, the baselines and other libraries,
trained and measured alike.
"""

from thinleaf.measuring.entries import Entry
from thinleaf.measuring.evaluation import Evaluation
from thinleaf.measuring.run import compare
from thinleaf.measuring.split import Split
from thinleaf.measuring.tally import evaluate

__all__ = ["Entry", "Evaluation", "Split", "compare", "evaluate"]
