"""The compiled reader gives scikit-learn's rows for any Unicode, alone, together and in threads."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.utils import murmurhash3_32

from thinleaf.kernels._jit import strict_kernel
from thinleaf.text.characters import character_kinds
from thinleaf.text.encoding import all_encoded, encoded
from thinleaf.text.features import TextFeatures
from thinleaf.text.kernels.grams import key_of_term, murmur_hash
from thinleaf.text.kernels.tokens import OTHER, SPACE, WORD
from thinleaf.text.vocabulary import Vocabulary

WORD_PATTERN = r"(?u)\b\w+\b"
NASTY = (
    "aAbB1_ -.,\t\n\r\x0b\x1c\x1f\x00\x7f\x85\xa0éÉßİıΣσςſK\u0301\u0345\u0670\u200b\u200d\u2028"
    "\u3000\ufeff\uffff漢字Ж\ud800\udfff\U0001f600\U00010400\U0001d7d8\U000e0001"
)
"""Combining marks, separators, cases of several lengths, halves of surrogates, astral planes."""
nasty = st.text(st.sampled_from(NASTY), max_size=30)
some_text = st.one_of(nasty, st.text(st.characters(), max_size=20), st.text(max_size=30))
corpora = st.lists(some_text, min_size=1, max_size=6)
ranges = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda p: (p[0], p[0] + p[1]))


def same(a: sp.csr_matrix, b: sp.csr_matrix) -> None:
    assert a.shape == b.shape
    b.sort_indices()  # scikit-learn's need not be
    np.testing.assert_array_equal(a.indptr, b.indptr)
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_allclose(a.data, b.data, rtol=1e-6)


def peer(features: TextFeatures, *, is_chars: bool) -> TfidfVectorizer:
    """Return scikit-learn's vectorizer with the same terms: the readable version."""
    n_words, terms = features.n_word_terms, list(features._vocabulary.terms)
    own = terms[n_words:] if is_chars else terms[:n_words]
    how = (
        {"analyzer": "char_wb", "ngram_range": features.char_range}
        if is_chars
        else {"token_pattern": WORD_PATTERN, "ngram_range": features.ngram_range}
    )
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, dtype=np.float32, vocabulary={t: i for i, t in enumerate(own)}, **how
    )
    idf = features._vocabulary.idf
    vectorizer.idf_ = idf[n_words:] if is_chars else idf[:n_words]
    return vectorizer


def reference(features: TextFeatures, texts: list[str]) -> sp.csr_matrix:
    """Return the rows of any kind with terms, by scikit-learn and SciPy."""
    blocks = []
    if features.n_word_terms > 0:
        blocks.append(peer(features, is_chars=False).transform(texts))
    if features.n_word_terms < features.n_features:
        blocks.append(peer(features, is_chars=True).transform(texts))
    X = sp.hstack(blocks, format="csr", dtype=np.float32)
    X.sort_indices()
    length = np.sqrt(X.multiply(X).sum(axis=1)).A1
    return sp.csr_matrix(sp.diags(1.0 / np.where(length > 0, length, 1.0)) @ X, dtype=np.float32)


def learned(kind: str, corpus: list[str], **settings: object) -> TextFeatures | None:
    try:
        return TextFeatures(kind, min_df=1, **settings).fit(corpus)
    except ValueError:
        return None


# -- equal to scikit-learn -------------------------------------------------------------------------


@given(corpora, corpora, ranges)
@example(
    ["İstanbul ΟΔΟΣ ΣΑΣ", "o\u0301 \U0001f600x \ud800y"], ["istanbul", "İ", "ὈΔΥΣΣΕΎΣ"], (1, 2)
)
def test_words_of_any_text(corpus, new, ngram_range):
    features = learned("tfidf", corpus, ngram_range=ngram_range)
    own = TfidfVectorizer(
        token_pattern=WORD_PATTERN, ngram_range=ngram_range, sublinear_tf=True, dtype=np.float32
    )
    if features is None:
        with pytest.raises(ValueError, match="empty vocabulary"):
            own.fit(corpus)
        return
    expected = own.fit_transform(corpus)
    assert features.feature_names() == own.get_feature_names_out().tolist()
    same(features.transform(corpus), expected)
    same(features.transform(new), own.transform(new))


