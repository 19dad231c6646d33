"""Fits within ``max_memory`` and to shards: the same tree where rows fit, a good one elsewhere."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import thinleaf
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.arrays.amounts import as_bytes
from thinleaf.estimators._base import large_fits, memory, out_of_core
from thinleaf.estimators._base.memory import give_back, room_for_rows
from thinleaf.model.tree import array_names


def texts(n_rows=1200, n_classes=24, n_features=300, seed=0):
    """Return sparse rows: words of a class, of its group of six, and any others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    word = rng.integers(0, n_features, (n_rows, 12))
    word[:, :4] = 4 * y[:, None] + rng.integers(0, 4, (n_rows, 4))
    word[:, 4:8] = 4 * n_classes + 8 * (y // 6)[:, None] + rng.integers(0, 8, (n_rows, 4))
    row = np.repeat(np.arange(n_rows), 12)
    X = sp.csr_matrix((np.ones(row.size, np.float32), (row, word.ravel())), (n_rows, n_features))
    X.data = 1 + np.log(X.data)
    return X, y


def same(a, b):
    names = (*array_names(), *array_names(sparse=True))
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Let parts be of a quarter of the rows or less, and temporary files be seen."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(large_fits, "room_in", lambda limit, executor: 36_000)
    return tmp_path


def adaptive(**parameters):
    return AdaptiveSoftmaxTreeClassifier(random_state=0, max_rounds=1, **parameters)


def fixed(**parameters):
    return SoftmaxTreeClassifier(depth=3, max_sweeps=3, random_state=0, **parameters)


@pytest.mark.parametrize("make", [adaptive, fixed])
def test_rows_that_fit_give_the_same_tree(make):
    X, y = texts()
    whole = make().fit(X, y)
    limited = make(max_memory="100G").fit(X, y)
    shards = [(X[i::3], y[i::3]) for i in range(3)]
    assert same(whole.tree_, limited.tree_)
    assert same(whole.tree_, make().fit_shards(shards).tree_)
    assert not hasattr(limited, "n_parts_")


@pytest.mark.parametrize("make", [adaptive, fixed])
def test_a_tree_of_parts_is_an_ordinary_model(make, small):
    X, y = texts()
    X_test, y_test = texts(seed=1)
    whole, parts = make().fit(X, y), make(max_memory=1000).fit(X, y)
    assert parts.n_parts_ >= 3
    assert list(small.iterdir()) == []
    parts.tree_.validate()
    assert parts.score(X_test, y_test) > whole.score(X_test, y_test) - 0.05
    assert parts.score(X_test, y_test) > 0.85
    assert_allclose(parts.predict_proba(X_test).sum(axis=1), 1.0)
    assert parts.node_weight_[0] == pytest.approx(y.size)
    assert_allclose(parts.feature_spread_, np.asarray(X.toarray().std(axis=0)), atol=1e-5)
    assert 0.9 < parts.coverage_ <= 1.0
    path = small / "model.thinleaf"
    parts.save(path, trainable=True)
    loaded = thinleaf.load_estimator(path)
    assert_array_equal(loaded.predict(X_test), parts.predict(X_test))
    assert loaded.n_parts_ == parts.n_parts_
    assert loaded.max_memory is None
    assert not hasattr(parts.set_params(max_memory=None).fit(X, y), "n_parts_")


def test_the_order_and_number_of_workers_change_nothing(small):
    X, y = texts()
    first = adaptive(max_memory=1000, n_jobs=1).fit(X, y)
    second = adaptive(max_memory=1000, n_jobs=2).fit(X, y)
    assert same(first.tree_, second.tree_)
    assert (first.beam_, first.temperature_) == (second.beam_, second.temperature_)


def test_dense_rows_may_be_mapped_into_memory(small):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, 3000)
    X = (rng.standard_normal((3000, 8)) + 4 * rng.standard_normal((12, 8))[y]).astype(np.float32)
    np.save(small / "X.npy", X)
    mapped = np.load(small / "X.npy", mmap_mode="r")
    parts = adaptive(max_memory=1000).fit(mapped, y)
    assert parts.n_parts_ >= 2
    assert parts.score(X, y) > 0.9
    assert not parts.sparse_input_


def test_weights_and_classes_count(small):
    X, y = texts()
    weight = np.where(y < 12, 2.0, 1.0)
    halves = {i: 0.5 if i < 12 else 1.0 for i in range(24)}
    model = fixed(max_memory=1000, class_weight=halves)
    model.fit(X, y, sample_weight=weight)
    assert model.node_weight_[0] == pytest.approx(y.size)
    balanced = fixed(max_memory=1000, class_weight="balanced").fit(X, y)
    assert balanced.node_weight_[0] == pytest.approx(y.size)
    assert balanced.score(X, y) > 0.9


