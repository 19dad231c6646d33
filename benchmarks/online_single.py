"""What one example costs a model that learns online, and what the model's state takes.

Time of ``learn_one`` and of ``partial_fit`` of one row, of models that have learned the training
part once; and the bytes of their state beside those of one-against-all, the paper's measure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks._data import Dataset, available, load
from benchmarks._report import arguments, table, write
from thinleaf import OnlineOneVsAllClassifier, RecallTreeClassifier
from thinleaf.measuring.latency import Stopwatch

SETS = ("letter", "icd10cm")
N_SINGLE = 2000


def seconds_a_row(clf: Any, data: Dataset, *, single: bool) -> float:
    """Return the mean time of rows that are learned one by one, the row in memory."""
    X, y = data.X_train, data.y_train.tolist()
    n = min(N_SINGLE, len(y))
    sparse = sp.issparse(X)
    rows = [X[i] if sparse else X[i : i + 1] for i in range(n)]
    if single:
        parts = [(r.indices, r.data) if sparse else (r[0], None) for r in rows]
        with Stopwatch() as clock:
            for (x, values), label in zip(parts, y, strict=False):
                clf.learn_one(x, label, values)
    else:
        n = min(n, 200)
        labels = [np.array([label]) for label in y[:n]]
        with Stopwatch() as clock:
            for row, label in zip(rows[:n], labels, strict=True):
                clf.partial_fit(row, label)
    return clock.seconds / n


def main() -> None:
    """Measure the sets that are there."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        if not available(options.data, name):
            continue
        data = load(options.data, name)
        flat = OnlineOneVsAllClassifier(negatives="known").partial_fit(data.X_train, data.y_train)
        for said, clf in (
            ("Recall Tree", RecallTreeClassifier()),
            ("one-against-all, known negatives", flat),
        ):
            if clf is not flat:
                clf.partial_fit(data.X_train, data.y_train)
            size = clf._predictor.nbytes
            rows.append(
                [
                    name,
                    said,
                    1e6 * seconds_a_row(clf, data, single=True),
                    1e6 * seconds_a_row(clf, data, single=False),
                    size / 1e6,
                    size / flat._predictor.nbytes,
                ]
            )
            print(rows[-1], flush=True)
    headers = ["set", "model", "learn_one µs", "partial_fit µs", "state MB", "of one-against-all"]
    write("online_single", "One example, and the state of online models", table(headers, rows))


if __name__ == "__main__":
    main()
