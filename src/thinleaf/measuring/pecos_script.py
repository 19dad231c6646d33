"""PECOS in an interpreter of its own: fit, predict and time, for :class:`.peers.Pecos`.

It is run as a script there, and imports nothing of thinleaf.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

N_TOP = 5


def median_us(batches: list[Any], model: Any, n_times: int) -> float:
    """Return microseconds a row: the median of passes, as :mod:`.latency` has it."""
    times = []
    for _ in range(n_times):
        start = time.perf_counter()
        for X in batches:
            model.predict(X, only_topk=1, threads=1)
        times.append(time.perf_counter() - start)
    n_rows = sum(X.shape[0] for X in batches)
    return float(1e6 * np.median(times) / n_rows)


def main() -> None:
    """Read a folder of arrays, write ``out.npz`` into it."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    folder = Path(sys.argv[1])
    parts = [sp.load_npz(folder / f"{part}.npz") for part in ("train", "test")]
    X, X_test = (sp.csr_matrix(part, dtype=np.float32) for part in parts)
    y = np.load(folder / "y.npy")
    given = json.loads((folder / "given.json").read_text(encoding="utf-8"))
    settings = given["settings"]
    tree = {name: settings.pop(name) for name in ("max_leaf_size",) if name in settings}
    Y = sp.csr_matrix((np.ones(y.size, np.float32), (np.arange(y.size), y)))
    start = time.perf_counter()
    embedded = LabelEmbeddingFactory.create(Y, X, method="pifa")
    chain = Indexer.gen(embedded, threads=1, seed=0, **tree)
    model = XLinearModel.train(X, Y, C=chain, threads=1, **settings)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as saved:
        model.save(saved)
        nbytes = sum(path.stat().st_size for path in Path(saved).rglob("*") if path.is_file())
        model = XLinearModel.load(saved, is_predict_only=True)
    rows = [X_test[i] for i in range(min(1000, X_test.shape[0]))]
    batch = median_us([X_test], model, 3) if given["timed"] else math.nan
    single = median_us(rows, model, 7) if given["timed"] else math.nan
    ranked = model.predict(X_test, only_topk=N_TOP, threads=1)
    top = np.full((X_test.shape[0], N_TOP), -1)
    for i in range(X_test.shape[0]):
        own = slice(*ranked.indptr[i : i + 2])
        best = ranked.indices[own][np.argsort(-ranked.data[own], kind="stable")]
        top[i, : best.size] = best
    np.savez(
        folder / "out.npz",
        top=top,
        nbytes=nbytes,
        train_seconds=seconds,
        single_us=single,
        batch_us=batch,
    )


if __name__ == "__main__":
    main()
