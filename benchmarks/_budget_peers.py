"""Other libraries given the same seconds of training as a fit to a budget.

fastText tunes itself on a fifth of the texts; PECOS and napkinXC have the grid of
``benchmarks._tuned``; scikit-learn has a halving search over linear models.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks._tuned import NAPKINS, PECOS, Contender, fitted, inner, search
from thinleaf.measuring import Split
from thinleaf.measuring.latency import N_SINGLE, Stopwatch, prepared_rows, single_latency
from thinleaf.measuring.peers import FastText, Pecos, fasttext_line

Peer = dict[str, Any]

STRENGTHS = (0.1, 1.0, 10.0)


def peers(split: Split, seconds: float) -> Iterator[Peer]:
    """Measure all that are installed and suit a split: error, single µs, bytes, seconds."""
    for measure in (fasttext, xr_linear, napkins, linear):
        try:
            yield from measure(split, seconds)
        except (ImportError, RuntimeError, ValueError) as error:
            print(f"skipped {measure.__name__}: {error}", flush=True)


def fasttext(split: Split, seconds: float) -> Iterator[Peer]:
    """Let fastText tune itself in those seconds."""
    if split.texts_train is None:
        return
    import fasttext as library

    class Tuned(FastText):
        def __init__(self, model: Any) -> None:
            super().__init__("autotuned")
            self.model = model

    order = np.random.default_rng(1).permutation(split.y_train.size)
    parts = np.split(order, [order.size // 5])
    with tempfile.TemporaryDirectory() as folder, Stopwatch() as watch:
        paths = []
        for name, rows in zip(("valid", "train"), parts, strict=True):
            lines = [
                f"__label__{split.y_train[i]} {fasttext_line(split.texts_train[i])}" for i in rows
            ]
            paths.append(Path(folder, name))
            paths[-1].write_text("".join(lines), encoding="utf-8")
        model = library.train_supervised(
            str(paths[1]), autotuneValidationFile=str(paths[0]), autotuneDuration=int(seconds),
            verbose=0, thread=os.cpu_count(),
        )  # fmt: skip
        file = Path(folder, "model.bin")
        model.save_model(str(file))
        n_bytes = file.stat().st_size
    system = Tuned(model)
    samples = system.samples(split, min(N_SINGLE, split.y_test.size))
    us = single_latency(system.one(), samples).median
    yield _peer(
        "fastText, autotuned", np.mean(system.predict(split) != split.y_test), us, n_bytes, watch
    )


def xr_linear(split: Split, seconds: float) -> Iterator[Peer]:
    """PECOS by its grid."""
    obstacle = Pecos().obstacle(split)
    if obstacle is not None:
        raise RuntimeError(obstacle)
    with Stopwatch() as watch:
        best = _grid(PECOS, split, seconds)
    system = Pecos(**best)
    system.fit(split)
    found = system.measured()
    error = np.mean(system.predict(split) != split.y_test)
    yield _peer(PECOS.name, error, found["single_us"], system.nbytes(), watch)


def napkins(split: Split, seconds: float) -> Iterator[Peer]:
    """Both models of napkinXC by their grids."""
    if not split.sparse:
        return
    for contender in NAPKINS:
        obstacle = contender.make().obstacle(split)
        if obstacle is not None:
            raise RuntimeError(obstacle)
        with Stopwatch() as watch:
            best = _grid(contender, split, seconds)
            system: Any = contender.make(**best)
            system.fit(split)
        samples = system.samples(split, min(N_SINGLE, split.y_test.size))
        us = single_latency(system.one(), samples).median
        error = np.mean(system.predict(split) != split.y_test)
        yield _peer(contender.name, error, us, system.nbytes(), watch)


def _grid(contender: Contender, split: Split, seconds: float) -> dict[str, Any]:
    """Return the best settings of a grid, as far as it comes in those seconds."""
    parts = inner(split)
    spent = Stopwatch()

    def error(settings: dict[str, Any]) -> float:
        if spent.seconds > 0.7 * seconds:
            return 1.0
        with spent:
            return fitted(contender, settings, parts)[0]

    return search(contender, error).best


def linear(split: Split, seconds: float) -> Iterator[Peer]:
    """Linear models of scikit-learn by a halving search, one call a prediction through NumPy."""
    models = {"logistic regression": LogisticRegression(), "LinearSVC": LinearSVC(random_state=0)}
    spent = Stopwatch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in models.items():
            cells = split.X_train.nnz if split.sparse else split.X_train.size
            if cells * split.n_classes > 1e9:
                print(f"skipped {name}: {split.n_classes:,} classes would take too long")
                continue
            with spent:
                found = halved(model, split)
            W, b = found.coef_.astype(np.float32), found.intercept_.astype(np.float32)
            one = _sparse_call(W, b) if split.sparse else (lambda x, W=W, b=b: (W @ x + b).argmax())
            us = single_latency(one, prepared_rows(split.X_test, min(N_SINGLE, 300))).median
            error = np.mean(found.predict(split.X_test) != split.y_test)
            yield _peer(f"{name}, halving", error, us, W.nbytes + b.nbytes, spent)


def halved(model: Any, split: Split) -> Any:
    """Return a model whose strength was chosen by rounds with twice the rows and half of them."""
    left = list(STRENGTHS)
    every = 4
    while len(left) > 1:
        parts = inner(split, every=every)
        errors = {}
        for C in left:
            model.set_params(C=C).fit(parts.X_train, parts.y_train)
            errors[C] = np.mean(model.predict(parts.X_test) != parts.y_test)
        left = sorted(left, key=errors.__getitem__)[: (len(left) + 1) // 2]
        every = max(1, every // 2)
    return model.set_params(C=left[0]).fit(split.X_train, split.y_train)


def _sparse_call(W: np.ndarray, b: np.ndarray) -> Any:
    rows = np.ascontiguousarray(W.T)
    return lambda indices, values: (values @ rows[indices] + b).argmax()


def _peer(name: str, error: Any, us: float, n_bytes: Any, watch: Stopwatch) -> Peer:
    return {
        "system": name,
        "error %": 100 * float(error),
        "single µs": float(us),
        "bytes": int(n_bytes),
        "fit s": watch.seconds,
    }
