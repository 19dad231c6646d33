"""Model files: what goes in comes out, writes are whole, reading maps, and old files stay good."""

from __future__ import annotations

import gzip
import json
import mmap
import os
import platform
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from tests.attacks.parts import Parts
from tests.data.models.make import EXPECTED, HERE, rows_for, said, said_of_texts
from tests.estimator_cases import adaptive, assert_same_model, formats, problem, quick
from tests.frozen_cases import (
    LABELS,
    assert_same_answers,
    assert_same_frozen,
    both,
    frozen,
    labels_of,
    layouts,
    real_rows,
    rich_model,
    weight_types,
)
from tests.strategies import random_tree, trees
from thinleaf import FrozenTree, ModelFileError, Tree, load, load_estimator
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.arrays.files import read_arrays, strict_json, write_arrays
from thinleaf.model.file_parts import Section
from thinleaf.model.tree import Leaf
from thinleaf.softmaxtree.growth.prune import prune

NAMES = ["", "é", "漢字", "a\nb", "\U0001f600", *(f"feature {i}" for i in range(25))]


def reloaded(model: FrozenTree, path: Path) -> FrozenTree:
    model.save(path)
    return load(path)


# -- what goes in comes out ------------------------------------------------------------------------


@layouts
@weight_types
@pytest.mark.parametrize("kind", LABELS)
def test_a_file_is_the_model(tmp_path, sparse, weights, kind):
    model = rich_model(
        sparse=sparse, weights=weights, labels=labels_of(kind), feature_names=NAMES, beam=2,
        summary={"a": [1, 2.5, None, True, {"é": "漢"}], "b": {}},
        sections={"notes": Section({"x": np.arange(6.0).reshape(2, 3)}, {"version": 1})},
    )  # fmt: skip
    again = reloaded(model, tmp_path / "model")
    assert_same_frozen(model, again)
    for rows in both(real_rows()):
        assert_same_answers(model, again, rows)
    for x in real_rows(n_rows=5):
        assert again.predict_one(x) == model.predict_one(x)
        assert again.predict_topk_one(x, k=3) == model.predict_topk_one(x, k=3)
    assert_same_frozen(model, reloaded(again, tmp_path / "again"))
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()
    assert_same_answers(again.with_beam(4), model.with_beam(4), real_rows())
    if weights == "float32":
        assert_same_frozen(again.quantized("int8"), model.quantized("int8"))


@given(tree=trees(), sparse=st.booleans(), weights=st.sampled_from(["float32", "float16", "int8"]))
def test_any_tree_comes_back(tmp_path_factory, tree, sparse, weights):
    tree, _ = prune(tree)
    model = frozen(tree, sparse=sparse, weights=weights, epsilon=0.01)
    again = reloaded(model, tmp_path_factory.getbasetemp() / "any")
    assert_same_frozen(model, again)
    assert_same_answers(model, again, np.ones((2, tree.n_features), PARAM))


@pytest.mark.parametrize(("temperature", "version"), [(1.0, 1), (2.5, 3)])
def test_a_temperature_comes_back(tmp_path, temperature, version):
    model = rich_model(beam=3).with_beam(3, temperature=temperature)
    again = reloaded(model, tmp_path / "model")
    assert_same_frozen(model, again)
    assert_same_answers(model, again, real_rows())
    assert read_arrays(tmp_path / "model")[1]["version"] == version


def test_labels_that_are_flags(tmp_path):
    model = frozen(random_tree(np.random.default_rng(0), 1, 3, 2), labels=labels_of("bool"))
    again = reloaded(model, tmp_path / "model")
    assert_same_frozen(model, again)
    assert type(again.predict_one(np.zeros(3, PARAM))) is bool


@pytest.mark.parametrize(
    ("dtype", "wide"), [(np.int8, np.int64), (np.uint32, np.int64), (np.float32, np.float64)]
)
def test_numbers_come_back_wide(tmp_path, dtype, wide):
    labels = np.arange(9, dtype=dtype) / dtype(1)
    again = reloaded(rich_model(labels=labels.astype(dtype)), tmp_path / "model")
    np.testing.assert_array_equal(again.labels, labels.astype(wide), strict=True)


