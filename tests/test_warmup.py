"""After a warm-up nothing is compiled, also where nothing can be written."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import thinleaf
from tests.estimator_cases import formats, problem, quick
from thinleaf.kernels import _jit
from thinleaf.kernels._cache import KernelCache
from thinleaf.warmup import WarmUp, steps, warm_up

PREDICT = """
import sys
import numpy as np, scipy.sparse as sp, thinleaf

for path in sys.argv[1:]:
    model = thinleaf.load(path)
    dense = np.ones((600, model.n_features), dtype="float32")
    frozen = dense.copy()
    frozen.flags.writeable = False
    mixed = sp.csr_matrix(dense)
    mixed.data.flags.writeable = False
    y = model.labels[np.zeros(600, dtype=int)]
    for model in (model, model.with_beam(3), model.quantized("int8")):
        for X in (dense, frozen, dense[::2].copy(order="F"), sp.csr_array(dense), mixed):
            rest = y[: X.shape[0]]
            model.predict(X), model.predict(X, n_jobs=2), model.predict_topk(X, 2)
            model.predict_proba(X), model.predict_proba_sparse(X), model.apply(X)
            model.label_proba(X, rest), model.label_proba(X, rest, smooth=False)
        for x in (dense[0], frozen[0], [0.0] * model.n_features):
            model.predict_one(x), model.predict_topk_one(x, k=2)
        ids, values = np.arange(2, dtype="int32"), np.ones(2, dtype="float32")
        for pair in ((ids, values), (mixed.indices[:2], mixed.data[:2]), ([0, 1], [1.0, 2.0])):
            model.predict_one(*pair), model.predict_topk_one(pair[0], pair[1], k=2)
from thinleaf.text.direct import TextToClass
from thinleaf.text.features import TextFeatures
model = thinleaf.load(sys.argv[1])
n_terms = model.n_features
arrays = {
    "term_bytes": np.frombuffer("".join(map(chr, range(97, 97 + n_terms))).encode(), dtype="uint8"),
    "term_ptr": np.arange(n_terms + 1),
    "idf": np.ones(n_terms, dtype="float32"),
}
settings = TextFeatures("hashing").to_arrays()[1]
both = {"kind": "both", "version": 2, "char_range": [2, 5], "n_words": 1}
for features in (
    TextFeatures("hashing"),
    TextFeatures.from_arrays(arrays, settings | {"kind": "tfidf"}),
    TextFeatures.from_arrays(arrays, settings | both),
):
    features.transform(["a b"] * 300, n_jobs=2), features.transform([]), features.row_of("a é")
for beam in (1, 2):
    TextToClass(features, model.with_beam(beam).predictor)("a é")
"""

USED = """
import json
from thinleaf.kernels import _jit

def names(counts):
    return [f"{kernel.py_func.__module__}.{kernel.__name__}{signature}"
            for kernel in _jit._KERNELS for signature in getattr(kernel.stats, counts)]

print(json.dumps([names("cache_misses"), names("cache_hits")]))
"""

READ_ONLY = """
import numba.core.caching

def refuse(self):
    raise OSError(30, "Read-only file system")

numba.core.caching._CacheLocator.ensure_cache_path = refuse
"""

NO_CACHE = """
import sys
import numba.core.caching

numba.core.caching.CacheImpl._locator_classes = []
import numpy as np, thinleaf
from thinleaf.warmup import cache_directory

model = thinleaf.load(sys.argv[1])
print(model.apply(np.ones((3, model.n_features), dtype="float32")), cache_directory())
"""


def run(code: str, *arguments: str) -> str:
    """Run code in a process of its own; return the last line that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def model_files(tmp_path_factory) -> list[str]:
    """Models for dense and for sparse rows, with labels of two types."""
    files = []
    for kind in ("dense", "csr"):
        X, y = problem(0, kind=kind, n_classes=8)
        labels = y if kind == "dense" else np.array([f"class {c}" for c in y])
        files.append(str(tmp_path_factory.mktemp("models") / f"{kind}.thinleaf"))
        quick().fit(X, labels).save(files[-1])
    return files


@pytest.fixture(scope="module")
def warm() -> WarmUp:
    """All that training needs, compiled."""
    return warm_up(training=True)


def test_after_a_warm_up_nothing_is_compiled(model_files):
    """What predictions load from a cache that cannot be written, a warm-up has put there.

    The cache may hold the code of other tests, too, so signatures are compared: that takes seconds,
    where a cache of its own would take a minute or two.
    """
    compiled, loaded = json.loads(run("from thinleaf import warm_up\nwarm_up()" + USED))
    warm = {*compiled, *loaded}
    compiled, loaded = json.loads(run(READ_ONLY + PREDICT + USED, *model_files))
    assert compiled == []
    assert len(loaded) > 20
    assert set(loaded) <= warm


@pytest.mark.compiles
def test_prediction_works_where_no_cache_can_be(model_files):
    X = np.ones((3, thinleaf.load(model_files[0]).n_features), dtype=np.float32)
    expected = str(thinleaf.load(model_files[0]).apply(X)).split()
    assert run(NO_CACHE, model_files[0]).split() == [*expected, "None"]


def test_a_cache_that_can_no_longer_be_written_is_no_error(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    cache = KernelCache(_jit.KernelCache.__init__)
    assert cache.cache_path is not None
    monkeypatch.setattr(cache._own, "save_overload", full)
    cache.save_overload(None, None)
    assert cache.cache_path is None
    cache.save_overload(None, None)


def test_training_is_warmed_up_too(warm):
    again = warm_up(training=True)
    assert again.n_compiled == 0
    assert warm.cache_directory == again.cache_directory
    assert again.seconds > 0.0


def test_each_step_is_named_once():
    names = []
    warm_up(progress=names.append)
    assert names == [name for name, _ in steps(training=False)]
    assert len(set(names)) == len(names)


@formats
def test_a_usual_fit_compiles_nothing_after_a_warm_up(kind, warm):
    before, _ = _jit.compiled_signatures()
    X, y = problem(1, kind=kind, n_classes=6)
    X = X.astype(np.float32)
    mapped = X.copy()
    for array in (mapped.data, mapped.indices, mapped.indptr) if sp.issparse(X) else (mapped,):
        array.flags.writeable = False
    for clf in (
        quick(),
        thinleaf.AdaptiveSoftmaxTreeClassifier(max_rounds=1, max_sweeps=2),
        thinleaf.SoftmaxForestClassifier(quick(), 2),
        thinleaf.RecallTreeClassifier(),
        thinleaf.LOMTreeClassifier(),
        thinleaf.OnlineOneVsAllClassifier(),
        thinleaf.LabelTreeClassifier(dim=8),
        thinleaf.LabelTreeClassifier(dim=8, arity=3),
        thinleaf.LabelTreeClassifier(dim=8, arity=3, start="clustering"),
    ):
        clf.fit(X, y).predict(X)
        clf.fit(mapped, y).predict(mapped)
        clf = pickle.loads(pickle.dumps(clf))
        clf.predict(X)
        if hasattr(clf, "partial_fit"):
            clf.partial_fit(mapped, y)
    assert _jit.compiled_signatures()[0] == before
