"""The C header answers as Python does: labels the same, probabilities to 1e-6."""

from __future__ import annotations

import copy
import ctypes
import json
import math
import re
import subprocess
import sys
import tempfile
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks._mutations import mutated
from tests.attacks.corpus import ATTACKS
from tests.attacks.parts import CODES, Parts
from tests.data.models.make import HERE as OLD
from tests.data.vectors.make import EXPECTED, HERE
from tests.frozen_cases import real_rows, rich_forest, rich_model
from tests.narrow_cases import (
    LATER,
    ONCE,
    both_ways,
    cases,
    narrow_model,
    narrow_tree,
    wide_rows,
    wide_tree,
)
from tests.native.compiled import Native, NativeError, compiled, library, needs_compiler
from thinleaf import ModelFileError, load
from thinleaf.model.narrow import NARROW, widened
from thinleaf.native import _tables
from thinleaf.text.characters import character_kinds

pytestmark = needs_compiler
VECTORS = json.loads(EXPECTED.read_text("utf-8"))
PORTABLE = "-DTL_PORTABLE_LOADS"
ODD = [
    "", " ", "\t\n\x1c\x85", "\0", "a\0b", "_", "__init__", "\ud800", "x\udfffy", "ﬁ ﬂ", "Å Å K",
    "e\u0301t\u0301", "١٢٣ ⅷ Ⅷ ²", "a" * 5000, "card\u00a0loan\u2028pin", "ΑΣ",
    "Σ", "ΑΣ.", "Α.Σ", "İİİ",
    "\U0001f4b3 card \U0001f3e0\U0001f4b0", "ꭰ Ꭰ ᏸ", "ǅ ǈ ǋ", "\u1e9e", "\u180e\u200b\ufeff card",
]  # fmt: skip
ASAN = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")


def opened(name: str, *options: str, **arguments) -> Native:
    return Native((HERE / f"{name}.thinleaf").read_bytes(), *options, **arguments)


# -- the same answers ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), (PORTABLE,)], ids=["native", "portable"])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name, options):
    expected = VECTORS[name]
    inputs = [(text.encode(),) for text in expected.get("texts", [])]
    inputs = inputs or [(np.array(row, dtype=np.float32),) for row in expected.get("rows", [])]
    pairs = [(np.array(idx, dtype=int), val) for idx, val in expected.get("pairs", [])]
    for model in (opened(name, *options), opened(name, *options, check=False)):
        for given in (inputs, pairs):
            for i, one in enumerate(given):
                assert model.label(model.predict(*one)) == expected["predict"][i]
                ids, p = model.topk(*one, k=len(expected["topk"][i]))
                assert [model.label(c) for c in ids] == expected["topk"][i]
                np.testing.assert_allclose(p, expected["topk_proba"][i], rtol=0.0, atol=1e-6)
    for (text,), (idx, val) in zip(inputs, expected.get("text_rows", []), strict=False):
        own_idx, own_val = model.row(text)
        assert own_idx.tolist() == idx
        np.testing.assert_array_max_ulp(own_val, np.array(val, dtype=np.float32), 1)


@pytest.mark.parametrize("path", sorted(OLD.glob("*.safetensors")), ids=lambda path: path.stem)
def test_files_of_older_versions(path):
    native, model = Native(path.read_bytes()), load(path)
    for x in real_rows(n_features=model.n_features):
        assert native.label(native.predict(x)) == model.predict_one(x)


@pytest.mark.parametrize("beam", [1, 2, 7, 100])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
def test_beams_of_forests(tmp_path, beam, sparse, weights):
    model = rich_forest((8, 9), sparse=sparse, weights=weights).with_beam(beam, temperature=1.7)
    model.save(tmp_path / "model")
    native = Native((tmp_path / "model").read_bytes())
    for x in real_rows(n_rows=15):
        row = sp.csr_array(x[None])
        for one in ((x,), (row.indices, row.data)):
            ids, p = native.topk(*one, k=model.n_classes)
            top = model.predict_topk_one(*one, k=model.n_classes)
            assert ids == [label for label, _ in top]
            np.testing.assert_allclose(p, [value for _, value in top], rtol=0.0, atol=1e-9)
            assert native.predict(*one) == model.predict_one(*one)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