@given(st.lists(st.text(max_size=20), min_size=9, max_size=9, unique=True))
def test_any_strings_are_labels(tmp_path_factory, texts):
    labels = np.array(texts, dtype=object)
    path = tmp_path_factory.getbasetemp() / "labels"
    again = reloaded(rich_model(labels=labels, feature_names=texts * 3 + texts[:3]), path)
    assert again.labels.tolist() == texts
    assert again.feature_names == texts * 3 + texts[:3]


def test_one_long_label_does_not_take_room_for_all(tmp_path):
    """An array of fixed width would: 2,000 times 40,000 characters of four bytes."""
    labels = np.array([str(i) for i in range(1999)] + ["x" * 40_000], dtype=object)
    tree = Tree.build(np.array([[-1, -1]]), [Leaf.constant(1999)], n_features=1, n_classes=2000)
    model = frozen(tree, labels=labels)
    model.save(tmp_path / "model")
    parts = Parts.read(tmp_path / "model")
    parts.metadata["labels"] = "str"
    (tmp_path / "model").write_bytes(bytes(parts))
    tracemalloc.start()
    again = load(tmp_path / "model")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
    assert again.labels.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, "a", 2, 3, 4, 5, 6, 7, 8], dtype=object),
        np.array([(i,) for i in range(9)] + [None], dtype=object)[:9],
        np.arange(9).astype(complex),
        np.arange(9).astype("M8[D]"),
        np.arange(9, dtype=np.uint64) + np.uint64(2**63),
        np.array(["\ud800", *"abcdefgh"], dtype=object),
    ],
)
def test_other_labels_are_not_written(tmp_path, labels):
    model = rich_model(labels=labels)
    model.predict(real_rows())
    with pytest.raises(ValueError, match=r"labels|surrogates"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u2", "u1", "?"])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (0, 4), (1, 2, 3)])
def test_arrays_of_a_section(tmp_path, dtype, shape):
    array = np.random.default_rng(0).integers(0, 2, size=shape).astype(dtype)
    model = rich_model(sections={"part": Section({"a": array, "b.c": array}, {"n": 1})})
    assert_same_frozen(model, reloaded(model, tmp_path / "model"))


def test_what_could_not_be_read_is_not_written(tmp_path):
    bad: list[dict[str, Any]] = [
        {"summary": {"a": float("nan")}},
        {"summary": {"a": float("inf")}},
        {"summary": {1: 1, "1": 2}},
        {"summary": {"a": "x" * 16_000_000}},
        {"sections": {"part": Section({"a": np.zeros(2, np.uint32)}, {})}},
        {"sections": {"part": Section({"a": np.zeros(2, complex)}, {})}},
    ]
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    for options in (*bad, {"summary": {"a": deep}}):
        model = rich_model(**options)
        with pytest.raises(ValueError, match=r"\w"):
            model.save(tmp_path / "model")
    with pytest.raises(TypeError):
        rich_model(summary={"a": np.arange(3)}).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_paths(tmp_path, monkeypatch):
    model = rich_model()
    monkeypatch.chdir(tmp_path)
    for path in ("model", "mödel 漢", str(tmp_path / "a.b.c"), tmp_path / "path"):
        assert_same_frozen(model, reloaded(model, path))
    with pytest.raises(FileNotFoundError):
        load("nothing")
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "nowhere" / "model")
    with pytest.raises(OSError, match="directory"):
        load(tmp_path)


def test_strict_json():
    assert strict_json(b'{"a": [1, 2.5, null, "\xc3\xa9"]}') == {"a": [1, 2.5, None, "é"]}
    assert strict_json("[" * 60 + "]" * 60)
    for text in ('{"a": 1, "a": 1}', '[{"a": {"b": 1, "b": 2}}]', "NaN", "[-Infinity]", "1e999",
                 "-1e999", "[" * 65 + "]" * 65, '{"a":' * 70 + "1" + "}" * 70, "[1,]", "", "'a'",
                 "9" * 5000, "[" * 100_000):  # fmt: skip
        with pytest.raises(ValueError, match=r"\w"):
            strict_json(text)


