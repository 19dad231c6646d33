"""When not to answer: held-out precision is kept, nonsense is rejected, files lose nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

import thinleaf
from benchmarks.rejection import _score
from tests.text_cases import made_texts
from thinleaf import ModelFileError, TextClassifier
from thinleaf.estimators._base.held_out_texts import _hold_out
from thinleaf.model.file_parts import Section
from thinleaf.text.inputs import word_salad
from thinleaf.text.known_terms import Evidence
from thinleaf.text.rejection import Rejection, _isotonic

TEXTS, LABELS = made_texts(600)
NONSENSE = ["qwerty asdfgh", "", "!?", "zzz yyy xxx"]


@pytest.fixture(scope="module")
def clf():
    return TextClassifier(random_state=0).fit(TEXTS, LABELS)


def known(n: int) -> Evidence:
    return Evidence(np.ones(n), np.ones(n))


def test_what_is_not_known_is_rejected(clf):
    model = clf.freeze()
    for form in (clf, model):
        answers = form.predict([*NONSENSE, "my card was stolen please help"], reject=0.8)
        assert answers.tolist() == [None] * 4 + ["card"]
        assert answers.dtype == object
        assert form.predict_one(NONSENSE[0], reject=0.8) is None
        assert form.predict_one("please help my card was lost", reject=0.8) == "card"
        assert form.predict_one(NONSENSE[0], reject=0.8, reject_label="other") == "other"
        labelled = form.predict(
            [*NONSENSE, "please help my card was lost"], reject=0.8, reject_label="other"
        )
        assert labelled.tolist() == ["other"] * 4 + ["card"]
        assert form.rejects(NONSENSE, 0.8).all()
        np.testing.assert_array_equal(form.confidence(NONSENSE), 0.0)
    assert None not in model.predict(NONSENSE).tolist()


def test_the_benchmark_has_the_same_score(clf):
    model = clf.freeze()
    texts = [*TEXTS[:60], *NONSENSE]
    score = _score(model, texts)
    assert np.isneginf(score[-len(NONSENSE) :]).all()
    assert np.all(np.diff(model.confidence(texts)[np.argsort(score)]) >= 0.0)


def test_precision_is_kept_on_other_texts(clf):
    texts, labels = made_texts(400, seed=1)
    truth = np.array(labels, dtype=object)
    coverage = []
    for wanted in (0.8, 0.9, 0.95):
        answers = clf.predict(texts, reject=wanted)
        given = np.array([answer is not None for answer in answers])
        coverage.append(given.mean())
        if given.any():
            assert np.mean(answers[given] == truth[given]) > wanted - 0.06
    assert coverage == sorted(coverage, reverse=True)


def test_confidence_is_how_often_labels_are_right(clf):
    texts, labels = made_texts(800, seed=2)
    confidence = clf.confidence(texts)
    assert np.all((confidence >= 0.0) & (confidence <= 1.0))
    right = clf.predict(texts) == np.array(labels)
    assert abs(confidence.mean() - right.mean()) < 0.06


def test_a_file_and_a_seed_give_the_same(clf, tmp_path):
    clf.save(tmp_path / "model", trainable=True)
    again = TextClassifier(random_state=0).fit(TEXTS, LABELS)
    for other in (
        thinleaf.load(tmp_path / "model"),
        thinleaf.load_estimator(tmp_path / "model"),
        again,
    ):
        np.testing.assert_array_equal(other.confidence(TEXTS[:50]), clf.confidence(TEXTS[:50]))
    section = thinleaf.load(tmp_path / "model").sections["rejection"]
    assert sum(array.nbytes for array in section.arrays.values()) < 10_000


def test_some_models_do_not_know_when_to_reject(clf):
    few = TextClassifier(random_state=0).fit(TEXTS[:40], LABELS[:40])
    without = TextClassifier(rejection=False, random_state=0).fit(TEXTS, LABELS)
    for model in (few, without, few.freeze()):
        with pytest.raises(ValueError, match="does not know when to reject"):
            model.predict(["a"], reject=0.9)
    with pytest.raises(ValueError, match="reject is for texts"):
        clf.predict(clf.input_.features.transform(["a"]), reject=0.9)
    with pytest.raises(ValueError, match="reject is for texts"):
        clf.predict_one(np.zeros(3), reject=0.9)
    for wrong in (0.0, 1.0, 90, True, "0.9"):
        with pytest.raises(ValueError, match="wanted precision between 0 and 1"):
            clf.predict(["a"], reject=wrong)


# -- the parts of it -------------------------------------------------------------------------------


def signs_of(p: np.ndarray) -> np.ndarray:
    S = np.zeros((p.size, 5))
    S[:, 0] = np.log(p / (1 - p))
    return S


@pytest.fixture(scope="module")
def rejection():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, size=4000)
    return Rejection.fit(signs_of(p), rng.random(4000) < p, signs_of(np.full(50, 0.1)))


def test_a_calibrated_probability_stays_one(rejection):
    p = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(rejection.confidence(signs_of(p), known(9)), p, atol=0.08)
    # answers from p on are right in the mean of p..0.95
    S = signs_of(np.linspace(0.05, 0.95, 91))
    answered = rejection.answers(S, known(91), 0.8)
    first = np.linspace(0.05, 0.95, 91)[answered].min()
    assert abs((first + 0.95) / 2 - 0.8) < 0.04


def test_answers_are_never_more_likely_wrong(rejection):
    p = np.array([0.2, 0.4, 0.7])
    assert rejection.answers(signs_of(p), known(3), 0.01).tolist() == [False, False, True]
    assert not rejection.answers(signs_of(p), known(3), 0.999).any()
    assert not rejection.answers(signs_of(p), Evidence(np.zeros(3), np.ones(3)), 0.01).any()


def test_signs_count_in_their_direction():
    rng = np.random.default_rng(1)
    S = rng.normal(size=(500, 5))
    right = S[:, 0] - S[:, 2] + S[:, 3] + rng.normal(size=500) > 0  # unknown words for a label
    weights = Rejection.fit(S, right, S[:0]).weights
    assert weights[0] > 0.0
    assert weights[2] < 0.0
    assert weights[3] == 0.0
    same = Rejection.fit(np.ones((100, 5)), np.arange(100) % 2 == 0, np.ones((0, 5)))
    np.testing.assert_array_equal(same.weights[:-1], 0.0)


def test_isotonic_is_the_closest_that_never_falls():
    rng = np.random.default_rng(0)
    values, weight = rng.random(60), rng.random(60) + 0.1
    expected = isotonic_regression(values, sample_weight=weight)
    np.testing.assert_allclose(_isotonic(values, weight), expected, atol=1e-12)


def test_some_of_each_class_are_held_out_and_never_all():
    labels = np.repeat(np.arange(40), np.arange(1, 41))
    held = _hold_out(labels, np.random.default_rng(0))
    left = np.bincount(labels[~held], minlength=40)
    assert left.min() == 1
    assert abs(held.mean() - 0.2) < 0.03


def test_nonsense_is_made_of_words_of_texts():
    made = word_salad(["a b", "c", ""], np.random.default_rng(0))
    assert len(made) == 3
    assert word_salad(["", " "], np.random.default_rng(0)) == ["", " "]


def test_damaged_sections_are_refused(clf):
    model, section = clf.freeze(), clf.rejection_.section()
    good = Rejection.from_section(section)
    np.testing.assert_array_equal(good.scores, clf.rejection_.scores)
    assert dataclasses.asdict(good).keys() == dataclasses.asdict(clf.rejection_).keys()
    falling = dict(section.arrays) | {"scores": section.arrays["scores"][::-1].copy()}
    bad = [
        Section(section.arrays, {"version": 9, "rows": 1}),
        Section(section.arrays, {"version": 1, "rows": -1}),
        Section({}, section.metadata),
        Section(falling, section.metadata),
        Section(dict(section.arrays) | {"weights": np.ones(3)}, section.metadata),
    ]
    for part in bad:
        with pytest.raises(ModelFileError, match="damaged"):
            model.with_sections(rejection=part).predict(["a"], reject=0.9)
