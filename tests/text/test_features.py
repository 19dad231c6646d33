"""Features of texts: scikit-learn's numbers, a state that loses nothing, and no trust in files."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from thinleaf.text.features import TextFeatures

TEXTS = [
    "The broken arm, the other arm",
    "a broken leg",
    "THE COMMON COLD",
    "A cold; a common one",
    "Grippe à l'âge de 3 mois — Übelkeit",
    "Übelkeit à 3",
    "",
]
KINDS = {
    "tfidf": {},
    "all terms": {"min_df": 1, "max_features": None},
    "words": {"ngram_range": (1, 1), "min_df": 1, "max_features": 5},
    "long terms": {"ngram_range": (2, 3), "min_df": 1},
    "hashing": {"kind": "hashing"},
    "few buckets": {"kind": "hashing", "n_buckets": 8, "ngram_range": (1, 3)},
    "unsigned": {"kind": "hashing", "n_buckets": 1024, "signed": False},
    "chars": {"kind": "chars", "char_range": (2, 5)},
    "few chars": {"kind": "chars", "min_df": 1, "char_range": (1, 3), "max_features": 20},
    "both": {"kind": "both"},
    "both, all": {"kind": "both", "min_df": 1, "max_features": None, "char_range": (1, 4)},
}
kinds = pytest.mark.parametrize("kind", KINDS)
texts = st.lists(st.text(st.sampled_from("abé İß_-3 "), max_size=12), min_size=1, max_size=8)


def fitted(kind: str = "tfidf") -> TextFeatures:
    return TextFeatures(**KINDS[kind]).fit(TEXTS)


def same(a: sp.csr_matrix, b: sp.csr_matrix) -> None:
    assert a.shape == b.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), strict=True)


def stored(features: TextFeatures) -> TextFeatures:
    """Return features as a model file would give them back."""
    arrays, metadata = features.to_arrays()
    return TextFeatures.from_arrays(load(save(arrays)), json.loads(json.dumps(metadata)))


# -- what features are -----------------------------------------------------------------------------


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("min_df", [1, 2])
def test_tfidf_is_that_of_scikit_learn(ngram_range, min_df):
    peer = TfidfVectorizer(
        token_pattern=r"(?u)\b\w+\b",
        ngram_range=ngram_range,
        min_df=min_df,
        sublinear_tf=True,
        dtype=np.float32,
    )
    corpus = TEXTS * 2
    features = TextFeatures(ngram_range=ngram_range, min_df=min_df)
    expected = peer.fit_transform(corpus)
    expected.sort_indices()
    same(features.fit(corpus).transform(corpus), expected)
    assert features.feature_names() == peer.get_feature_names_out().tolist()


@pytest.mark.parametrize("signed", [True, False])
def test_hashing_is_that_of_scikit_learn(signed):
    peer = HashingVectorizer(
        token_pattern=r"(?u)\b\w+\b",
        ngram_range=(1, 2),
        n_features=64,
        alternate_sign=signed,
        dtype=np.float32,
    )
    features = TextFeatures("hashing", n_buckets=64, signed=signed)
    same(features.transform(TEXTS), peer.transform(TEXTS))
    assert features.n_features == 64
    assert signed == bool((features.transform(TEXTS).data < 0).any())


@kinds
def test_rows_are_what_estimators_take(kind):
    X = fitted(kind).transform(TEXTS)
    assert isinstance(X, sp.csr_matrix)
    assert (X.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert X.has_canonical_format
    X.check_format(full_check=True)
    lengths = sp.linalg.norm(X, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1.0, rtol=1e-6)
    assert lengths[-1] == 0.0


@kinds
def test_a_text_has_the_same_row_alone_and_among_others(kind):
    features = fitted(kind)
    whole = features.transform(TEXTS)
    same(sp.vstack([features.transform([text]) for text in TEXTS], format="csr"), whole)
    same(features.transform(text for text in TEXTS), whole)


@kinds
def test_no_texts_are_no_rows(kind):
    features = fitted(kind)
    X = features.transform([])
    assert X.shape == (0, features.n_features)
    assert (X.dtype, X.indices.dtype) == (np.float32, np.int32)


def test_texts_of_unknown_terms_are_rows_of_zeros():
    assert fitted().transform(["zebra quagga", "", "!?"]).nnz == 0


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_any_text_can_be_transformed(some):
    for kind in KINDS:
        X = fitted(kind).transform(some)
        assert X.shape[0] == len(some)
        assert np.isfinite(X.data).all()


def test_what_no_file_can_hold_is_no_part_of_a_term():
    """Lone surrogates are not UTF-8."""
    features = TextFeatures(min_df=1).fit(["a\ud800b c", "a"])
    assert features.feature_names() == ["a", "a b", "b", "b c", "c"]
    same(stored(features).transform(["a\ud800b"]), features.transform(["a b"]))


# -- which terms are kept --------------------------------------------------------------------------


def test_the_most_frequent_terms_are_kept_and_the_first_of_equals():
    corpus = ["d d d c b a", "a c b", "e"]
    features = TextFeatures(ngram_range=(1, 1), min_df=1, max_features=3)
    assert features.fit(corpus).feature_names() == ["a", "b", "d"]
    assert features.fit(corpus[::-1]).feature_names() == ["a", "b", "d"]


def test_frequent_terms_must_be_in_enough_texts():
    features = TextFeatures(ngram_range=(1, 1), min_df=2, max_features=1)
    assert features.fit(["d d d a", "a"]).feature_names() == ["a"]


@given(texts, st.integers(1, 6), st.randoms())
def test_the_order_of_texts_does_not_matter(corpus, max_features, random):
    features = TextFeatures(min_df=1, max_features=max_features)
    try:
        names = features.fit(corpus).feature_names()
    except ValueError:
        return
    X = features.transform(corpus)
    assert len(names) <= max_features
    shuffled = random.sample(corpus, len(corpus))
    assert features.fit(shuffled).feature_names() == names
    same(features.transform(corpus), X)


def test_nothing_to_learn_from():
    with pytest.raises(ValueError, match=r"no term is in 2 of the 2 texts: lower min_df"):
        TextFeatures().fit(["one", "two"])
    for corpus in ([], ["", "!"]):
        with pytest.raises(ValueError, match=f"no terms in {len(corpus)} texts"):
            TextFeatures().fit(corpus)


def test_a_fit_that_fails_leaves_what_was_learned():
    features = fitted()
    X = features.transform(TEXTS)
    with pytest.raises(ValueError, match="no term"):
        features.fit(["one"])
    same(features.transform(TEXTS), X)


# -- bad use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["one text", b"bytes", [b"bytes"], ["a", None], [3.0], [["a"]]])
def test_texts_that_are_none(bad):
    for features in (fitted(), fitted("hashing")):
        with pytest.raises(ValueError, match="texts must be"):
            features.transform(bad)
        with pytest.raises(ValueError, match="texts must be"):
            features.fit(bad)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "bm25"),
        ("kind", None),
        ("ngram_range", (0, 1)),
        ("ngram_range", (2, 1)),
        ("ngram_range", (1, 11)),
        ("ngram_range", (1.0, 2)),
        ("ngram_range", (1, 2, 3)),
        ("ngram_range", 2),
        ("ngram_range", "12"),
        ("char_range", (0, 1)),
        ("char_range", (5, 4)),
        ("char_range", [3]),
        ("char_range", 4),
        ("min_df", 0),
        ("min_df", 0.5),
        ("min_df", True),
        ("max_features", 0),
        ("max_features", 2**31),
        ("n_buckets", 0),
        ("n_buckets", 100),
        ("n_buckets", 2**31),
        ("n_buckets", -8),
        ("signed", 1),
        ("signed", None),
    ],
)
def test_settings(name, value):
    with pytest.raises(ValueError, match=name):
        TextFeatures(**{name: value})


def test_before_fitting():
    features = TextFeatures()
    for use in (
        lambda: features.transform(TEXTS),
        lambda: features.n_features,
        features.feature_names,
        features.to_arrays,
    ):
        with pytest.raises(NotFittedError, match="call fit"):
            use()


@kinds
def test_names_are_unambiguous(kind):
    if KINDS[kind].get("kind") != "hashing":
        features = fitted(kind)
        names = features.feature_names()
        assert len(set(names)) == len(names) == features.n_features


def test_names_of_characters_beside_words_are_quoted():
    features = TextFeatures("both", min_df=1, ngram_range=(1, 1), char_range=(3, 3)).fit(["a cat"])
    assert features.feature_names() == ["a", "cat", "' a '", "' ca'", "'at '", "'cat'"]
    assert features.n_word_terms == 2
    chars = TextFeatures("chars", min_df=1, char_range=(3, 3)).fit(["a cat"])
    assert chars.feature_names() == [" a ", " ca", "at ", "cat"]


def test_a_row_of_one_block_alone_has_length_one():
    features = TextFeatures("both", min_df=1, char_range=(4, 4)).fit(["cats dogs"])
    _, values = features.row_of("bobcats")  # no word is known
    np.testing.assert_allclose(np.sum(values**2), 1.0, rtol=1e-6)
    indices, values = features.row_of("cats")
    of_words = indices < features.n_word_terms
    np.testing.assert_allclose(np.sum(values[of_words] ** 2), 0.5, rtol=1e-6)


def test_hashed_features_have_no_names():
    with pytest.raises(ValueError, match="no names"):
        fitted("hashing").feature_names()


# -- state -----------------------------------------------------------------------------------------


@kinds
def test_what_is_stored_transforms_as_before(kind):
    features = fitted(kind)
    again = stored(features)
    new = ["a broken toe", "THE other COLD à", "3 3 3 3", "zebra", "", "âge de 3"]
    same(again.transform(TEXTS + new), features.transform(TEXTS + new))
    assert again.n_features == features.n_features
    same(again.fit(new * 2).transform(TEXTS), features.fit(new * 2).transform(TEXTS))


@given(texts, texts, st.integers(1, 3), st.integers(0, 2))
def test_the_state_of_any_texts_is_lossless(corpus, new, low, more):
    features = TextFeatures(ngram_range=(low, low + more), min_df=1)
    try:
        features.fit(corpus)
    except ValueError:
        return
    again = stored(features)
    assert again.feature_names() == features.feature_names()
    same(again.transform(new), features.transform(new))
    arrays, metadata = features.to_arrays()
    arrays_again, metadata_again = again.to_arrays()
    assert metadata == metadata_again
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_again[name], strict=True)


@kinds
def test_copies_and_pickles_transform_as_before(kind):
    features = fitted(kind)
    for again in (pickle.loads(pickle.dumps(features)), copy.deepcopy(features)):
        same(again.transform(TEXTS), features.transform(TEXTS))


def test_a_pickle_that_was_never_fitted():
    with pytest.raises(NotFittedError):
        pickle.loads(pickle.dumps(TextFeatures())).transform(TEXTS)


@kinds
def test_only_what_version_1_cannot_hold_is_stored_as_2(kind):
    _, metadata = fitted(kind).to_arrays()
    with_chars = KINDS[kind].get("kind") in ("chars", "both")
    assert metadata["version"] == (2 if with_chars else 1)
    assert ("char_range" in metadata) == with_chars


def test_the_state_is_a_copy():
    features = fitted()
    X = features.transform(TEXTS)
    arrays, metadata = features.to_arrays()
    again = TextFeatures.from_arrays(arrays, metadata)
    for array in arrays.values():
        array[:] = 0
    same(features.transform(TEXTS), X)
    same(again.transform(TEXTS), X)


# -- states that no recipe has ---------------------------------------------------------------------

HOSTILE_METADATA = [
    {"version": 2},
    {"version": None},
    {"version": "1"},
    {"kind": "pickle"},
    {"kind": ["tfidf"]},
    {"kind": "hashing"},
    {"ngram_range": [1, 10**9]},
    {"ngram_range": [0, 1]},
    {"ngram_range": [2, 1]},
    {"ngram_range": [1]},
    {"ngram_range": [True, 2]},
    {"ngram_range": [1, 1.5]},
    {"ngram_range": None},
    {"ngram_range": {"1": 2}},
    {"min_df": -1},
    {"min_df": 1e9},
    {"max_features": "many"},
    {"n_buckets": 3},
    {"n_buckets": 2**40},
    {"signed": "yes"},
    {"token_pattern": "(a+)+$"},
]


HOSTILE_METADATA_2 = [
    {"version": 1},
    {"version": 3},
    {"version": 2.0},
    {"version": True},
    {"kind": "tfidf"},
    {"kind": "hashing"},
    {"kind": "chars"},
    {"kind": {}},
    {"char_range": [0, 4]},
    {"char_range": [4, 11]},
    {"char_range": "44"},
    {"n_words": -1},
    {"n_words": 10**9},
    {"n_words": 2.0},
    {"n_words": True},
    {"n_words": None},
    {"analyzer": "char"},
]


@pytest.mark.parametrize("change", HOSTILE_METADATA_2, ids=str)
def test_hostile_metadata_of_version_2(change):
    arrays, metadata = fitted("both").to_arrays()
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        TextFeatures.from_arrays(arrays, metadata | change)


def test_a_word_may_be_a_sequence_of_characters_too():
    _, metadata = fitted("both").to_arrays()
    terms = term_arrays(b"cats", b"cats")
    assert TextFeatures.from_arrays(terms, metadata | {"n_words": 1}).n_features == 2
    for n_words in (0, 2):
        with pytest.raises(ValueError, match="1 terms occur twice"):
            TextFeatures.from_arrays(terms, metadata | {"n_words": n_words})


@pytest.mark.parametrize("change", HOSTILE_METADATA, ids=str)
def test_hostile_metadata(change):
    arrays, metadata = fitted().to_arrays()
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        TextFeatures.from_arrays(arrays, metadata | change)


@pytest.mark.parametrize("name", fitted().to_arrays()[1])
def test_metadata_that_is_missing(name):
    arrays, metadata = fitted().to_arrays()
    del metadata[name]
    with pytest.raises(ValueError, match=r"version|metadata must have"):
        TextFeatures.from_arrays(arrays, metadata)


@pytest.mark.parametrize("metadata", [None, [], "tfidf", 3])
def test_metadata_that_is_no_object(metadata):
    with pytest.raises(ValueError, match="metadata must be an object"):
        TextFeatures.from_arrays(fitted().to_arrays()[0], metadata)


def term_arrays(*terms: bytes) -> dict[str, np.ndarray]:
    return {
        "term_bytes": np.frombuffer(b"".join(terms), dtype=np.uint8),
        "term_ptr": np.cumsum([0, *map(len, terms)], dtype=np.int64),
        "idf": np.ones(len(terms), dtype=np.float32),
    }


def changed(**changes: object) -> dict[str, object]:
    return term_arrays(b"a", b"\xc3\xa9", b"b") | changes


INT64 = np.iinfo(np.int64)
HOSTILE_ARRAYS = {
    "no terms": (term_arrays(), "0 terms"),
    "no offsets": (changed(term_ptr=np.empty(0, np.int64)), "term_ptr"),
    "twice": (term_arrays(b"a", b"b", b"a"), "1 terms occur twice"),
    "empty term": (term_arrays(b"a", b""), "term_ptr must ascend"),
    "not UTF-8": (term_arrays(b"a", b"\xff"), "not UTF-8"),
    "surrogate": (term_arrays(b"\xed\xa0\x80"), "not UTF-8"),
    "within a character": (changed(term_ptr=np.array([0, 2, 3, 4])), "not UTF-8"),
    "first offset": (changed(term_ptr=np.array([1, 2, 3, 4])), "term_ptr must ascend"),
    "last offset": (changed(term_ptr=np.array([0, 1, 3, 5])), "term_ptr must ascend"),
    "short offsets": (changed(term_ptr=np.array([0, 1, 3])), "term_ptr must ascend"),
    "descending": (changed(term_ptr=np.array([0, 3, 1, 4])), "term_ptr must ascend"),
    "overflow": (changed(term_ptr=np.array([0, INT64.max, INT64.min, 4])), "must ascend"),
    "int32": (changed(term_ptr=np.array([0, 1, 3, 4], np.int32)), "term_ptr must be a vector"),
    "matrix": (changed(term_ptr=np.array([[0, 1, 3, 4]])), "term_ptr must be a vector"),
    "scalar": (changed(term_ptr=np.int64(0)), "term_ptr must be a vector"),
    "list": (changed(term_ptr=[0, 1, 3, 4]), "term_ptr must be a vector"),
    "objects": (changed(term_bytes=np.array([b"a"], object)), "term_bytes must be a vector"),
    "signed": (changed(term_bytes=np.zeros(4, np.int8)), "term_bytes must be a vector"),
    "NaN": (changed(idf=np.float32([1, np.nan, 1])), "idf must be positive and finite"),
    "infinity": (changed(idf=np.float32([1, np.inf, 1])), "idf must be positive and finite"),
    "negative": (changed(idf=np.float32([1, -1, 1])), "idf must be positive and finite"),
    "zero": (changed(idf=np.zeros(3, np.float32)), "idf must be positive and finite"),
    "few": (changed(idf=np.ones(2, np.float32)), "2 entries of idf for 3 terms"),
    "many": (changed(idf=np.ones(4, np.float32)), "4 entries of idf for 3 terms"),
    "double": (changed(idf=np.ones(3)), "idf must be a vector of float32"),
    "byte order": (changed(idf=np.ones(3, ">f4")), "idf must be a vector of float32"),
    "one more": (changed(other=np.ones(3)), "arrays must be"),
    "one less": ({"idf": np.ones(3, np.float32)}, "arrays must be"),
    "none": (None, "arrays must be"),
}


@pytest.mark.parametrize("case", HOSTILE_ARRAYS)
def test_hostile_arrays(case):
    arrays, message = HOSTILE_ARRAYS[case]
    with pytest.raises(ValueError, match=f"text features: .*{message}"):
        TextFeatures.from_arrays(arrays, fitted().to_arrays()[1])


def test_the_arrays_that_hostile_ones_are_made_from_are_good():
    features = TextFeatures.from_arrays(changed(), fitted().to_arrays()[1])
    assert features.feature_names() == ["a", "é", "b"]


def test_hashing_has_no_arrays():
    _, metadata = fitted("hashing").to_arrays()
    with pytest.raises(ValueError, match="arrays must be"):
        TextFeatures.from_arrays(changed(), metadata)


@given(
    st.binary(max_size=12),
    st.lists(st.integers(-3, 14), max_size=6),
    st.lists(st.floats(width=32), max_size=6),
)
def test_any_arrays_are_good_or_refused(content, ptr, idf):
    arrays = {
        "term_bytes": np.frombuffer(content, dtype=np.uint8),
        "term_ptr": np.array(ptr, dtype=np.int64),
        "idf": np.array(idf, dtype=np.float32),
    }
    try:
        features = TextFeatures.from_arrays(arrays, fitted().to_arrays()[1])
    except ValueError:
        return
    assert features.transform(TEXTS).shape == (len(TEXTS), len(idf))
    assert "".join(features.feature_names()).encode() == content
