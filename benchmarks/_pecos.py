"""PECOS in an interpreter of its own: fit, predict and time, for ``_systems.Pecos``."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel


def main() -> None:
    """Read a folder of arrays, write ``out.npz`` into it."""
    folder = Path(sys.argv[1])
    X, X_test = (
        sp.load_npz(folder / f"{part}.npz").astype(np.float32) for part in ("train", "test")
    )
    y = np.load(folder / "y.npy")
    Y = sp.csr_matrix((np.ones(y.size, np.float32), (np.arange(y.size), y)))
    start = time.perf_counter()
    chain = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), threads=1, seed=0)
    model = XLinearModel.train(X, Y, C=chain, threads=1)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as saved:
        model.save(saved)
        nbytes = sum(path.stat().st_size for path in Path(saved).rglob("*") if path.is_file())
        model = XLinearModel.load(saved, is_predict_only=True)
    start = time.perf_counter()
    predicted = model.predict(X_test, only_topk=1, threads=1)
    batch = (time.perf_counter() - start) / X_test.shape[0]
    rows = [X_test[i] for i in range(min(1000, X_test.shape[0]))]
    passes = []
    for _ in range(7):
        start = time.perf_counter()
        for row in rows:
            model.predict(row, only_topk=1, threads=1)
        passes.append((time.perf_counter() - start) / len(rows))
    np.savez(
        folder / "out.npz",
        predicted=np.asarray(predicted.argmax(axis=1)).ravel(),
        nbytes=nbytes,
        seconds=seconds,
        single=min(passes),
        batch=batch,
    )


if __name__ == "__main__":
    main()
