"""What an explanation costs, and whether it names the words that matter.

Times are of ``explain`` alone, of its text, and of all its values as JSON has them, on test rows;
before anything is timed, all sums are checked to be exact. The deletion test takes the five words
of a text that contribute most to its label away, or five others drawn at random, and looks how far
the label's probability falls; texts of at least eight words, which keep some. ``--models`` keeps
fitted models in a directory and takes them from there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import load, read_tsv
from benchmarks._report import Table, arguments, table, write
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    LabelTreeClassifier,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
    TextClassifier,
)
from thinleaf import load as load_model
from thinleaf.measuring.latency import single_latency

N_ROWS = 300
N_DELETED = 5
N_LEAST = 8
"""Words of a text in the deletion test: fewer leave nothing to compare."""
N_DELETIONS = 1000


def fitted(
    directory: Path | None, name: str, make: Callable[[], Any], X: Any, y: Any, beam: Any = None
) -> Any:
    """Return a frozen model, fitted now or kept from before."""
    path = None if directory is None else directory / f"{name}.thinleaf"
    if path is not None and path.exists():
        return load_model(path)
    model = make().fit(X, y).freeze(beam=beam)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    return model


def systems(data: Path, kept: Path | None) -> list[tuple[str, Any, list[Any]]]:
    """Return models with rows or texts to explain."""
    letter = load(data, "letter")
    y, train = read_tsv(data / "clinc150" / "train.tsv.gz")
    _, test = read_tsv(data / "clinc150" / "test.tsv.gz")
    y_codes, codes = read_tsv(data / "icd10cm" / "train.tsv.gz")
    _, test_codes = read_tsv(data / "icd10cm" / "test.tsv.gz")
    rows = [row.astype(np.float32) for row in letter.X_test[:N_ROWS]]
    X, z = letter.X_train, letter.y_train
    tree = AdaptiveSoftmaxTreeClassifier
    seed: dict[str, Any] = {"random_state": 0}
    return [
        ("Letter, one path", fitted(kept, "letter", lambda: tree(**seed), X, z), rows),
        (
            "icd10cm, texts, one path",
            fitted(kept, "icd10cm", lambda: TextClassifier(**seed), codes, y_codes),
            test_codes[:N_ROWS],
        ),
        (
            "Letter, forest of 8 trees, beam 4",
            fitted(
                kept,
                "letter_forest",
                lambda: SoftmaxForestClassifier(n_estimators=8, **seed),
                X,
                z,
                beam=4,
            ),
            rows,
        ),
        (
            "clinc150, texts, Recall Tree",
            fitted(
                kept,
                "clinc150_recall",
                lambda: TextClassifier(RecallTreeClassifier(n_passes=3, **seed), features="words"),
                train,
                y,
            ),
            test[:N_ROWS],
        ),
        (
            "clinc150, texts, label tree",
            fitted(
                kept,
                "clinc150_label_tree",
                lambda: LabelTreeClassifier(arity=5, dim=50, epochs=10, ngrams=2, **seed),
                train,
                y,
            ),
            test[:N_ROWS],
        ),
    ]


def largest_gap(model: Any, rows: list[Any]) -> float:
    """Return the largest rounding of a score; ``AssertionError`` unless all sums are exact."""
    largest = 0.0
    for row in rows:
        e = model.explain(row)
        for path in e.paths:
            scores = [step.margin for step in path.steps]
            scores += [c.score for c in path.candidates if c.score is not None]
            for s in scores:
                assert s.bias + s.amounts.sum() + s.rounding == s.total
                assert s.bias + sum(p.amount for p in s.contributions) + s.rounding == s.total
                largest = max(largest, abs(s.rounding))
        for answer in e.answers:
            assert sum(answer.parts) + answer.rounding == answer.probability
        assert e.label == model.predict_one(row)
    return largest


def times(found: list[tuple[str, Any, list[Any]]]) -> Table:
    """Return microseconds of explanations."""
    rows = []
    for name, model, samples in found:
        gap = largest_gap(model, samples)
        calls = [(sample,) for sample in samples]
        another = model.labels.tolist()[0]
        uses: tuple[Callable[[Any], Any], ...] = (
            model.explain,
            lambda x, model=model: str(model.explain(x)),
            lambda x, model=model: model.explain(x).to_dict(),
            lambda x, model=model, another=another: model.explain(x, against=another),
        )
        latencies = [single_latency(use, calls) for use in uses]
        paths = [len(model.explain(sample).paths) for sample in samples[:50]]
        rows.append(
            [
                name,
                float(np.mean(paths)),
                *(f"{t.median:.0f} ({t.p99:.0f})" for t in latencies),
                gap,
            ]
        )
    headers = ["model", "paths", "explain µs", "and its text", "and all values", "with against"]
    return table([*headers, "largest rounding"], rows)


def deletions(name: str, model: Any, texts: list[str]) -> list[Any]:
    """Return what is left of the probability of a text's label without some of its words."""
    rng = np.random.default_rng(0)
    long = [text for text in texts if len(text.split()) >= N_LEAST][:N_DELETIONS]
    kinds: dict[str, list[str]] = {"most": [], "random": []}
    labels, before = [], []
    for text in long:
        e = model.explain(text)
        labels.append(e.label)
        before.append(e.probability)
        amounts = np.array([word.amount for word in e.words])
        chosen = {
            "most": np.argsort(-amounts, kind="stable")[:N_DELETED],
            "random": rng.choice(amounts.size, N_DELETED, replace=False),
        }
        for kind, gone in chosen.items():
            left = [word.text for i, word in enumerate(e.words) if i not in set(gone.tolist())]
            kinds[kind].append(" ".join(left))
    row: list[Any] = [name, len(long), float(np.mean(before))]
    for changed in kinds.values():
        p = model.label_proba(changed, labels)
        same = model.predict(changed) == np.array(labels)
        row += [float(np.mean(p)), float(np.mean(np.log(before) - np.log(p))), 100 * np.mean(same)]
    return row


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__)
    parser.add_argument("--models", type=Path, help="directory where fitted models are kept")
    options = parser.parse_args()
    found = systems(options.data, options.models)
    spent = times(found)
    tested = []
    for name in ("icd10cm", "clinc150"):
        y, train = read_tsv(options.data / name / "train.tsv.gz")
        _, test = read_tsv(options.data / name / "test.tsv.gz")
        make = lambda: TextClassifier(random_state=0)  # noqa: E731
        model = fitted(options.models, name, make, train, y)
        tested.append(deletions(name, model, test))
    columns = ["p", "fall of log p", "same label %"]
    headers = ["set", "texts", "p before"]
    headers += [f"{column}, {kind}" for kind in ("five most", "five random") for column in columns]
    write(
        "explain",
        "Explanations: what they cost, and whether they name what matters",
        "Median microseconds of a call, 99 of 100 calls in brackets; test rows, one thread. All "
        "sums were checked to be exact; what float32 leaves between the parts and a score is the "
        "rounding.",
        spent,
        f"Deletion test: the {N_DELETED} words that contribute most to the label are taken from a "
        f"text, or {N_DELETED} at random; test texts of {N_LEAST} words or more.",
        table(headers, tested),
    )


if __name__ == "__main__":
    main()