def test_narrow_trees(tmp_path, beam, weights):
    """Three segments; 150 leaves, so that not all routers are near the root; some arrays wide."""
    tree = wide_tree(1, n_leaves=150)
    model = narrow_model(both_ways(tree)[0], weights)
    wide = widened(model.packed)
    some = {"slot": wide.slot, "feat_idx": wide.feat_idx, "segment_ptr": wide.segment_ptr}
    other = {"row_ptr": wide.row_ptr, "row_base": wide.row_base}
    if weights == "float32":
        other["router_idx"] = wide.router_idx
    for changes in ({}, some, other):
        own = model.replaced(packed=replace(model.packed, **changes)).with_beam(beam)
        own.save(tmp_path / "model")
        native = Native((tmp_path / "model").read_bytes())
        for row in wide_rows(2, tree, 15):
            one = (row.indices, row.data)
            ids, p = native.topk(*one, k=5)
            top = own.predict_topk_one(*one, k=5)
            assert ids == [label for label, _ in top]
            np.testing.assert_allclose(p, [value for _, value in top], rtol=0.0, atol=1e-9)
            assert native.predict(*one) == own.predict_one(*one)


@pytest.mark.parametrize(
    "name",
    ["dense", "sparse", "forest", "beam-temperature", "narrow", "narrow-float16", "narrow-int8"],
)
def test_a_path_ends_in_the_leaf(name):
    native, expected = opened(name), VECTORS[name]
    child = load(HERE / f"{name}.thinleaf").packed.child
    for row, leaves in zip(expected["rows"], expected["leaf_nodes"], strict=True):
        for tree, leaf in enumerate(leaves):
            steps, end = native.path(row, tree=tree)
            assert child[leaf] == -1 - end
            at = tree
            for node, branch, score in steps:
                assert node == at
                assert branch == (score >= 0.0)
                at = child[node] + branch
            assert at == leaf


@pytest.mark.parametrize("name", ["label-tree", "label-tree-binary"])
def test_a_path_of_a_label_tree_has_the_probability_of_its_label(name):
    native, expected = opened(name), VECTORS[name]
    model = load(HERE / f"{name}.thinleaf")
    X = np.array(expected["rows"], dtype=np.float32)
    for x, p in zip(X, model.label_proba(X, expected["predict"]), strict=True):
        steps, end = native.path(x)
        assert native.label(end) == model.predict_one(x)
        assert math.exp(sum(score for _, _, score in steps)) == pytest.approx(p, abs=1e-6)


# -- texts -----------------------------------------------------------------------------------------


def lowered(text: str) -> bytes:
    content = text.encode("utf-8", "surrogatepass")
    out = ctypes.create_string_buffer(2 * len(content) + 8)
    n = library().d_lower(content, ctypes.c_size_t(len(content)), out)
    return out.raw[:n]


def same_unicode() -> bool:
    return f"{_tables.BEGIN} {unicodedata.unidata_version}," in _tables.HEADER.read_text("utf-8")


unicode = pytest.mark.skipif(not same_unicode(), reason="another version of Unicode")


@unicode
def test_the_tables_are_those_of_python():
    header = _tables.HEADER.read_text("utf-8")
    assert _tables.written(header) == header
    kinds = character_kinds()
    kind = library().d_kind
    odd = [code for code in range(sys.maxunicode + 1) if kind(code) != kinds[code]]
    assert odd == []
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert lowered(every) == every.lower().encode("utf-8", "surrogatepass")


@unicode
def test_sigma_at_the_end_of_a_word():
    rng = np.random.default_rng(0)
    signs = list("aAΣσ.':\u00ad\u0345 1_-ʰéİ\U00010400\u0300")
    for _ in range(3000):
        text = "".join(rng.choice(signs, size=rng.integers(1, 9)))
        assert lowered(text) == text.lower().encode(), text


