"""Models that the extension answers for: as Python does, without what Python needs."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import thinleaf
from tests.data.models.make import HERE as OLD
from tests.data.vectors.make import HERE
from tests.native.extension import extension, program, use_extension
from thinleaf.model import model_file
from thinleaf.native import _build
from thinleaf.text.rejection import Rejection

FILES = sorted([*HERE.glob("*.thinleaf"), *OLD.glob("*.safetensors")])
TEXTS = [
    "", "card", "My card was stolen, please help with the LOAN", "\u03a3\u03af\u03a3 a.\u03a3",
    "\u0130stanbul \u6f22\u5b57 pay pin pin pin", "\ud800 half", "\U00010400 x", "loan " * 900,
]  # fmt: skip
METHODS = ["predict", "predict_topk", "predict_proba", "predict_proba_sparse", "predict_log_proba"]


@pytest.fixture(autouse=True)
def _with_extension(monkeypatch):
    use_extension()
    monkeypatch.setenv("THINLEAF_NATIVE", "1")


def native(path):
    from thinleaf.native.model import NativeModel

    model = thinleaf.load(path)
    assert type(model) is NativeModel
    return model


def is_native(path) -> bool:
    from thinleaf.native.loading import compiled_model

    return compiled_model(path) is not None


def outcome(call, *args, **named):
    """Return what a call gives, or what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*args, **named)
    except Exception as error:
        return type(error), str(error)


def assert_same(mine, other):
    assert type(mine) is type(other), (mine, other)
    if isinstance(other, tuple | list):
        assert len(mine) == len(other), (mine, other)
        for a, b in zip(mine, other, strict=True):
            assert_same(a, b)
    elif sp.issparse(other):
        assert mine.shape == other.shape
        assert mine.indices.tolist() == other.indices.tolist()
        np.testing.assert_allclose(mine.data, other.data, rtol=0, atol=1e-6)
    elif isinstance(other, np.ndarray) and other.dtype.kind == "f":
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-6)
    elif isinstance(other, np.ndarray):
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(mine, other)
    elif isinstance(other, float):
        assert mine == pytest.approx(other, abs=1e-6)
    else:
        assert mine == other


def batches(n_features):
    rng = np.random.default_rng(0)
    S = sp.random(60, n_features, min(0.2, 20 / n_features), "csr", np.float32, random_state=0)
    yield from (S, S.tocsc(), S[:0], S.astype(np.float64))
    yield from (TEXTS, TEXTS[:3], np.array(TEXTS[:3], dtype=object), [], "card", 3)
    yield from ([None], ["a", 3], ["a", None])
    if n_features < 5000:
        X = rng.normal(size=(60, n_features)).astype(np.float32)
        bad = X.copy()
        bad[3, 0] = np.nan
        yield from (X, X.astype(np.float64), X[:3].tolist(), X[::2], np.asfortranarray(X))
        yield from (
            bad,
            np.full_like(X, np.inf),
            X.astype(np.float64) * 1e300,
            np.hstack([X, X]),
            X[0],
            X + 1j,
        )
        yield from (X.astype(object), np.full(X.shape, "a"))


def samples(n_features):
    S = sp.random(2, n_features, min(0.2, 20 / n_features), "csr", np.float32, random_state=1)
    first = np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.float32)
    yield from ((text,) for text in TEXTS)
    yield from ((None,), (b"card",), (3,), ({"a": 1},), (["a"],), ([],), (S[:1],), (S,))
    yield from ((S[0].indices, S[0].data), ([0], [1.0]), ([0.5], [1.0]), first)
    yield from ((first[0] + n_features, first[1]), (first[0] - 1, first[1]))
    yield from ((np.zeros(2, np.int32), first[1]), (np.zeros(2, np.int32), np.ones(2, np.float32)))
    yield from ((S[0].indices.astype(np.int64), S[0].data.astype(np.float64)),)
    if n_features < 5000:
        x = np.random.default_rng(1).normal(size=n_features).astype(np.float32)
        yield from ((x,), (x, None), (x.tolist(),), (tuple(x.tolist()),), ([1] * n_features,))
        yield from ((x.astype(np.float64),), (x[:-1],), (np.append(x, x),), (x[None],), (x + 1j,))
        yield from ((np.repeat(x, 2)[::2],), (x.astype(">f4"),), (np.ones(n_features, np.int32),))
        yield from ((memoryview(x),), (x.tolist()[:-1],), (["1"] * n_features,), (x * 1e20,))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers_and_errors_are_those_of_python(path):
    if not is_native(path):
        pytest.skip("only Python knows such a model")
    mine, other = native(path), model_file.load(path)
    for X in batches(other.n_features):
        for name in METHODS:
            more = {"k": 3} if name == "predict_topk" else {}
            found = outcome(getattr(mine, name), X, **more)
            assert_same(found, outcome(getattr(other, name), X, **more))
    for sample in samples(other.n_features):
        assert_same(outcome(mine.predict_one, *sample), outcome(other.predict_one, *sample))
        for k in (2, 10**6):
            found = outcome(mine.predict_topk_one, *sample, k=k)
            assert_same(found, outcome(other.predict_topk_one, *sample, k=k))
    y = other.labels[np.arange(60) % other.n_classes]
    S = next(batches(other.n_features))
    for smooth in (True, False):
        found = outcome(mine.label_proba, S, y, smooth=smooth)
        assert_same(found, outcome(other.label_proba, S, y, smooth=smooth))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nan_and_infinity_give_some_label(path):
    if not is_native(path):
        pytest.skip("only Python knows such a model")
    model = native(path)
    labels = set(model.labels.tolist())
    if model.takes_texts and model._kind == 1:
        return
    for value in (np.nan, np.inf, -np.inf):
        if model.n_features < 5000:
            assert model.predict_one(np.full(model.n_features, value, dtype=np.float32)) in labels
        pair = np.zeros(1, dtype=np.int32), np.full(1, value, dtype=np.float32)
        assert model.predict_one(*pair) in labels


