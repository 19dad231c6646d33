"""LabelTreeClassifier and LabelTreeLanguageModel as users meet them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.estimator_cases import formats, problem
from thinleaf import LabelTree, LabelTreeClassifier, LabelTreeLanguageModel
from thinleaf.estimators import label_tree
from thinleaf.labeltree.bilinear import Contexts, LogBilinear
from thinleaf.labeltree.fixed_trees import balanced, huffman
from thinleaf.labeltree.output_layers import FlatOutput, TreeOutput

KINDS = ("learned", "huffman", "balanced", "clustering")


@parametrize_with_checks(
    [
        LabelTreeClassifier(dim=20, random_state=0),
        LabelTreeClassifier(dim=10, arity=2, tree="huffman", search="greedy", random_state=0),
        LabelTreeClassifier(dim=10, arity=3, max_depth=4, random_state=0),
    ],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "one step of twice the length is not two"
        for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def quick(**params) -> LabelTreeClassifier:
    return LabelTreeClassifier(**({"dim": 16, "arity": 3, "random_state": 0} | params))


def texts(n_classes: int = 8, n_rows: int = 240) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % n_classes
    words = [f"c{label}w{rng.integers(3)} g{label // 2} x{rng.integers(20)}" for label in y]
    return words, np.array([f"label {label}" for label in y])


@formats
@pytest.mark.parametrize("tree", KINDS)
def test_every_kind_of_tree_learns_rows(kind, tree):
    X, y = problem(kind=kind, n_rows=300, spread=0.2)
    clf = quick(tree=tree).fit(X, y)
    assert clf.score(X, y) > 0.8
    P = clf.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    labels, probabilities = clf.predict_topk(X, 3)
    np.testing.assert_allclose(probabilities, -np.sort(-P, axis=1)[:, :3], rtol=1e-4)
    np.testing.assert_array_equal(labels[:, 0], clf.predict(X))
    np.testing.assert_allclose(clf.label_proba(X, y), P[np.arange(y.size), y], rtol=1e-4)


@pytest.mark.parametrize("tree", [*KINDS, "ordered"])
def test_every_kind_of_tree_learns_texts(tree):
    X, y = texts()
    clf = quick(tree=tree, epochs=40).fit(X, y)
    assert clf.score(X, y) > 0.95
    one_by_one = [clf.predict_one(text) for text in X[:20]]
    assert one_by_one == clf.predict(X[:20]).tolist()
    clf.set_params(search="greedy")
    assert [clf.predict_one(text) for text in X[:20]] == clf.predict(X[:20]).tolist()


@pytest.mark.parametrize("arity", [2, 4])
def test_multiplications_are_those_of_terms_and_nodes(arity):
    X, y = texts()
    clf = quick(tree="balanced", arity=arity, dim=5, search="greedy").fit(X, y)
    tree, n_outputs = clf.model_.tree, {2: 1, 4: 4}[arity]
    depths = tree.depths[np.searchsorted(clf.classes_, clf.predict(X))]
    n_terms = clf.features_.transform(X).indices.size / len(X)
    greedy = clf.mean_flops(X)
    assert greedy == pytest.approx(5 * (n_terms + n_outputs * depths.mean()))
    assert clf.set_params(search="exact").mean_flops(X) >= greedy
    assert clf.mean_flops([]) == 0.0
    with pytest.raises(NotFittedError):
        quick().mean_flops(X)


def common_depth(tree: LabelTree, a: int, b: int) -> int:
    """Return how many nodes two paths have in common."""
    return sum(x == y for x, y in zip(tree.path(a), tree.path(b), strict=False))


def test_similar_labels_share_more_of_a_learned_path():
    rng = np.random.default_rng(0)
    y = np.arange(1600) % 16
    texts = [f"g{i // 4} g{i // 4} g{i // 4} c{i} x{rng.integers(50)}" for i in y]
    tree = quick(arity=2, ngrams=1).fit(texts, y).model_.tree
    pairs = [(a, b) for a in range(16) for b in range(a)]
    same = [common_depth(tree, a, b) for a, b in pairs if a // 4 == b // 4]
    other = [common_depth(tree, a, b) for a, b in pairs if a // 4 != b // 4]
    assert np.mean(same) > np.mean(other) + 0.5


def test_a_learned_tree_starts_from_the_kind_that_is_asked_for(monkeypatch):
    X, y = texts()
    trees = {}

    def keep(model, *args, **kwargs):
        trees[start] = model.tree
        raise KeyboardInterrupt

    for start in ("ordered", "huffman", "balanced", "clustering"):
        fixed = quick(tree=start, epochs=1).fit(X, y).model_.tree
        with monkeypatch.context() as patch:
            patch.setattr(label_tree, "train", keep)
            with pytest.raises(KeyboardInterrupt):
                quick(start=start).fit(X, y)
        np.testing.assert_array_equal(trees[start].children, fixed.children)
    np.testing.assert_array_equal(trees["ordered"].children, balanced(8, 3).children)
    assert not np.array_equal(trees["ordered"].children, trees["balanced"].children)
    with pytest.raises(ValueError, match="'start' parameter"):
        quick(start="learned").fit(X, y)


def test_a_child_takes_no_more_than_its_share():
    """All labels would like the same child: there is but one word."""
    y = np.arange(270) % 27

    def largest(max_share):
        found = []
        for seed in range(4):
            options = {"max_share": max_share, "learning_rate": 0.01, "random_state": seed}
            tree = quick(start="balanced", **options).fit(["a"] * 270, y).model_.tree
            found.append(np.bincount([tree.path(label)[0][1] for label in range(27)]).max())
        return np.mean(found)

    assert largest(1.0) + 0.5 < largest(None)
    with pytest.raises(ValueError, match="'max_share' parameter"):
        quick(max_share=0.5).fit(["a"] * 270, y)


def test_one_thread_repeats_and_pickles():
    X, y = texts()
    a, b = quick().fit(X, y), quick().fit(X, y)
    np.testing.assert_array_equal(a.model_.U, b.model_.U)
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    a.predict_one(X[0])
    again = pickle.loads(pickle.dumps(a))
    np.testing.assert_array_equal(a.predict_proba(X), again.predict_proba(X))
    assert a.predict_one(X[0]) == again.predict_one(X[0])


def test_several_threads_learn_as_well():
    X, y = texts()
    assert quick(n_jobs=2, epochs=40).fit(X, y).score(X, y) > 0.95


def test_rows_without_weight_do_not_count():
    X, y = texts()
    weight = (np.arange(len(X)) % 3 > 0) * 2.5
    kept = np.flatnonzero(weight)
    a = quick(epochs=3).fit(X, y, sample_weight=weight)
    b = quick(epochs=3).fit([X[i] for i in kept], y[kept])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    with pytest.raises(ValueError, match="negative"):
        quick().fit(X, y, sample_weight=-weight)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        quick().fit(X, y, sample_weight=weight[1:])


@pytest.mark.parametrize("tree", KINDS)
def test_weights_are_like_repetition(tree):
    """Of the same text under two labels, the heavier one is predicted, in proportion."""
    X, y = ["a b"] * 400 + ["c d"] * 400, np.repeat(["no", "yes", "other", "more"], 200)
    weight = np.where(y == "yes", 3.0, 1.0)
    clf = quick(tree=tree, arity=2, epochs=10, learning_rate=0.2).fit(X, y, sample_weight=weight)
    p = clf.predict_proba(["a b"])[0]
    assert np.isclose(p[clf.classes_ == "yes"], 0.75, atol=0.05)
    assert clf.inspect().n_examples[0] == pytest.approx(800, rel=1e-3)


@pytest.mark.parametrize("kind", ["texts", "dense", "sparse"])
def test_predictions_do_not_depend_on_threads(kind):
    X, y = texts(n_rows=1200) if kind == "texts" else problem(kind=kind, n_rows=1200)
    clf = quick(epochs=2).fit(X, y)
    one = clf.predict(X), *clf.predict_topk(X, 3), clf.predict_proba(X)
    clf.set_params(n_jobs=2)
    two = clf.predict(X), *clf.predict_topk(X, 3), clf.predict_proba(X)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    clf.set_params(n_jobs=2, search="greedy")
    np.testing.assert_array_equal(clf.predict(X), clf.set_params(n_jobs=1).predict(X))


def test_node_figures_and_the_printed_tree():
    X, y = texts()
    clf = quick(epochs=40).fit(X, y)
    for quality in (clf.inspect(), clf.inspect(X, y)):
        assert quality.J.shape == (clf.model_.tree.n_nodes,)
        assert np.all(quality.J_max + 1e-6 >= quality.J)
        assert np.all(quality.n_examples > 0)
    assert quality.n_examples[0] == y.size
    text = clf.tree_text(max_depth=1, n_top=2)
    assert text.startswith("root (8 labels)  J ")
    assert "label " in text


def test_a_given_tree_is_kept():
    X, y = texts()
    tree = huffman(np.arange(1, 9), 3)
    clf = quick(tree=tree).fit(X, y)
    assert clf.model_.tree is tree
    with pytest.raises(ValueError, match="tree has 5 labels"):
        quick(tree=balanced(5, 2)).fit(X, y)
    assert isinstance(tree, LabelTree)


def test_inputs_that_make_no_sense():
    X, y = texts()
    with pytest.raises(ValueError, match="not one string"):
        quick().fit("a text", ["a"])
    with pytest.raises(ValueError, match="but y has shape"):
        quick().fit(X, y[:-1])
    with pytest.raises(ValueError, match="raise arity or max_depth"):
        quick(max_depth=1).fit(X, y)
    clf = quick(epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="fitted to texts"):
        clf.predict(np.zeros((2, 3)))
    for k in (0, -1, 9, 1.5, True):
        with pytest.raises(ValueError, match="k must be"):
            clf.predict_topk(X, k)
    rows = quick(epochs=1).fit(*problem())
    with pytest.raises(ValueError, match="for models of texts"):
        rows.predict_one("a text")
    with pytest.raises(NotFittedError):
        quick().predict_one("a text")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_texts_and_labels_that_are_missing(missing):
    X, y = texts()
    clf = quick(epochs=1).fit(X, y)
    for bad in ([missing, *X[1:]], [*X[:-1], missing]):
        with pytest.raises(ValueError, match="texts must be strings"):
            quick().fit(bad, y)
        with pytest.raises(ValueError, match="texts must be strings"):
            clf.predict(bad)
    with pytest.raises(ValueError, match="must be a string"):
        clf.predict_one(missing)
    labels = y.astype(object)
    labels[3] = missing
    with pytest.raises(ValueError, match=r"missing labels|contains NaN"):
        quick().fit(X, labels)
    with pytest.raises(ValueError, match=r"missing labels|contains NaN"):
        quick().fit(np.eye(y.size), labels)


@pytest.mark.parametrize("kind", ["texts", "dense"])
def test_each_row_has_one_label(kind):
    X, y = texts() if kind == "texts" else problem()
    clf = quick(epochs=1).fit(X, y)
    for bad in (y[:-1], y[:0], np.r_[y, y], y[:, None]):
        for method in (clf.label_proba, clf.inspect, clf.node_statistics):
            with pytest.raises(ValueError, match="one label a row"):
                method(X, bad)
    for half in ({"X": X}, {"y": y}):
        with pytest.raises(ValueError, match="give both X and y"):
            clf.inspect(**half)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_no_texts_get_no_labels(n_jobs):
    X, y = texts()
    clf = quick(epochs=1, n_jobs=n_jobs).fit(X, y)
    assert clf.predict([]).shape == (0,)
    assert clf.predict([]).dtype == clf.classes_.dtype
    assert clf.predict_proba(np.array([], dtype=object)).shape == (0, 8)
    assert clf.predict_topk([], 3)[0].shape == (0, 3)
    with pytest.raises(ValueError, match="fitted to texts"):
        clf.predict(np.empty((0, 3)))


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_a_fit_that_does_not_end_leaves_what_there_was(monkeypatch):
    X, y = problem()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    words, labels = texts()
    for first, second in [((frame, y), (X[:, :2], y)), ((words, labels), (X, y)),
                          ((frame, y), (words, labels))]:  # fmt: skip
        clf = quick(epochs=1).fit(*first)
        before, state = clf.predict_proba(first[0]), set(vars(clf))
        with pytest.raises(ValueError, match="raise arity or max_depth"):
            clf.set_params(max_depth=1).fit(*second)
        with monkeypatch.context() as patch:
            patch.setattr(label_tree, "train", interrupt)
            with pytest.raises(KeyboardInterrupt):
                clf.set_params(max_depth=None).fit(*second)
        np.testing.assert_array_equal(clf.predict_proba(first[0]), before)
        assert set(vars(clf)) == state
        clf.fit(*second)
        assert hasattr(clf, "n_features_in_") == (second[0] is not words)
        assert not hasattr(clf, "feature_names_in_")
        assert clf.predict(second[0]).shape == second[1].shape
    monkeypatch.setattr(label_tree, "train", interrupt)
    clf = quick()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


@pytest.mark.parametrize("tree", KINDS)
def test_branches_that_no_label_can_take_are_not_made(tree):
    X, y = problem()
    clf = quick(epochs=2, tree=tree, arity=10**9).fit(X, y)
    assert clf.model_.tree.children.shape == (1, clf.classes_.size)
    as_wide = quick(epochs=2, tree=tree, arity=clf.classes_.size + 3).fit(X, y)
    np.testing.assert_array_equal(as_wide.predict_proba(X), clf.predict_proba(X))


def test_texts_without_known_words_get_an_answer():
    X, y = texts()
    clf = quick(epochs=2).fit(X, y)
    assert set(clf.predict(["", "zzz"])) <= set(y)
    assert clf.predict_one("") in set(y)


def test_progress_is_shown(capsys):
    X, y = texts()
    quick(epochs=2, verbose=1).fit(X, y)
    assert "epoch 2/2" in capsys.readouterr().err


# -- language model --------------------------------------------------------------------------------

LINES = ["the cat sat on the mat", "a dog ran in the park", "the dog sat in the park"] * 15


def language_model(**params) -> LabelTreeLanguageModel:
    defaults = {"n_context": 2, "dim": 12, "epochs": 8, "learning_rate": 0.1, "random_state": 0}
    return LabelTreeLanguageModel(**(defaults | params))


@pytest.mark.parametrize("tree", ["flat", *KINDS])
def test_every_output_learns_what_follows(tree):
    model = language_model(tree=tree).fit(LINES)
    assert model.perplexity(LINES) < 2.5
    words, p = model.predict_topk(["on the", ["the", "cat"]], k=3)
    assert words[:, 0].tolist() == ["mat", "sat"]
    assert np.all(np.diff(p, axis=1) <= 0)
    R = model.core_.represent(model._last_words([["the"]]))
    every = np.exp(model.output_.log_proba(R).astype(float))
    np.testing.assert_allclose(every.sum(axis=1), 1.0, rtol=1e-5)
    assert set(model.sample(6, prefix="the", seed=0)) <= set(model.vocabulary_)


def test_perplexity_is_that_of_the_words():
    model = language_model(epochs=2).fit(LINES)
    contexts = model._contexts(model._lines(LINES[:2]))
    every = model.output_.log_proba(model.core_.represent(contexts.words)).astype(float)
    expected = np.exp(-every[np.arange(len(contexts)), contexts.next].mean())
    assert np.isclose(model.perplexity(LINES[:2]), expected, rtol=1e-5)


def test_language_models_repeat_and_know_their_tree():
    a, b = language_model(arity=3, max_depth=3).fit(LINES), language_model(arity=3).fit(LINES)
    assert a.tree_.depth <= 3
    np.testing.assert_array_equal(a.core_.U, b.core_.U)
    assert np.all(a.inspect().J_max + 1e-6 >= a.inspect().J)
    assert "the" in a.tree_text()
    with pytest.raises(AttributeError, match="no tree"):
        _ = language_model(tree="flat", epochs=1).fit(LINES).tree_


def test_rare_and_unknown_words():
    model = language_model(min_count=15, epochs=1).fit([*LINES, "the zebra sat"])
    assert "<unk>" in model.vocabulary_
    assert np.isfinite(model.perplexity(["the quagga sat"]))
    closed = language_model(epochs=1).fit(LINES)
    assert closed.log_likelihood(["the quagga sat"]).size == 3  # without the quagga


def test_words_and_contexts_that_make_no_sense():
    for bad in ([["a", None]], [[1, 2]], [None], [3]):
        with pytest.raises(ValueError, match="words must be strings"):
            language_model().fit(bad)
    model = language_model(epochs=1).fit(LINES)
    with pytest.raises(ValueError, match="not one string"):
        model.predict_topk("the cat")
    for k in (0, -1, len(model.vocabulary_) + 1):
        with pytest.raises(ValueError, match="k must be"):
            model.predict_topk(["the cat"], k)
    assert model.predict_topk([], 2)[0].shape == (0, 2)


@pytest.mark.parametrize("tree", ["flat", "learned"])
def test_a_language_model_that_diverges_says_so(tree):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="lower learning_rate"):
        language_model(tree=tree, learning_rate=1e30).fit(LINES)


@pytest.mark.parametrize("tree", ["flat", "learned"])
def test_a_language_model_that_does_not_end_leaves_what_there_was(tree, monkeypatch):
    other = ["x y z", "y z"] * 5
    model = language_model(epochs=1, tree=tree).fit(LINES)
    before = model.log_likelihood(LINES)
    unfitted = language_model(tree=tree)
    with monkeypatch.context() as patch:
        patch.setattr(LogBilinear, "step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(n_context=3, dim=5).fit(other)
        with pytest.raises(KeyboardInterrupt):
            unfitted.fit(LINES)
    with pytest.raises(NotFittedError):
        unfitted.predict_topk(["the"], 1)
    with pytest.raises(ValueError, match="raise arity or max_depth"):
        model.set_params(tree="learned", arity=2, max_depth=1).fit(other)
    np.testing.assert_array_equal(model.log_likelihood(LINES), before)
    assert "cat" in model.vocabulary_
    assert model.predict_topk(["the"], 2)[0].shape == (1, 2)


@pytest.mark.parametrize("epochs", [1, 2])
def test_steps_follow_every_assignment(epochs, monkeypatch):
    done = []
    for name in ("train", "assign"):
        method = getattr(TreeOutput, name)
        monkeypatch.setattr(
            TreeOutput,
            name,
            lambda self, *given, name=name, method=method: (
                done.append(name) or method(self, *given)
            ),
        )
    language_model(epochs=epochs, n_assignments=3).fit(LINES)
    assert done.count("assign") == (2 if epochs == 1 else 3)
    assert done[-1] == "train"


def test_contexts_stay_within_their_sequence():
    contexts = Contexts.of([np.array([0, 1, 2]), np.array([3]), np.array([4, -1, 5])], 2, 9)
    assert contexts.words.tolist() == [[9, 9], [0, 9], [1, 0], [9, 9], [9, 9], [9, 4]]
    assert contexts.next.tolist() == [0, 1, 2, 3, 4, 5]


def loss_of(core, output, words, y):
    return -float(output.label_log_proba(core.represent(words), y).astype(float).mean())


@pytest.mark.parametrize("kind", ["flat", 2, 4])
def test_output_gradients_against_finite_differences(kind):
    """With Adagrad's first step being rate · sign(g), signs are compared, and delta in full."""
    rng = np.random.default_rng(0)
    core = LogBilinear.start(9, 2, 4, rng)
    core.U[:9] = rng.standard_normal((9, 4))
    output = FlatOutput(core, 9) if kind == "flat" else TreeOutput.start(balanced(9, kind, rng), 4)
    if isinstance(output, TreeOutput):
        output.nodes.weights[:] = rng.standard_normal(output.nodes.weights.shape)
    words = rng.integers(0, 9, (6, 2)).astype(np.int32)
    y = rng.integers(0, 9, 6).astype(np.int32)
    R = core.represent(words)
    eps = 1e-2
    expected = np.zeros_like(R)
    for at in np.ndindex(R.shape):
        up, down = R.copy(), R.copy()
        up[at] += eps
        down[at] -= eps
        gain = output.label_log_proba(up, y).astype(float).mean()
        expected[at] = (gain - output.label_log_proba(down, y).astype(float).mean()) / (2 * eps)
    before = loss_of(core, output, words, y)
    loss, delta = output.train(R, y, 1e-3, True)
    assert np.isclose(loss / 6, before, rtol=1e-5)
    np.testing.assert_allclose(delta, expected, atol=2e-3)
    core.step(words, delta, 1e-3)
    assert loss_of(core, output, words, y) < before