@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith("text-")])
def test_odd_texts(name):
    native, model = opened(name, text_bytes=100_000), load(HERE / f"{name}.thinleaf")
    rng = np.random.default_rng(1)
    words = [
        "card",
        "Loan",
        "été",
        "ΣΊΣΥΦΟΣ",
        "pin",
        "漢字",
        " ",
        "\t",
        "_",
        "-",
        "'",
        "\U0001f600",
    ]
    made = ["".join(rng.choice(words, size=n)) for n in rng.integers(0, 60, size=80)]
    many = ["pin card " * 2000, "ab\u2003" * 300]
    for text in [*ODD, *made, *many]:
        content = text.encode("utf-8", "surrogatepass")
        idx, val = model.input.one(text)
        own_idx, own_val = native.row(content)
        assert own_idx.tolist() == idx.tolist(), text
        np.testing.assert_array_max_ulp(own_val, val, 2)
        assert native.label(native.predict(content)) == model.predict_one(text)


@pytest.mark.parametrize("text", [b"\xff", b"a\x80", b"\xc0\x80", b"\xe2\x82", b"\xf5\x80\x80\x80"])
def test_what_is_not_utf8_is_refused(text):
    for name in ("text-words", "text-both", "label-tree-text"):
        with pytest.raises(NativeError, match="UTF-8"):
            opened(name).predict(text)


# -- numbers ---------------------------------------------------------------------------------------


def test_functions():
    lib = library()
    for x in [*np.linspace(-708, 709, 4001), 0.0, -0.0, 1e-300, -1e-17]:
        assert lib.d_exp(x) == pytest.approx(math.exp(x), rel=1e-15)
    assert lib.d_exp(-1e9) == 0.0
    assert math.isnan(lib.d_exp(math.nan))
    assert lib.d_exp(math.inf) == math.inf
    for x in np.geomspace(1e-300, 1e300, 4001):
        assert lib.d_log(x) == pytest.approx(math.log(x), rel=1e-15, abs=1e-16)
    for x in [*np.linspace(0, 1, 1001), 1e-300, 1e-9]:
        assert lib.d_log1p(x) == pytest.approx(math.log1p(x), rel=1e-15)
    bits = np.arange(2**16, dtype=np.uint16)
    halves = bits.view(np.float16)
    for h, value in zip(bits[np.isfinite(halves)], halves[np.isfinite(halves)], strict=True):
        assert lib.d_half(int(h)) == float(value)


def test_functions_of_many_numbers():
    lib = library()
    x = np.concatenate([np.linspace(-800, 800, 4001), [0.0, -0.0, 1e-300, math.inf, -math.inf]])
    soft = x.copy()
    lib.d_soften(soft.ctypes, x.size)
    np.testing.assert_allclose(soft, np.log1p(np.exp(-np.abs(x))), rtol=1e-14, atol=1e-300)
    for k in [*range(1, 20), 255, 264, 1000]:
        scores = np.random.default_rng(k).normal(scale=20, size=k).astype(np.float32)
        votes = scores.copy()
        total = lib.d_votes(votes.ctypes, ctypes.c_int64(k))
        expected = np.exp(scores.astype(np.float64) - scores.max())
        np.testing.assert_allclose(votes, expected, rtol=1e-5, atol=1e-30)
        assert votes.max() == 1.0
        assert total == pytest.approx(expected.sum(), rel=1e-6)
        votes[k // 2] = math.nan
        assert math.isnan(lib.d_votes(votes.ctypes, ctypes.c_int64(k)))
    nothing = np.array([math.nan])
    lib.d_soften(nothing.ctypes, 1)
    assert math.isnan(nothing[0])


# -- hostile rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dense", "sparse", "beam", "forest-beam", "label-tree", "narrow"])
def test_rows_that_are_none(name):
    native = opened(name)
    width = native.n_features
    for n in (0, width - 1, width + 1):
        with pytest.raises(NativeError, match="another number of features"):
            native.predict(np.zeros(n, dtype=np.float32))
    for bad in (-1, width, 2**31 - 1, -(2**31)):
        with pytest.raises(NativeError, match="not the number of a feature"):
            native.predict(np.array([0, bad]), np.ones(2))
    for k in (0, -1, native.n_classes + 1):
        with pytest.raises(NativeError, match="no such number"):
            native.topk(np.zeros(width, dtype=np.float32), k=k)
    with pytest.raises(NativeError, match="no such number"):
        native.path(np.zeros(width, dtype=np.float32), tree=native.n_trees)
    with pytest.raises(NativeError, match="takes rows"):
        native.predict(b"a text")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45])