@given(corpora, corpora, ranges)
@example(["a  bc\u2028def \x1c ghij"], ["é\u0301\U0001f600 a"], (1, 5))
@example(["ab\ud800 cd"], ["ab\ud800", "ab"], (2, 3))
def test_characters_of_any_text(corpus, new, char_range):
    features = learned("chars", corpus, char_range=char_range)
    own = TfidfVectorizer(
        analyzer="char_wb", ngram_range=char_range, sublinear_tf=True, dtype=np.float32
    )
    if features is None:
        return
    terms = own.fit(corpus).get_feature_names_out().tolist()
    assert features.feature_names() == [
        term for term in terms if not any("\ud800" <= c <= "\udfff" for c in term)
    ]
    same(features.transform(corpus + new), peer(features, is_chars=True).transform(corpus + new))
    if len(terms) == features.n_features:
        same(features.transform(corpus + new), own.transform(corpus + new))


@given(corpora, corpora, ranges, ranges)
def test_words_and_characters_side_by_side(corpus, new, ngram_range, char_range):
    features = learned("both", corpus, ngram_range=ngram_range, char_range=char_range)
    if features is not None:
        same(features.transform(corpus + new), reference(features, corpus + new))


@given(corpora, ranges, st.sampled_from([1, 2, 64, 2**20]), st.booleans())
def test_hashes_of_any_text(texts, ngram_range, n_buckets, signed):
    own = HashingVectorizer(
        token_pattern=WORD_PATTERN,
        ngram_range=ngram_range,
        n_features=n_buckets,
        alternate_sign=signed,
        dtype=np.float32,
    )
    settings = {"ngram_range": ngram_range, "n_buckets": n_buckets, "signed": signed}
    same(TextFeatures("hashing", **settings).transform(texts), own.transform(texts))


@given(st.lists(st.sampled_from("abcdefgh"), min_size=50, max_size=2000), st.integers(1, 3))
def test_long_texts_with_counts_of_any_size(words, n):
    """More entries than are sorted by insertion, and counts beyond the table of weights."""
    text = " ".join(words) + " z" * (200 * n)
    features = TextFeatures("both", ngram_range=(1, 2), min_df=1).fit([text, "a b z"])
    same(features.transform([text, "z z"]), reference(features, [text, "z z"]))


def test_many_terms():
    """Ids of more than two digits, in the order of the radix sort."""
    rng = np.random.default_rng(0)
    corpus = [" ".join(f"w{i}" for i in rng.integers(0, 300_000, 400)) for _ in range(600)]
    features = TextFeatures(min_df=1, max_features=None).fit(corpus)
    assert features.n_features > 2**18
    X = features.transform(corpus)
    assert X.has_sorted_indices
    same(X, reference(features, corpus))


# -- in whichever way texts come -------------------------------------------------------------------


@given(corpora, st.sampled_from(["tfidf", "chars", "both", "hashing"]))
def test_alone_as_together(corpus, kind):
    features = learned(kind, [*corpus, "ab abc"])
    X = features.transform(corpus)
    for i, text in enumerate(corpus):
        indices, values = features.row_of(text)
        assert (indices.dtype, values.dtype) == (np.int32, np.float32)
        np.testing.assert_array_equal(indices, X[i].indices)
        np.testing.assert_array_equal(values, X[i].data)


@pytest.mark.parametrize("kind", ["tfidf", "both", "hashing"])
def test_threads_give_the_same_bits(kind):
    texts = [f"text {i} of é{i % 7} and {i % 13}" for i in range(1000)]
    features = TextFeatures(kind).fit(texts)
    X = features.transform(texts)
    for n_jobs in (2, 3, -1):
        Y = features.transform(texts, n_jobs=n_jobs)
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(X, name), getattr(Y, name), strict=True)
    same(features.fit_transform(texts, n_jobs=2), X)


