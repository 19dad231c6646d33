"""The pictures of ``docs/explain.md``: trees and predictions on our data, small enough for a page.

``--models`` keeps fitted models in a directory, and takes those of ``benchmarks.explain`` from
there. Nothing is measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context

from benchmarks._data import load, read_tsv
from benchmarks._report import arguments
from benchmarks.explain import fitted
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier, TextClassifier
from thinleaf.explain.class_map import plot_class_map, plot_leaf_sizes
from thinleaf.explain.path_figure import plot_path
from thinleaf.explain.tree_figure import plot_tree

PAGE = Path(__file__).parents[1] / "docs" / "gallery"
LETTERS = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
LETTER_FEATURES = [
    "x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar", "y2bar", "xybar",
    "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx",
]  # fmt: skip
MOST_BYTES = 150_000


def keep(figure: Any, name: str, dpi: int = 80) -> None:
    """Write a picture, and complain if it is too large for a page."""
    path = PAGE / name
    undated = {"Software": None} if name.endswith("png") else {"Date": None}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):  # words stay words
        figure.savefig(path, dpi=dpi, metadata=undated)
    size = path.stat().st_size
    print(f"{path.name}: {size:,} bytes")
    if size > MOST_BYTES:
        raise ValueError(f"{name} has {size:,} bytes, more than {MOST_BYTES:,}")


def letter(data: Path, kept: Path | None) -> None:
    """Draw the tree of Letter."""
    rows = load(data, "letter")
    make = lambda: AdaptiveSoftmaxTreeClassifier(random_state=0)  # noqa: E731
    model = fitted(kept, "letter", make, rows.X_train, rows.y_train)
    y = rows.y_train
    if model.labels.dtype.kind in "iu":
        model = model.replaced(labels=LETTERS)
        y = LETTERS[y]
    model = model.replaced(feature_names=LETTER_FEATURES)
    keep(plot_tree(model, rows.X_train, y, max_leaves=40).figure, "letter_tree.svg")
    keep(plot_class_map(model, rows.X_train, y, kind="sunburst").figure, "letter_sunburst.png")
    keep(plot_leaf_sizes(model).figure, "letter_leaf_sizes.svg")


def diagnoses(data: Path, kept: Path | None) -> None:
    """Draw one prediction of a diagnosis text, and where the codes live."""
    y, texts = read_tsv(data / "icd10cm" / "train.tsv.gz")
    _, test = read_tsv(data / "icd10cm" / "test.tsv.gz")
    make = lambda: TextClassifier(random_state=0)  # noqa: E731
    model = fitted(kept, "icd10cm", make, texts, y)
    few = np.random.default_rng(0).permutation(len(texts))[:20_000]
    some, own = [texts[i] for i in few], y[few]
    keep(plot_class_map(model, some, own, max_leaves=120).figure, "icd10cm_icicle.png")
    keep(plot_tree(model, some, own, max_leaves=30, n_labels=5).figure, "icd10cm_tree.svg")
    text = next(t for t in test if 7 <= len(t.split()) <= 9)
    keep(plot_path(model.explain(text), n_features=4, n_candidates=2), "icd10cm_path.svg")


def glyphs(data: Path, kept: Path | None) -> None:
    """Draw the weight vectors of a tree of characters as pictures."""
    rows = load(data, "fontglyph1000")
    classes = np.unique(rows.y_train)[:60]
    chosen = np.isin(rows.y_train, classes)
    X, y = rows.X_train[chosen], rows.y_train[chosen]
    make = lambda: SoftmaxTreeClassifier(depth=3, leaf_classes=12, random_state=0)  # noqa: E731
    model = fitted(kept, "fontglyph60", make, X, y)
    names = (data / "fontglyph1000" / "classes.txt").read_text(encoding="utf-8").splitlines()
    signs = np.array([names[label].split("\t")[1] for label in model.labels.tolist()])
    model, y = model.replaced(labels=signs), signs[y]
    side = round(model.n_features**0.5)
    drawn = plot_tree(model, X, y, image_shape=(side, side), n_labels=6)
    keep(drawn.figure, "fontglyph_weights.png", 70)


def main() -> None:
    """Draw all."""
    parser = arguments(__doc__)
    parser.add_argument("--models", type=Path, help="directory where fitted models are kept")
    options = parser.parse_args()
    PAGE.mkdir(exist_ok=True)
    for draw in (letter, diagnoses, glyphs):
        draw(options.data, options.models)


if __name__ == "__main__":
    main()
