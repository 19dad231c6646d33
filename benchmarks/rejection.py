"""When not to answer: how well a score tells texts of known classes from others.

Half of a set's classes are known, for each seed another half: a ``TextClassifier`` at its defaults
is trained on their training texts. Of the test part, texts of known classes stand against those of
the other half, and against test texts of another set. Beside the score, the probability of the best
label alone. Precision is that of the 80 % of the known classes' test texts with the highest score.
The second table compares what ``reject`` promises with what it keeps, on the same texts.

The form of the score was chosen on training parts of clinc150, banking77 and uksoc_titles.

Usage: ``python -m benchmarks.rejection --data DATA --seeds 3 clinc150 banking77``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks._data import available, read_tsv
from benchmarks._records import Kept
from benchmarks._report import arguments, table, write
from thinleaf import TextClassifier
from thinleaf.text.rejection import signs

FOREIGN = {"clinc150": "banking77", "banking77": "clinc150"}
OTHERWISE = "uksoc_titles"
COVERAGE = 0.8
PRECISIONS = (0.9, 0.95, 0.98)


def run(directory: Path, name: str, seed: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return rows of both tables for one set and one half of its classes."""
    parts = {p: read_tsv(directory / name / f"{p}.tsv.gz") for p in ("train", "test")}
    foreign = FOREIGN.get(name, OTHERWISE)
    foreign_texts = read_tsv(directory / foreign / "test.tsv.gz")[1]
    classes = np.unique(parts["train"][0])
    known = np.random.default_rng(seed).permutation(classes)[: classes.size // 2]
    y, texts = _of(parts["train"], known, True)
    clf = TextClassifier(random_state=seed).fit(texts, y)
    y_test, known_texts = _of(parts["test"], known, True)
    _, unknown_texts = _of(parts["test"], known, False)
    model = clf.freeze()
    right = model.predict(known_texts) == y_test
    scores = {"score": _score, "top probability": _probability}
    rows = []
    for label, score in scores.items():
        of_known = score(model, known_texts)
        rows.append([
            name, seed, label, 100 * float(np.mean(~right)),
            _auroc(of_known[right], of_known[~right]),
            _auroc(of_known, score(model, unknown_texts)),
            _auroc(of_known, score(model, foreign_texts)),
            100 * _precision(of_known, right),
        ])  # fmt: skip
    kept = []
    for wanted in PRECISIONS:
        answered = ~model.rejects(known_texts, wanted)
        share = float(right[answered].mean()) if answered.any() else float("nan")
        rejected = [float(model.rejects(t, wanted).mean()) for t in (unknown_texts, foreign_texts)]
        kept.append([
            name, seed, wanted, 100 * float(answered.mean()), 100 * share,
            *(100 * r for r in rejected),
        ])  # fmt: skip
    return rows, kept


def _of(part: tuple[np.ndarray, list[str]], known: np.ndarray, wanted: bool) -> Any:
    y, texts = part
    at = np.flatnonzero(np.isin(y, known) == wanted)
    return y[at], [texts[i] for i in at]


def _score(model: Any, texts: list[str]) -> np.ndarray:
    rows, known = model.input.rows(texts), model.input.evidence(texts)
    weights = model.rejection.weights
    score = signs(model._predictor, rows, known) @ weights[:-1] + weights[-1]
    return np.where(known.n_known > 0, score, -np.inf)


def _probability(model: Any, texts: list[str]) -> np.ndarray:
    return model.predict_topk(texts, 1)[1][:, 0]


def _auroc(inside: np.ndarray, outside: np.ndarray) -> float:
    both = np.concatenate([inside, outside])
    ranks = np.unique(both, return_inverse=True)[1]  # infinity is none that it takes
    target = np.arange(both.size) < inside.size
    return float(roc_auc_score(target, ranks))


def _precision(score: np.ndarray, right: np.ndarray) -> float:
    best = np.argsort(-score, kind="stable")[: int(COVERAGE * score.size)]
    return float(right[best].mean())


def main() -> None:
    """Measure the sets that are asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("sets", nargs="*", default=["clinc150", "banking77"])
    Kept.add_option(parser)
    options = parser.parse_args()
    done = Kept(options.state)
    rows: list[list[Any]] = []
    kept: list[list[Any]] = []
    for name in options.sets:
        if not available(options.data, name):
            continue
        for seed in range(options.seeds):
            first, second = done.rows((name, seed), run, options.data, name, seed)
            rows += first
            kept += second
    headers = ["set", "seed", "by", "error %", "AUROC right / wrong", "AUROC known / unknown class",
               "AUROC known / other set", "precision % at 80 % coverage"]  # fmt: skip
    others = ["set", "seed", "wanted precision", "answered %", "of these right %",
              "rejected of unknown classes %", "rejected of another set %"]  # fmt: skip
    means = [
        [name, "mean", by, *(float(np.mean([r[i] for r in rows if (r[0], r[2]) == (name, by)]))
         for i in range(3, 8))]
        for name in dict.fromkeys(r[0] for r in rows)
        for by in ("score", "top probability")
    ]  # fmt: skip
    write(
        "rejection",
        "When not to answer",
        "Half of the classes are known. The test part's texts of known classes against those of "
        "unknown classes, and against the test texts of another set (clinc150 and banking77: each "
        "other).",
        table(headers, means + rows),
        "What `reject` keeps, on test texts of known classes, and what it rejects of others.",
        table(others, kept),
    )


if __name__ == "__main__":
    main()
