"""Rows at leaves: batches add up, and examples are few and short."""

from __future__ import annotations

import numpy as np

from tests.estimator_cases import problem, quick
from thinleaf import LabelTreeClassifier, SoftmaxForestClassifier
from thinleaf.explain.explorer import NodeCounts
from thinleaf.explain.explorer.counts import LONGEST


def test_batches_add_up():
    X, y = problem(0, n_classes=8, n_rows=240)
    clf = SoftmaxForestClassifier(quick(), n_estimators=2, random_state=0).fit(X, y)
    model = clf.freeze(beam=2)
    whole, parts = NodeCounts(model), NodeCounts(model)
    ids = y.astype(np.int32)
    whole.add(X, ids, y.tolist())
    for begin in range(0, 240, 100):
        parts.add(X[begin : begin + 100], ids[begin : begin + 100], y[begin : begin + 100].tolist())
    parts.add(X[:0], ids[:0], [])
    for name in ("n_rows", "n_labelled", "n_wrong"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    assert whole.n_rows.sum() == 2 * 240
    assert (whole.total, whole.labelled) == (240, 240)
    assert whole.wrong == np.sum(model.predict(X) != y)


def test_rows_without_labels_are_neither_right_nor_wrong():
    X, y = problem(0, n_classes=8, n_rows=240)
    counts = NodeCounts(quick().fit(X, y).freeze())
    counts.add(X, np.full(240, -1, dtype=np.int32), [None] * 240)
    assert (counts.total, counts.labelled, counts.wrong) == (240, 0, 0)


def test_classes_are_counted_at_leaves():
    X, y = problem(0, n_classes=8, n_rows=240)
    model = quick(depth=2).fit(X, y).freeze()
    counts = NodeCounts(model)
    ids = y.astype(np.int32)
    for begin in (0, 100):
        end = 240 if begin else 100
        counts.add(X[begin:end], ids[begin:end], y[begin:end].tolist())
    out = counts.outline
    leaves = out.leaf[model.apply(X)]
    leaf = np.repeat(np.arange(out.n_leaves), np.diff(out.class_ptr))
    expected = [np.sum((leaves == i) & (y == c)) for i, c in zip(leaf, out.class_ids, strict=True)]
    assert counts.class_rows.tolist() == expected
    assert sum(len(rows) for rows in counts.samples) == 240


def test_a_label_tree_counts_at_predicted_labels():
    X, y = problem(0, n_classes=8, n_rows=240)
    model = LabelTreeClassifier(dim=4, epochs=2, random_state=0).fit(X, y).freeze()
    counts = NodeCounts(model)
    counts.add(X, y.astype(np.int32), y.tolist())
    found = counts.n_rows[counts.outline.leaf_of_class]
    assert np.array_equal(found, np.bincount(model.predict(X), minlength=8))


def test_rows_of_tables_keep_their_cells():
    X, y = problem(0, n_classes=8, n_rows=240)
    counts = NodeCounts(quick().fit(X, y).freeze(), n_examples=1)
    counts.add(X, y.astype(np.int32), y.tolist(), [("a text", "1.5")] * 239 + [("x" * 999, "2")])
    assert {example["text"] for example in counts.examples if example["whole"]} == {"a text | 1.5"}
    for example in counts.examples:
        assert example.get("cells") == (["a text", "1.5"] if example["whole"] else None)


def test_examples_are_few_and_short():
    X, y = problem(0, n_classes=8, n_rows=240)
    counts = NodeCounts(quick().fit(X, y).freeze(), n_examples=2)
    counts.add(X, y.astype(np.int32), y.tolist(), ["x" * 1000] * 240, np.arange(240) * 10)
    seen = {}
    for example in counts.examples:
        key = (tuple(example["leaves"]), example["wrong"])
        seen[key] = seen.get(key, 0) + 1
        assert len(example["text"]) == LONGEST
        assert not example["whole"]
        assert example["number"] % 10 == 0
    assert max(seen.values()) <= 2