def test_which_models_are_python_alone():
    assert not is_native(OLD / "columns.safetensors")
    assert not is_native(HERE / "missing.thinleaf")
    assert not is_native(HERE)
    assert sum(map(is_native, FILES)) > 30


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("THINLEAF_NATIVE", "0")
    assert type(thinleaf.load(HERE / "dense.thinleaf")) is thinleaf.FrozenTree


def test_it_passes_for_what_python_has():
    for name, cls in [
        ("dense", thinleaf.FrozenTree),
        ("text-words", thinleaf.FrozenTextTree),
        ("label-tree", thinleaf.FrozenLabelTree),
    ]:
        path = HERE / f"{name}.thinleaf"
        mine, other = native(path), model_file.load(path)
        assert isinstance(mine, cls)
        assert repr(mine) == repr(other)
        assert (mine.n_features, mine.n_classes) == (other.n_features, other.n_classes)
        assert mine.takes_texts == other.takes_texts
        assert mine.summary == other.summary
        assert mine.nbytes == other.nbytes
        assert {name for name in dir(other) if name[0] != "_"} <= set(dir(mine))
        assert type(pickle.loads(pickle.dumps(mine))) is cls
        assert copy.deepcopy(mine) is mine
        with pytest.raises(AttributeError):
            mine.no_such_thing  # noqa: B018
    assert native(HERE / "dense.thinleaf").with_beam(2).beam == 2


@pytest.mark.parametrize("mapped", [True, False])
def test_a_file_that_is_replaced_stays(tmp_path, mapped):
    path = tmp_path / "model"
    path.write_bytes((HERE / "dense.thinleaf").read_bytes())
    model = thinleaf.load(path, mapped=mapped)
    shape = model_file.load(HERE / "dense.thinleaf").shape
    model_file.load(HERE / "label-tree.thinleaf").save(path)
    assert model.shape == shape  # made of the old bytes, though it is made now
    assert isinstance(thinleaf.load(path), thinleaf.FrozenLabelTree)


def test_a_damaged_file_is_refused_as_in_python(tmp_path):
    content = (HERE / "dense.thinleaf").read_bytes()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "cut").write_bytes(content[:-9])
    (tmp_path / "text").write_text("a\tb\n" * 10)
    for name in ("empty", "cut", "text", "missing", "."):
        found = outcome(thinleaf.load, tmp_path / name)
        assert found == outcome(model_file.load, tmp_path / name)
        assert found[0] in (thinleaf.ModelFileError, FileNotFoundError, IsADirectoryError)


def test_a_damaged_leaf_is_found_when_a_row_meets_it(tmp_path):
    from tests.attacks.parts import Parts

    parts = Parts.parse((HERE / "dense.thinleaf").read_bytes())
    parts.arrays["tree.leaf_bias"][:] = np.nan
    path = tmp_path / "bad"
    path.write_bytes(bytes(parts))
    mine, other = native(path), model_file.load(path)
    x = np.zeros(other.n_features, dtype=np.float32)
    for _ in range(70):  # also after all leaves were checked
        assert outcome(mine.predict_one, x) == outcome(other.predict_one, x)
    assert outcome(mine.predict, x[None]) == outcome(other.predict, x[None])


