"""Screenshots of the explorer for ``docs/explorer.md`` and README: five models on our data.

Each page has a text or a row on its way. ``--models`` keeps fitted models in a directory, and takes
them from there. Nothing is measured.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks._data import load, read_tsv
from benchmarks._report import arguments
from benchmarks.explain import fitted
from benchmarks.explorer import chromium
from benchmarks.gallery import LETTER_FEATURES, LETTERS
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    LabelTreeClassifier,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
    TextClassifier,
)

DOCS = Path(__file__).parents[1] / "docs"
SIZE = {"width": 1400, "height": 780}
TEXT = "displaced fracture of the left femur, initial encounter"
REQUEST = "my card was stolen yesterday, please block it"
SEED: dict[str, Any] = {"random_state": 0}


def letter(model: Any) -> Any:
    """Return a model of Letter with names of letters and features."""
    labels = LETTERS[model.labels] if model.labels.dtype.kind in "iu" else model.labels
    return model.replaced(labels=labels, feature_names=LETTER_FEATURES)


def shot(opened: Any, model: Any, data: tuple[Any, Any], typed: str | None, **how: Any) -> None:
    """Write one picture.

    Parameters
    ----------
    opened : callable
        Opens a page.
    model : FrozenModel
    data : (rows, labels)
    typed : str or None
        What is typed; else an example is taken.
    **how
        ``title``, ``name`` of the picture in docs, ``dark``, and a ``node`` to look at.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.html"
        model.explore(path, *data, title=how["title"])
        page = opened(path)
        page.set_viewport_size(SIZE)
        page.emulate_media(
            color_scheme="dark" if how.get("dark") else "light", reduced_motion="reduce"
        )
        page.evaluate("explorer.app.canvas.fit()")
        if typed is None:
            page.evaluate("explorer.app.answers.tryExample()")
        else:
            page.fill("#in-A-0", typed)
        page.wait_for_selector(".best li")
        if "node" in how:
            page.evaluate("node => explorer.app.select(node, false)", how["node"])
        page.wait_for_timeout(600)
        target = DOCS / how["name"]
        page.screenshot(path=str(target))
        Image.open(target).quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)
        page.close()
        print(f"{target.name}: {target.stat().st_size:,} bytes")


def main() -> None:
    """Take all pictures."""
    parser = arguments(__doc__)
    parser.add_argument("--models", type=Path, help="directory where fitted models are kept")
    options = parser.parse_args()
    (DOCS / "gallery").mkdir(exist_ok=True)
    data, kept = options.data, options.models
    rows = load(data, "letter")
    X, y, letters = rows.X_train, rows.y_train, (rows.X_test, LETTERS[rows.y_test])
    codes_y, codes = read_tsv(data / "icd10cm" / "train.tsv.gz")
    codes_test = read_tsv(data / "icd10cm" / "test.tsv.gz")[::-1]
    requests_y, requests = read_tsv(data / "banking77" / "train.tsv.gz")
    requests_test = read_tsv(data / "banking77" / "test.tsv.gz")[::-1]
    adaptive = AdaptiveSoftmaxTreeClassifier
    tree = fitted(kept, "small_letter", lambda: adaptive(max_rounds=4, **SEED), X, y)
    forest = fitted(
        kept, "small_forest",
        lambda: SoftmaxForestClassifier(adaptive(max_rounds=2, **SEED), n_estimators=4, **SEED),
        X, y, beam=4,
    )  # fmt: skip
    recall = fitted(kept, "small_recall", lambda: RecallTreeClassifier(n_passes=3, **SEED), X, y)
    texts = fitted(kept, "icd10cm", lambda: TextClassifier(**SEED), codes, codes_y)
    label_tree = fitted(
        kept, "banking77_label_tree",
        lambda: LabelTreeClassifier(arity=5, dim=50, epochs=10, ngrams=2, **SEED),
        requests, requests_y,
    )  # fmt: skip
    with chromium() as opened:
        title = "ICD-10-CM diagnoses"
        shot(opened, texts, codes_test, TEXT, title=title, name="explorer.png")
        for model, own, typed, how in (
            (letter(tree), letters, None, {"title": "Letter", "name": "letter", "node": 0}),
            (texts, codes_test, TEXT, {"title": title, "name": "icd10cm", "dark": True}),
            (
                letter(forest), letters, None,
                {"title": "Letter: a forest, beam 4", "name": "forest"},
            ),
            (
                letter(recall), letters, None,
                {"title": "Letter: a Recall Tree", "name": "recall_tree", "dark": True},
            ),
            (
                label_tree, requests_test, REQUEST,
                {"title": "banking77: a label tree", "name": "label_tree"},
            ),
        ):  # fmt: skip
            name = f"gallery/explorer_{how['name']}.png"
            shot(opened, model, own, typed, **(how | {"name": name}))


if __name__ == "__main__":
    main()
