"""What features know of texts: the compiled count is that of plain Python; single texts agree."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text_cases import made_texts
from thinleaf import SoftmaxForestClassifier, SoftmaxTreeClassifier, TextClassifier
from thinleaf.text.features import TextFeatures
from thinleaf.text.known_terms import KnownTerms

TEXTS, LABELS = made_texts(300)
KINDS = [
    TextFeatures("tfidf", ngram_range=(1, 2)),
    TextFeatures("tfidf", ngram_range=(2, 3)),
    TextFeatures("chars", char_range=(2, 4)),
    TextFeatures("chars", char_range=(8, 9)),
    TextFeatures("both"),
]
ODD = [
    "",
    " ",
    "Ünïcode ẞtraße",
    "card\u3000loan",
    "a\ud800b",
    "x" * 200,
    "İstanbul card",
    "e\u0301",
]


def plain_count(features: TextFeatures, text: str) -> tuple[int, int]:
    """Return how many terms are known and how many there are, as Python finds them."""
    names, text = set(features.feature_names()), text.lower()
    if features.kind == "chars":
        length, terms = features.char_range[1], []
        for word in text.split():
            padded = f" {word} "
            last = max(len(padded) - length, 0)
            terms += [padded[start : start + length] for start in range(last + 1)]
    else:
        length, words = features.ngram_range[0], re.findall(r"\w+", text)
        terms = [" ".join(words[end - length : end]) for end in range(length, len(words) + 1)]
    return sum(term in names for term in terms), len(terms)


@pytest.mark.parametrize("features", KINDS, ids=lambda f: f"{f.kind}{f.ngram_range}{f.char_range}")
@settings(max_examples=30, deadline=None)
@given(more=st.lists(st.text(max_size=30), max_size=5))
def test_the_count_is_that_of_python(features, more):
    fitted = copy.copy(features).fit(TEXTS)
    asked = [*TEXTS[:20], *ODD, *more]
    found = KnownTerms(fitted).evidence(asked)
    pairs = list(zip(found.n_known.tolist(), found.n_terms.tolist(), strict=True))
    assert pairs == [plain_count(fitted, text) for text in asked]


@pytest.mark.parametrize("features", ["words", "chars", "both", "hashing"])
@pytest.mark.parametrize("several", [False, True])
def test_one_text_is_rejected_as_in_a_batch(features, several):
    model = SoftmaxTreeClassifier(depth=2, max_sweeps=1)
    forest = SoftmaxForestClassifier(model, n_estimators=2)
    clf = TextClassifier(forest if several else model, features, random_state=0)
    frozen = clf.fit(TEXTS, LABELS).freeze()
    asked = [*TEXTS[:60], *ODD, "card zz", "qq ww ee"]
    for precision in (0.3, 0.8, 0.95):
        answers = frozen.predict(asked, reject=precision).tolist()
        assert [frozen.predict_one(text, reject=precision) for text in asked] == answers
        assert answers == clf.predict(asked, reject=precision).tolist()
    assert frozen.predict_one("", reject=0.5, reject_label="?") == "?"
    with pytest.raises(ValueError, match="wanted precision"):
        frozen.predict_one("card", reject=1.5)


def test_a_copy_has_addresses_of_its_own():
    model = SoftmaxTreeClassifier(depth=1, max_sweeps=1)
    clf = TextClassifier(model, random_state=0).fit(TEXTS, LABELS)
    expected = clf.confidence(TEXTS)
    for other in (pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)):
        assert "table" not in vars(other.rejection_)
        np.testing.assert_array_equal(other.confidence(TEXTS), expected)


def test_threads_and_pieces_do_not_matter():
    frozen = TextClassifier(SoftmaxTreeClassifier(depth=2, max_sweeps=1), random_state=0)
    frozen = frozen.fit(TEXTS, LABELS).freeze()
    asked = [*TEXTS, *ODD] * 3
    rows = frozen.input.rows(asked)
    expected = frozen.labels[frozen.predictor.top_class(rows)].tolist()
    assert frozen.predict(asked).tolist() == expected
    assert frozen.predict(asked, n_jobs=2).tolist() == expected
    assert [frozen.predict_one(text) for text in asked] == expected
    assert frozen.predict([]).shape == (0,)
