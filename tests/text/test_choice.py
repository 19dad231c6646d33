"""Held-out rows choose: characters where words vary in form, words where they say all."""

from __future__ import annotations

import numpy as np
import pytest

from thinleaf.text.choice import FEW_TEXTS, choose, choose_features


def inflected(n_texts: int, n_classes: int = 30) -> tuple[list[str], np.ndarray]:
    """Return texts whose class is in the stem of a word that never ends twice the same."""
    rng = np.random.default_rng(0)
    letters = np.array(list("bcdfghjklmnpqrstvwxz"))
    stems = ["".join(rng.choice(letters, 7)) for _ in range(n_classes)]
    y = rng.integers(0, n_classes, n_texts)
    ends = ["".join(rng.choice(letters, 4)) for _ in range(n_texts)]
    return [f"{stems[c]}{end}" for c, end in zip(y, ends, strict=True)], y


def plain(n_texts: int, n_classes: int = 30) -> tuple[list[str], np.ndarray]:
    """Return texts whose class is a word, and words that say nothing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_texts)
    return [f"w{c:03} x{rng.integers(5)}" for c in y], y


def test_characters_where_no_word_comes_twice():
    texts, y = inflected(900)
    common = [f"the {text}" for text in texts]
    choice = choose(common, y, random_state=0)
    assert choice.features.kind in ("chars", "both")
    assert choice.errors["tfidf"] > 3 * choice.errors["chars"]
    assert 0 < choice.n_rows <= 900 / 4


def test_words_where_they_say_all():
    choice = choose(*plain(900), random_state=0)
    assert choice.features.kind == "tfidf"
    assert choice.errors["tfidf"] == 0


def test_a_seed_says_all():
    texts, y = inflected(700)
    texts = [f"the {text}" for text in texts]
    a, b = (choose(texts, y, random_state=3) for _ in range(2))
    assert a.errors == b.errors
    assert a.features.feature_names() == b.features.feature_names()


def test_features_are_fitted_to_all_texts():
    texts, y = plain(FEW_TEXTS)
    features = choose_features([*texts[:-2], "twice", "twice"], y, random_state=0)
    assert "twice" in features.feature_names()


@pytest.mark.parametrize("n_texts", [1, 2, FEW_TEXTS - 1])
def test_few_texts_get_everything(n_texts):
    texts, y = plain(n_texts)
    choice = choose(texts, y)
    assert (choice.features.kind, choice.features.min_df, choice.errors) == ("both", 1, {})


@pytest.mark.parametrize(
    "y",
    [
        np.zeros(FEW_TEXTS),
        np.arange(FEW_TEXTS),
        np.repeat(["x", "y"], FEW_TEXTS // 2),
        np.r_[np.zeros(FEW_TEXTS - 1), 1],
    ],
    ids=["one class", "all differ", "two classes", "one of a class"],
)
def test_labels_of_any_kind(y):
    texts, _ = plain(FEW_TEXTS)
    assert choose_features(texts, y, random_state=0).n_features > 0


def test_a_label_for_each_text():
    with pytest.raises(ValueError, match="a label for each of 3 texts"):
        choose_features(["a", "b", "c"], [0, 1])
    with pytest.raises(ValueError, match="texts must be"):
        choose_features("abc", [0, 1, 2])