@pytest.mark.parametrize("name", ["dense", "sparse", "beam", "forest-beam", "label-tree", "narrow"])
def test_numbers_that_are_none(name, value):
    native, model = opened(name), load(HERE / f"{name}.thinleaf")
    rng = np.random.default_rng(0)
    for share in (0.1, 1.0):
        x = np.where(rng.random(native.n_features) < share, np.float32(value), np.float32(1))
        found = native.predict(x.astype(np.float32))
        assert 0 <= found < native.n_classes
        ids, _ = native.topk(x, k=2)
        assert all(0 <= c < native.n_classes for c in ids)
        if name in ("dense", "sparse", "narrow"):
            assert native.label(found) == model.predict_one(x.astype(np.float32))


def test_pairs_may_repeat_and_come_in_any_order():
    for name in ("dense", "sparse", "narrow-int8", "narrow-segments"):
        native, model = opened(name), load(HERE / f"{name}.thinleaf")
        rng = np.random.default_rng(2)
        for n in (0, 1, 5, 100, 1000):
            idx = rng.integers(native.n_features, size=n).astype(np.int32)
            val = rng.normal(size=n).astype(np.float32)
            assert native.label(native.predict(idx, val)) == model.predict_one(idx, val)


# -- hostile files ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good() -> dict[str, bytes]:
    names = [f"feature {i}" for i in range(30)]
    models = {
        "dense": rich_model(3, weights="int8", feature_names=names),
        "sparse": rich_model(3, sparse=True, labels=np.array([*"abcdefghi"]), feature_names=names),
        "forest": rich_forest((3, 4), sparse=True).with_beam(2, temperature=2.0),
        "halves": rich_model(3, weights="float16", labels=np.arange(9) / 2),
        "narrow": narrow_tree(7),
        "narrow-int8": narrow_tree(8, weights="int8"),
    }
    found = {name: path_content(model) for name, model in models.items()}
    return found | {
        name: (OLD / f"{name}.safetensors").read_bytes()
        for name in ("dense-float16-bool", "estimator", "sparse-float32-object")
    }


def path_content(model) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        model.save(Path(name, "model"))
        return Path(name, "model").read_bytes()


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused(good, name, tmp_path):
    """But where an attack does not make a file a bad one: then Python opens it, too."""
    n_refused = 0
    for content in good.values():
        bad = ATTACKS[name](Parts.parse(content))
        if bad is None:
            continue
        try:
            Native(bad)
        except NativeError:
            n_refused += 1
        else:
            (tmp_path / "model").write_bytes(bad)
            load(tmp_path / "model").check()
    assert n_refused > 0


def test_files_that_end_early(good):
    for content in (good["dense"], good["sparse-float32-object"]):
        for n in [*range(0, 300, 7), *range(300, len(content), 97)]:
            with pytest.raises(NativeError):
                Native(content[:n])
    with pytest.raises(NativeError):
        Native(good["dense"] + b"\0")