def test_first_texts_beyond_ascii_come_from_several_threads():
    texts = ["plain text", "é plain", "ascii", "漢字 text"] * 50
    features = TextFeatures(min_df=1).fit(texts)
    again = TextFeatures.from_arrays(*features.to_arrays())
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(again.row_of, texts))
    X = features.transform(texts)
    for i, (indices, values) in enumerate(rows):
        np.testing.assert_array_equal(indices, X[i].indices)
        np.testing.assert_array_equal(values, X[i].data)


@pytest.mark.parametrize("bad", [None, 3, b"bytes", ["a"]])
def test_a_row_of_what_is_no_text(bad):
    with pytest.raises(ValueError, match="text must be a string"):
        TextFeatures("hashing").row_of(bad)


# -- parts -----------------------------------------------------------------------------------------


def test_kinds_of_characters_are_those_of_python():
    kinds = character_kinds()
    assert kinds.size == sys.maxunicode + 1
    word, space = re.compile(r"\w"), re.compile(r"\s")
    for code in [*range(0x3000), *range(0x3000, sys.maxunicode + 1, 97), *range(0xD7F0, 0xE010)]:
        c = chr(code)
        expected = WORD if word.match(c) else SPACE if c.isspace() else OTHER
        assert kinds[code] == expected, hex(code)
        assert bool(space.match(c)) == c.isspace()
    np.testing.assert_array_equal(character_kinds(128), kinds[:128])


@given(corpora)
def test_encoded_alone_and_together(texts):
    joined, ptr = all_encoded(texts)
    parts = [joined[a:b] for a, b in pairwise(ptr)]
    assert parts == [encoded(text) for text in texts]
    assert [part.decode("utf-8", "surrogatepass") for part in parts] == [t.lower() for t in texts]


@strict_kernel
def _murmur(content):
    return murmur_hash(content.ctypes.data, content.size)


@strict_kernel
def _key(content, is_chars):
    return key_of_term(content.ctypes.data, content.size, is_chars)


@given(st.binary(max_size=40))
def test_hashes_are_those_of_scikit_learn(content):
    found = _murmur(np.frombuffer(content + b"\0", dtype=np.uint8)[:-1])
    assert found == murmurhash3_32(content, positive=True)


@given(st.lists(st.binary(min_size=1, max_size=9), unique=True, min_size=2), st.booleans())
def test_short_terms_have_keys_of_their_own(terms, is_chars):
    keys = [int(_key(np.frombuffer(term, dtype=np.uint8), is_chars)) for term in terms]
    assert all(keys)
    short = [key for key, term in zip(keys, terms, strict=True) if len(term) <= 7]
    assert len(set(short)) == len(short)
    assert all((key >> 63) == (len(t) > 7) for key, t in zip(keys, terms, strict=True))


def test_terms_whose_keys_are_equal_are_told_apart():
    """Two long terms in one slot: the bytes decide."""
    features = TextFeatures(ngram_range=(1, 1), min_df=1).fit(["abcdefghi zyxwvutsr"])
    vocabulary = features._vocabulary
    slots = vocabulary.slots.reshape(-1, 2).copy()
    (used,) = np.nonzero(slots[:, 0])
    entries = slots[used, 1].copy()
    first = int(used[0])
    key = slots[first, 0]
    slots[:] = 0
    for i, entry in enumerate(entries):  # both under the key of one of them
        slots[(first + i) % len(slots)] = (key, entry)
    swapped = Vocabulary(vocabulary.term_bytes, vocabulary.term_ptr, vocabulary.idf, 2)
    swapped.__dict__["slots"] = slots.ravel()
    features._set(swapped)
    found = [features.row_of(term)[0].tolist() for term in ("abcdefghi", "zyxwvutsr")]
    assert sorted(found, key=len)[1] in ([0], [1])  # the term with that key, and not the other one
    assert [len(row) for row in found].count(1) == 1
    right = found.index(max(found, key=len))
    assert found[right] == [right]