# -- other programs --------------------------------------------------------------------------------


@layouts
def test_safetensors_reads_our_files(tmp_path, sparse):
    model = rich_model(sparse=sparse, labels=labels_of("str"), feature_names=NAMES)
    model.save(tmp_path / "model")
    with safe_open(tmp_path / "model", "np") as file:
        metadata = json.loads(file.metadata()["thinleaf"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert metadata["format"] == "thinleaf model"
    assert metadata["version"] == 1
    for name, array in model.packed.arrays().items():
        np.testing.assert_array_equal(arrays[f"tree.{name}"], array, strict=True)
    assert bytes(arrays["features.utf8"]).decode() == "".join(NAMES)


# -- writes are whole ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("step", ["save_file", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, error, step):
    path = tmp_path / "model"
    rich_model(1).save(path)
    before = path.read_bytes()

    def fail(*arguments: Any) -> None:
        if step == "save_file":
            Path(arguments[1]).write_bytes(b"half a file")
        raise error

    monkeypatch.setattr(safetensors.numpy if step == "save_file" else os, step, fail)
    with pytest.raises(type(error)):
        rich_model(2).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_an_oserror(tmp_path, monkeypatch):
    def fail(*arguments: Any) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(OSError, match="cannot be written: No space left"):
        rich_model().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_others_may_read_a_file_as_the_umask_says(tmp_path):
    (tmp_path / "plain").touch()
    rich_model().save(tmp_path / "model")
    modes = [(tmp_path / name).stat().st_mode for name in ("plain", "model")]
    assert modes[0] == modes[1]


def test_a_write_leaves_one_file(tmp_path):
    for seed in range(3):
        rich_model(seed).save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_writers_at_once_leave_the_file_of_one(tmp_path):
    path = tmp_path / "model"
    models = [rich_model(seed) for seed in range(4)]
    models[0].save(path)
    threads = [
        threading.Thread(target=lambda m=model: [m.save(path) for _ in range(10)])
        for model in models
    ]
    for thread in threads:
        thread.start()
    for _ in range(20):
        load(path)
    for thread in threads:
        thread.join()
    expected = [model.predict_proba(real_rows()).tolist() for model in models]
    assert load(path).predict_proba(real_rows()).tolist() in expected
    assert list(tmp_path.iterdir()) == [path]


# -- reading maps ----------------------------------------------------------------------------------


def owner(array: np.ndarray) -> Any:
    """Return what an array is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return base.obj if isinstance(base, memoryview) else base


@layouts
@weight_types
def test_arrays_are_views_of_the_file(tmp_path, sparse, weights):
    model = reloaded(rich_model(sparse=sparse, weights=weights), tmp_path / "model")
    owners = {id(owner(array)) for array in model.packed.arrays().values()}
    assert len(owners) == 1
    for array in model.packed.arrays().values():
        assert isinstance(owner(array), mmap.mmap)
        assert not array.flags.writeable
        assert array.flags.aligned
        with pytest.raises(ValueError, match="read-only"):
            array.setflags(write=False) or array.__setitem__(slice(None), 0)


def test_loading_reads_no_leaf_weights(tmp_path):
    """Of a leaf of 16 MB, nothing is read into memory: not on opening, not on use."""
    n, k = 4096, 1024
    W = np.ones((n, k), PARAM)
    leaf = Leaf(np.arange(k, dtype=INDEX), np.arange(n, dtype=INDEX), W, np.zeros(k, PARAM))
    tree = Tree.build(np.array([[-1, -1]]), [leaf], n_features=n, n_classes=k)
    frozen(tree).save(tmp_path / "model")
    x = np.ones(n, PARAM)
    assert load(tmp_path / "model").predict_one(x) == 0  # what is imported late is not counted
    tracemalloc.start()
    model = load(tmp_path / "model")
    assert model.predict_one(x) == 0
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    assert model.nbytes > 2**24


def test_a_file_may_be_replaced_or_removed_while_it_is_open(tmp_path):
    path = tmp_path / "model"
    old, new = rich_model(1), rich_model(2)
    opened = reloaded(old, path)
    again = reloaded(new, path)
    path.unlink()
    assert_same_answers(opened, old, real_rows())
    assert_same_answers(again, new, real_rows())


def test_arrays_that_are_not_aligned_are_copied(tmp_path):
    """Other writers may pad in another way."""
    model = rich_model()
    model.save(tmp_path / "model")
    parts = Parts.read(tmp_path / "model")
    header = json.dumps(parts.header()).encode()
    header += b" " * (-len(header) % 8 + 3)
    (tmp_path / "odd").write_bytes(len(header).to_bytes(8, "little") + header + parts.data())
    odd = load(tmp_path / "odd")
    assert all(array.flags.aligned for array in odd.packed.arrays().values())
    assert_same_frozen(model, odd)
    assert_same_answers(model, odd, real_rows())


def test_a_model_keeps_its_file_open_and_no_longer(tmp_path):
    model = reloaded(rich_model(), tmp_path / "model")
    array = model.packed.prior
    mapped = owner(array)
    del model, array
    mapped.close()


# -- estimators ------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("make", [quick, adaptive])
def test_estimators_come_back(tmp_path, kind, make):
    X, y = problem(0, kind=kind, n_classes=8, spread=1.0)
    clf = make().fit(X, np.array([f"class {c}" for c in range(8)])[y])
    clf.save(tmp_path / "model", trainable=True)
    again = load_estimator(tmp_path / "model")
    assert type(again) is type(clf)
    assert again.get_params() == clf.get_params()
    assert_same_model(clf, again)
    assert again.history_ == clf.history_
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert_same_frozen(again.freeze(), clf.freeze())
    assert_same_answers(load(tmp_path / "model"), clf.freeze(), sp.csr_matrix(X, dtype=PARAM))


@pytest.mark.parametrize(
    "params",
    [
        {"zero_probability": "none"},
        {"zero_probability": "epsilon", "epsilon": 0.01},
        {"zero_probability": "epsilon", "epsilon": 1},
        {"zero_probability": "epsilon", "validation_fraction": 0.3},
        {"absent": "drop"},
        {"absent": "zero_one"},
        {"class_weight": "balanced", "random_state": np.int64(3)},
        {"depth": 0},
    ],
    ids=str,
)
def test_estimators_of_any_setting_come_back(tmp_path, params):
    X, y = problem(0, n_classes=8, spread=1.0)
    clf = quick(**params).fit(X, y)
    clf.save(tmp_path / "model", trainable=True)
    again = load_estimator(tmp_path / "model")
    assert_same_model(clf, again)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_training_goes_on_from_a_file(tmp_path):
    X, y = problem(0, n_classes=8, spread=1.0)
    clf = quick(max_sweeps=1, warm_start=True).fit(X, y)
    clf.save(tmp_path / "model", trainable=True)
    again = load_estimator(tmp_path / "model")
    assert_same_model(clf.fit(X, y), again.fit(X, y))


def test_names_of_features_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = problem(0)
    frame = pandas.DataFrame(X, columns=list("abcdé"))
    clf = quick().fit(frame, y)
    clf.save(tmp_path / "model", trainable=True)
    assert load(tmp_path / "model").feature_names == list("abcdé")
    again = load_estimator(tmp_path / "model")
    assert again.feature_names_in_.tolist() == list("abcdé")
    np.testing.assert_array_equal(again.predict(frame), clf.predict(frame))


def test_paths_stay_on_the_machine(tmp_path):
    X, y = problem(0)
    clf = adaptive(checkpoint=str(tmp_path / "checkpoint")).fit(X, y)
    clf.save(tmp_path / "model", trainable=True)
    assert b"checkpoint" not in (tmp_path / "model").read_bytes()
    assert load_estimator(tmp_path / "model").checkpoint is None


def test_what_only_predicts_cannot_be_trained(tmp_path):
    X, y = problem(0)
    clf = quick().fit(X, y)
    clf.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="holds only what prediction needs"):
        load_estimator(tmp_path / "model")
    assert "training" not in load(tmp_path / "model").sections
    clf.random_state = np.random.RandomState(0)
    with pytest.raises(ValueError, match="random_state cannot be written to a model file"):
        clf.save(tmp_path / "other", trainable=True)
    clf.save(tmp_path / "other")


def test_a_checkpoint_is_no_model_and_a_model_no_checkpoint(tmp_path):
    X, y = problem(0)
    adaptive(checkpoint=tmp_path / "checkpoint").fit(X, y)
    with pytest.raises(ModelFileError, match="its format is not 'thinleaf model'"):
        load(tmp_path / "checkpoint")
    quick().fit(X, y).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="is not a 'thinleaf checkpoint 2' file"):
        adaptive(checkpoint=tmp_path / "model").fit(X, y)


# -- old files stay good ---------------------------------------------------------------------------

GOLDEN = json.loads(EXPECTED.read_text("utf-8"))
EXACT = platform.system() == "Linux" and platform.machine() == "x86_64"
"""exp() of other systems may differ in the last bit."""


def test_golden_files_are_all_there():
    assert {path.stem for path in HERE.glob("*.safetensors")} == GOLDEN.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_files(name, tmp_path):
    path = HERE / f"{name}.safetensors"
    model = load(path)
    model.check()
    found, expected = said(model), dict(GOLDEN[name])
    if name == "columns":
        found |= json.loads(json.dumps(said_of_texts(model)))
    if not EXACT:
        for key in ("proba", "topk_proba", "held_proba"):
            ours, theirs = (
                [[float.fromhex(p) for p in row] for row in table.pop(key)]
                for table in (found, expected)
            )
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    assert found == expected
    rows = rows_for(model)
    assert [model.predict_one(x) for x in rows] == expected["predict"]
    again = reloaded(model, tmp_path / "again")  # what is written has not changed either
    assert_same_frozen(model, again)
    written, golden = read_arrays(tmp_path / "again"), read_arrays(path)
    assert written[1] == golden[1]
    for key, array in golden[0].items():
        np.testing.assert_array_equal(written[0][key], array, key, strict=True)
    if name.startswith("estimator"):
        np.testing.assert_array_equal(load_estimator(path).predict(rows), model.predict(rows))


def test_arrays_and_metadata_come_back(tmp_path):
    arrays = {"a": np.arange(5), "b": np.empty((0, 3), PARAM), "c": np.array([True, False])}
    write_arrays(tmp_path / "file", arrays, {"a": 1})
    found, metadata = read_arrays(tmp_path / "file")
    assert metadata == {"a": 1}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


# -- copies, and files of other kinds --------------------------------------------------------------


@layouts
def test_a_copy_is_the_model_too(tmp_path, sparse):
    path = tmp_path / "model"
    model = rich_model(sparse=sparse)
    model.save(path)
    copy = load(path, mapped=False)
    assert_same_frozen(model, copy)
    for array in copy.packed.arrays().values():
        assert not isinstance(owner(array), mmap.mmap)
        assert not array.flags.writeable
        assert array.flags.aligned


def test_a_copy_outlives_its_file(tmp_path):
    path = tmp_path / "model"
    model = rich_model()
    model.save(path)
    copy = load(path, mapped=False)
    with path.open("r+b") as file:  # a mapped model would end the process
        file.truncate(0)
    assert_same_answers(model, copy, real_rows())


@pytest.mark.parametrize(
    "content", [b"cat\tit purrs\ndog\tit barks\n", b"a\n", "größe\tübel\n".encode() * 500]
)
def test_text_is_not_a_model(tmp_path, content):
    path = tmp_path / "data.tsv"
    path.write_bytes(content)
    message = r"data\.tsv is not a model file: it looks like text.*`thinleaf train .*data\.tsv -o"
    for open_file in (load, load_estimator):
        with pytest.raises(ModelFileError, match=message):
            open_file(path)


def test_a_compressed_file_is_not_a_model(tmp_path):
    path = tmp_path / "model.gz"
    rich_model().save(tmp_path / "model")
    path.write_bytes(gzip.compress((tmp_path / "model").read_bytes()))
    with pytest.raises(ModelFileError, match="gzip"):
        load(path)
