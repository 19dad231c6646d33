"""Compiling ahead: after :func:`warm_up`, processes load code from the cache and compile nothing.

What there is to compile follows from the types of arguments alone. So a tree of two leaves is
called in every way that a user's model can be, in the layouts for dense and for sparse rows, with
one path and with several, and with texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import INDEX, OFFSET, PARAM, AnyArray
from thinleaf.arrays.rows import as_rows
from thinleaf.kernels._jit import cache_directory, compiled_signatures
from thinleaf.kernels._notice import silence
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.text.direct import TextToClass
from thinleaf.text.features import TextFeatures
from thinleaf.text.known_terms import KnownTerms
from thinleaf.text.rejection import Rejection, signs

_N_FEATURES = 6
_N_CLASSES = 4


@dataclass(frozen=True)
class WarmUp:
    """What was done.

    Attributes
    ----------
    seconds : float
    n_compiled : int
        Signatures of kernels that had to be compiled.
    n_loaded : int
        Signatures that were in the cache.
    cache_directory : str or None
        Where compiled code is kept; None if no directory can be written.
    """

    seconds: float
    n_compiled: int
    n_loaded: int
    cache_directory: str | None


def warm_up(
    *,
    training: bool = False,
    heads: bool = False,
    progress: Callable[[str], None] | None = None,
) -> WarmUp:
    """Compile every kernel that prediction needs, and keep it on disk.

    Parameters
    ----------
    training : bool
        Also compile what training needs: of softmax trees and forests, of online models, and of
        label trees, whose predictions are compiled with it.
    heads : bool
        Also compile what trees in the place of a network's output layer need, to answer
        (:class:`thinleaf.torch.TreeHead`; extra ``torch``).
    progress : callable, optional
        Called with the name of each step before it is done.

    Returns
    -------
    done : WarmUp

    Notes
    -----
    Code is kept in the directory that ``NUMBA_CACHE_DIR`` names, else beside the package, else in a
    cache directory of the user. Other processes may find it there read-only. It is for machines
    with the same kind of processor.
    """
    started = time.perf_counter()
    n_compiled, n_loaded = compiled_signatures()
    with silence():
        for name, call in steps(training, heads):
            if progress is not None:
                progress(name)
            call()
    compiled, loaded = compiled_signatures()
    seconds = time.perf_counter() - started
    return WarmUp(seconds, compiled - n_compiled, loaded - n_loaded, cache_directory())


def steps(training: bool, heads: bool = False) -> list[tuple[str, Callable[[], Any]]]:
    """Return what :func:`warm_up` does, by name."""
    return [
        *_prediction_steps(),
        *(_training_steps() if training else ()),
        *(_head_steps() if heads else ()),
    ]


def _head_steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    try:
        from thinleaf.torch.heads.compiling import head_steps
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("heads need PyTorch: install thinleaf[torch]") from error
    return head_steps()


def _prediction_steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    models = [_smallest_model(sparse) for sparse in (False, True)]
    model = models[0]
    dense = np.eye(_N_CLASSES, _N_FEATURES, dtype=PARAM)
    sparse = sp.csr_array(dense)
    y = model.labels
    yield "the content of a file", FrozenTree(model.packed, y, checked=False).check
    for layout in models:
        for beam in (1, 2):
            kind = f"{'sparse' if layout.packed.sparse else 'dense'} layout, beam {beam}"
            yield f"single rows: {kind}", partial(_call_single, layout.with_beam(beam))
        name = "sparse" if layout.packed.sparse else "dense"
        yield f"explanations: {name} layout", partial(_explain, layout)
    for name, X in (("dense", dense), ("sparse", sparse)):
        for method, arguments in (
            ("predict", ()),
            ("predict_topk", (2,)),
            ("predict_proba", ()),
            ("predict_proba_sparse", ()),
            ("label_proba", (y,)),
            ("apply", ()),
        ):
            yield f"{name} rows: {method}", partial(getattr(model, method), X, *arguments)
        yield f"{name} rows: predict, beam 2", partial(model.with_beam(2).predict, X)
    yield "texts: rows", _read_texts
    for beam in (1, 2):
        yield f"texts: classes, beam {beam}", partial(_classify_text, model.with_beam(beam))


def _text_features() -> TextFeatures:
    """Return features with as many terms as the smallest model wants, which need no training."""
    settings = {
        "version": 1, "kind": "tfidf", "ngram_range": [1, 2], "min_df": 1, "max_features": None,
        "n_buckets": 8, "signed": True,
    }  # fmt: skip
    terms = np.frombuffer(b"abcdef", dtype=np.uint8)[:_N_FEATURES]
    arrays: dict[str, AnyArray] = {
        "term_bytes": terms,
        "term_ptr": np.arange(_N_FEATURES + 1, dtype=OFFSET),
        "idf": np.ones(_N_FEATURES, dtype=PARAM),
    }
    return TextFeatures.from_arrays(arrays, settings)


def _read_texts() -> None:
    features = _text_features()
    features.transform(["a b"])
    features.row_of("a b")


def _classify_text(model: FrozenTree) -> None:
    features, knots = _text_features(), np.zeros(1)
    rejection = Rejection(np.zeros(6), knots, knots, knots, 1)
    direct = TextToClass(features, model.predictor)
    direct("a b")
    direct.many(["a b"])
    direct.sure("a b", rejection, 0.5)
    known = KnownTerms(features).evidence(["a b"])
    rows = as_rows(features.transform(["a b"]))
    rejection.confidence(signs(model.predictor, rows, known), known)


def _call_single(model: FrozenTree) -> None:
    """Predict single samples: read-only arrays, as those of a mapped file, are types of their own.

    Batches are the same for both (:mod:`thinleaf.model.frozen` sees to it).
    """
    row, indices, values = np.zeros(_N_FEATURES, PARAM), np.zeros(1, INDEX), np.ones(1, PARAM)
    for x in (row, _read_only(row)):
        model.predict_one(x)
        model.predict_topk_one(x, k=2)
    for idx in (indices, _read_only(indices)):
        for val in (values, _read_only(values)):
            model.predict_one(idx, val)
            model.predict_topk_one(idx, val, k=2)


def _explain(model: FrozenTree) -> None:
    """Explain a sample: rows of the other kind are converted before any kernel sees them."""
    str(model.explain(np.ones(_N_FEATURES, PARAM), against=1))


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


def _smallest_model(sparse: bool) -> FrozenTree:
    """Return a tree that needs no training, laid out for dense or for sparse rows."""
    used = np.arange(2, dtype=INDEX)
    router = Router(used, np.ones(2, PARAM), 0.0)
    leaves = [
        Leaf(used + 2 * side, used, np.eye(2, dtype=PARAM), np.zeros(2, PARAM)) for side in (0, 1)
    ]
    tree = Tree.build(
        np.array([[1, 2], [-1, -1], [-1, -1]]),
        [router, *leaves],
        n_features=_N_FEATURES,
        n_classes=_N_CLASSES,
    )
    packed = pack(tree, Outside.of(tree, None, 0.01), sparse=sparse)
    return FrozenTree(packed, np.arange(_N_CLASSES))


def _training_steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    y = np.arange(240) % 8
    X = (np.eye(8)[y] + 0.5 * rng.normal(size=(y.size, 8))).astype(PARAM)
    X[:, 4:] *= rng.random((y.size, 4)) < 0.5
    for name, rows in (("dense", X), ("sparse", sp.csr_matrix(X))):
        for settings in _TRAINING:
            said = ", ".join(f"{key}={value}" for key, value in settings.items())
            yield f"{name} rows: fit({said})", partial(_fit, rows, y, settings)
        for estimator in ("RecallTreeClassifier", "LOMTreeClassifier", "OnlineOneVsAllClassifier"):
            yield f"{name} rows: {estimator}", partial(_learn, estimator, rows, y)
        yield f"{name} rows: LabelTreeClassifier", partial(_fit_label_trees, rows, y)
    texts = [f"a{i % 8} b{i % 3}" for i in range(y.size)]
    yield "texts: TextFeatures", partial(TextFeatures("both").fit, texts)
    yield "texts: LabelTreeClassifier", partial(_fit_label_trees, texts, y)


_TRAINING: tuple[dict[str, Any], ...] = (
    {"max_rounds": 1},
    {"overlap": None, "validation_fraction": 0.2},
    {"absent": "zero_one", "init": "random_median"},
    {"monotone": True, "overlap": None, "max_rounds": 1},
)
"""Of adaptive trees; between them they reach every kernel of training."""


def _learn(name: str, X: Any, y: Any) -> None:
    from thinleaf import estimators

    cls = getattr(estimators, name)
    paths = ({}, {"beam": 1}) if "beam" in cls().get_params() else ({},)
    for settings in paths:
        clf = cls(random_state=0, **settings).fit(X, y)
        clf.predict(X)
        clf.predict_topk(X, 2)
        clf.label_proba(X, y)
        clf.freeze()


def _fit_label_trees(X: Any, y: Any) -> None:
    """Fit trees of either arity: binary nodes have code of their own.

    They start from clustering, which needs more kernels than the other starts do.
    """
    from thinleaf.estimators import LabelTreeClassifier

    for arity in (2, 3):
        options: dict[str, Any] = {"start": "clustering", "epochs": 2, "random_state": 0}
        clf = LabelTreeClassifier(arity=arity, dim=4, **options).fit(X, y)
        clf.predict(X)
        clf.predict_topk(X, 2)
        clf.predict_proba(X)
        str(clf.explain(X[0]))
        if isinstance(X, list):
            clf.predict_one(X[0])


def _fit(X: Any, y: Any, settings: dict[str, Any]) -> None:
    from thinleaf.estimators import AdaptiveSoftmaxTreeClassifier

    clf = AdaptiveSoftmaxTreeClassifier(
        max_sweeps=2, expansion_sweeps=2, random_state=0, **settings
    ).fit(X, y)
    clf.mean_flops(X)
    clf.predict(X)