def test_a_hierarchy_divides_the_classes(small):
    X, y = texts()
    paths = {label: f"group{label // 6}" for label in range(24)}
    model = adaptive(max_memory=1000, hierarchy=paths).fit(X, y)
    assert model.n_parts_ >= 3
    assert model.score(X, y) > 0.9


def write_libsvm(path, X, y):
    lines = []
    for i, label in enumerate(y):
        row = X[[i]]
        pairs = (f"{j + 1}:{v:.9g}" for j, v in sorted(zip(row.indices, row.data, strict=True)))
        lines.append(f"{label} {' '.join(pairs)}\n")
    path.write_text("".join(lines))
    return path


def test_shards_may_be_files(small):
    X, y = texts()
    folder = small / "data"
    folder.mkdir()
    files = [write_libsvm(folder / f"{i}.svm", X[i::4], y[i::4]) for i in range(4)]
    parts = adaptive(max_memory=1000).fit_shards(files)
    assert [entry.name for entry in small.iterdir()] == ["data"]
    assert parts.n_features_in_ == X.shape[1]
    assert parts.classes_.dtype == np.int64
    assert parts.score(X, y) > 0.9
    assert same(adaptive().fit_shards(files).tree_, adaptive().fit(X, y).tree_)


def test_shards_may_be_arrow_tables(small):
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 900)
    X = (rng.standard_normal((900, 3)) + 5 * rng.standard_normal((6, 3))[y]).astype(np.float32)
    names = ("a", "b", "c")
    tables = [
        pyarrow.table(dict(zip(names, X[i::3].T, strict=True)) | {"label": y[i::3]})
        for i in range(3)
    ]
    model = fixed().fit_shards(tables, feature_columns=names, label_column="label")
    assert model.score(X, y) > 0.9
    assert not model.sparse_input_


def test_ctrl_c_and_errors_leave_neither_files_nor_changes(small, monkeypatch):
    X, y = texts()
    model = adaptive(max_memory=1000)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(out_of_core, "fit_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "tree_")
    assert list(small.iterdir()) == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"checkpoint": "x"}, "checkpoint is for rows"),
        ({"monotone": True, "overlap": None}, "monotone=True is for rows"),
        ({"zero_probability": "epsilon", "validation_fraction": 0.2}, "give epsilon"),
        ({"max_depth": 1}, "max_depth=1 is too little"),
    ],
)
def test_what_parts_cannot_do_is_said(small, parameters, message):
    with pytest.raises(ValueError, match=message):
        adaptive(max_memory=1000, **parameters).fit(*texts(600))


def test_shards_that_cannot_be_trained_on_are_refused(small):
    X, y = texts(100)
    with pytest.raises(ValueError, match="no shards"):
        fixed().fit_shards([])
    with pytest.raises(ValueError, match="shard 1 is a int"):
        fixed().fit_shards([(X, y), 3])
    with pytest.raises(ValueError, match="all shards must be sparse"):
        fixed().fit_shards([(X, y), (X.toarray(), y)])
    with pytest.raises(ValueError, match="one label a row"):
        fixed().fit_shards([(X, y[:-1])])
    with pytest.raises(ValueError, match="rows must be"):
        fixed().fit_shards([(X, y)], rows="wide")
    path = Path(small) / "texts.tsv"
    path.write_text("a\tsome words\nb\tother words\n")
    with pytest.raises(ValueError, match="has texts"):
        fixed().fit_shards([path])


def test_memory_is_read_as_people_write_it():
    assert as_bytes("4G") == as_bytes("4 GiB") == as_bytes(4 * 2**30) == 4 * 2**30
    assert as_bytes("1.5m") == 1.5 * 2**20
    for wrong in ("", "4X", "-1G", 0, True, 2.5):
        with pytest.raises(ValueError, match="max_memory must be"):
            as_bytes(wrong)
    assert room_for_rows(13 * 2**30, 2**30) == 2**30
    with pytest.raises(ValueError, match="give at least 592 MiB"):
        room_for_rows(450 * 2**20, 400 * 2**20)


def test_memory_that_is_not_used_goes_back(monkeypatch):
    calls = []
    monkeypatch.setattr(memory, "_trim", lambda: calls.append)
    give_back()
    assert calls == [0]
    monkeypatch.setattr(memory, "_trim", lambda: None)  # a C library that cannot
    give_back()