@pytest.mark.parametrize("name", ["text-words", "text-both", "text-chars", "text-hashing"])
def test_rejection_is_that_of_python(tmp_path, name):
    knots = np.linspace(-3.0, 3.0, 9)
    weights = np.array([0.8, -0.1, -0.7, -0.2, -0.3, 0.5])
    section = Rejection(weights, knots, np.linspace(0.2, 0.99, 9), np.linspace(0.5, 1.0, 9), 60)
    path = tmp_path / "model"
    model_file.load(HERE / f"{name}.thinleaf").with_sections(rejection=section.section()).save(path)
    mine, other = native(path), model_file.load(path)
    texts = [*TEXTS, "card loan", "pin pin zebra", "zebra quagga", "phone pay card card"]
    np.testing.assert_allclose(mine.confidence(texts), other.confidence(texts), atol=1e-9)
    for precision in (0.6, 0.9, 0.999, 2, "x"):
        assert_same(
            outcome(mine.predict, texts, reject=precision),
            outcome(other.predict, texts, reject=precision),
        )
        assert_same(
            outcome(mine.rejects, texts, precision), outcome(other.rejects, texts, precision)
        )
    for text, precision in itertools.product(texts, (0.6, 0.9, 0.999, 2)):
        named = {"reject": precision, "reject_label": "?"}
        assert outcome(mine.predict_one, text, **named) == outcome(other.predict_one, text, **named)
    rows = np.zeros((1, other.n_features))
    assert_same(outcome(mine.rejects, rows, 0.9), outcome(other.rejects, rows, 0.9))


def test_without_a_rejection_it_is_said():
    for name in ("text-words", "dense", "label-tree-text"):
        mine, other = native(HERE / f"{name}.thinleaf"), model_file.load(HERE / f"{name}.thinleaf")
        assert outcome(mine.predict, ["a"], reject=0.9) == outcome(other.predict, ["a"], reject=0.9)
        assert outcome(mine.predict_one, "a", reject=0.9) == outcome(
            other.predict_one, "a", reject=0.9
        )


def test_threads_do_not_disturb_each_other():
    model = native(HERE / "forest-beam.thinleaf")
    X = np.random.default_rng(0).normal(size=(2000, model.n_features)).astype(np.float32)
    expected = model.predict(X)
    assert model.predict(X, n_jobs=4).tolist() == expected.tolist()
    np.testing.assert_array_equal(model.predict_proba(X, n_jobs=4), model.predict_proba(X))
    assert (model.predict_proba_sparse(X, n_jobs=4) != model.predict_proba_sparse(X)).nnz == 0
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda part: [model.predict_one(x) for x in part], np.split(X, 4)))
        assert [label for part in parts for label in part] == expected.tolist()


def run(text: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program(text), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def test_nothing_slow_is_imported():
    code = """
import thinleaf
model = thinleaf.load(sys.argv[1])
print(model.predict_one("my card was stolen"))
slow = ("numpy", "numba", "scipy", "sklearn", "safetensors", "typer")
print([name for name in slow if name in sys.modules])
model.predict(["a card", "a loan"])
model.predict_topk(["a card"], 2)
model.predict_proba(["a card"])
model.predict_topk_one("a card", k=2)
model.predict_one([0.0] * model.n_features)
try:
    model.predict([[1.0, 2.0]])
except ValueError:
    pass
print([name for name in slow if name in sys.modules])
"""
    label, first, later = run(code, str(HERE / "text-words.thinleaf")).splitlines()
    assert label == model_file.load(HERE / "text-words.thinleaf").predict_one("my card was stolen")
    assert first == "[]"
    assert later == "['numpy']"


def test_a_line_is_answered_without_typer(tmp_path):
    (tmp_path / "line.txt").write_text("my card was stolen\n")
    code = """
from thinleaf.cli import main
sys.argv = ["thinleaf", "predict", *sys.argv[1:]]
try:
    main()
finally:
    slow = ("numba", "scipy", "sklearn", "safetensors", "typer", "rich")
    print([name for name in slow if name in sys.modules])
"""
    done = run(code, str(HERE / "text-words.thinleaf"), str(tmp_path / "line.txt"))
    label = model_file.load(HERE / "text-words.thinleaf").predict_one("my card was stolen")
    assert done.splitlines() == [label, "[]"]


# -- building it -----------------------------------------------------------------------------------


def test_no_compiler_is_said_and_no_more(monkeypatch, tmp_path):
    extension()
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(_build.NoExtensionError, match="no C compiler"):
        _build.build(tmp_path)
    for compiler in ("/missing/cc", sys.executable + " -c 1/0"):
        monkeypatch.setenv("CC", compiler)
        with pytest.raises(_build.NoExtensionError, match=r"cc|failed"):
            _build.build(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_where_it_is_not_built_python_answers(tmp_path):
    code = """
import sys
sys.modules["thinleaf.native._compiled"] = None
import os
os.environ["THINLEAF_NATIVE"] = "1"
import thinleaf
print(type(thinleaf.load(sys.argv[1])).__name__)
"""
    command = [sys.executable, "-c", code, str(HERE / "dense.thinleaf")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "FrozenTree\n"


def test_the_header_is_part_of_the_package():
    assert (Path(_build.HERE) / "thinleaf.h").exists()
    assert (Path(_build.HERE) / "_compiled.c").exists()