def agree(content: bytes, path: Path) -> bool:
    """Return whether Python and C both accept a file, or both refuse it; they answer alike."""
    path.write_bytes(content)
    try:
        model = load(path)
        model.check()
        python = True
    except ModelFileError:
        python = False
    try:
        native = Native(content)
        accepted = True
    except NativeError:
        accepted = False
    if accepted and python and model.n_features < 1000:
        x = np.ones(model.n_features, dtype=np.float32)
        assert native.label(native.predict(x)) == model.predict_one(x)
    return accepted == python


@pytest.mark.parametrize("narrow", [False, True])
def test_mutated_files_are_refused_or_agree(tmp_path, good, narrow):
    """Whatever one of the two accepts, the other does, and they answer alike."""
    rng = np.random.default_rng(5)
    files = [content for name, content in good.items() if name.startswith("narrow") == narrow]
    made = [mutated(rng, files) for _ in range(500)]
    assert [kind for kind, content in made if not agree(content, tmp_path / "bad")] == []


@pytest.mark.parametrize(
    ("table", "name", "i"), [(t, *case) for t in (ONCE, LATER) for case in cases(t)]
)
def test_narrow_arrays_that_do_not_fit(tmp_path, table, name, i):
    content = path_content(narrow_tree(5, width=150_000))
    parts = Parts.parse(content)
    changed = table[name][i](parts.arrays[f"tree.{name}"].copy())
    if changed.dtype not in CODES:
        pytest.skip("no file has such numbers")
    parts.arrays[f"tree.{name}"] = changed
    with pytest.raises(NativeError):
        Native(bytes(parts))
    assert agree(bytes(parts), tmp_path / "bad")


def test_where_narrow_arrays_may_be(tmp_path):
    """Python and C agree on every mixture of types, versions and empty offsets."""
    narrow = Parts.parse(path_content(narrow_tree(7)))
    wide = widened(narrow_tree(7).packed).arrays()
    dense = Parts.parse(path_content(rich_model(3)))
    accepted = 0
    for names in ([], ["slot"], ["feat_idx"], ["row_ptr"], ["router_idx"], ["router_val"], wide):
        for drop in ([], ["segment_ptr"], ["row_base"], ["segment_ptr", "row_base"]):
            for version in (1, 3, 4, 5):
                parts = copy.deepcopy(narrow)
                parts.metadata["version"] = version
                parts.arrays |= {f"tree.{name}": wide[name] for name in names}
                for name in drop:
                    parts.arrays[f"tree.{name}"] = np.empty(0, np.int64)
                for without in (False, True):
                    for name in drop if without else []:
                        del parts.arrays[f"tree.{name}"]
                    assert agree(bytes(parts), tmp_path / "bad"), (list(names), drop, version)
                    accepted += is_accepted(bytes(parts))
    assert accepted > 10
    for name, dtype in NARROW.items():
        for version in (1, 4):
            parts = copy.deepcopy(dense)
            parts.metadata |= {"version": version, "n_trees": 1, "temperature": 1.0}
            assert is_accepted(bytes(parts))
            parts.arrays[f"tree.{name}"] = parts.arrays[f"tree.{name}"].astype(dtype)
            assert not is_accepted(bytes(parts))
            assert agree(bytes(parts), tmp_path / "bad")


def is_accepted(content: bytes) -> bool:
    try:
        Native(content)
    except NativeError:
        return False
    return True


# -- sanitizers ------------------------------------------------------------------------------------


def test_nothing_is_read_or_written_outside(tmp_path, good):
    """Good and mutated files, rows and texts, under AddressSanitizer and UBSan."""
    try:
        program = compiled("fuzz.c", *ASAN)
    except subprocess.CalledProcessError:
        pytest.skip("the compiler has no sanitizers")
    kept = [*HERE.glob("*.thinleaf"), *(Path(__file__).parent / "corpus").iterdir()]
    for i, content in enumerate([*good.values(), *(path.read_bytes() for path in kept)]):
        (tmp_path / f"{i}").write_bytes(content)
    files = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(
        [str(program), "1500", "1", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"\d+ cases", done.stdout)
