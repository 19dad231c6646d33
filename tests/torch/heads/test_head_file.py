from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.data.heads.make import HERE, golden_layer, golden_states
from tests.torch.heads.cases import layer, states
from thinleaf import ModelFileError
from thinleaf.arrays.files import read_arrays, write_arrays
from thinleaf.torch import TreeHead, replace_head


@pytest.fixture(scope="module")
def head():
    return replace_head(layer(bias=True), states(800), size=30, rows="int8", exact=True)


def test_a_head_is_read_as_it_was_written(head, tmp_path):
    head.save(tmp_path / "head")
    again = TreeHead.load(tmp_path / "head", layer(bias=True))
    few = states(20, seed=1)
    for exact in (False, True):
        head.exact = again.exact = exact
        assert torch.equal(again(few), head(few))
    assert again.trained_on == head.trained_on
    assert again.row_kind == "int8"
    assert TreeHead.load(tmp_path / "head", layer(bias=True), rows="float32").row_kind == "float32"


def test_a_head_belongs_to_its_layer(head, tmp_path):
    head.save(tmp_path / "head")
    other = layer(bias=True)
    with torch.no_grad():
        other.weight[0, 0] += 1.0
    with pytest.raises(ValueError, match="belongs to another layer"):
        TreeHead.load(tmp_path / "head", other)
    with pytest.raises(TypeError, match=r"must be nn\.Linear, is Embedding"):
        TreeHead.load(tmp_path / "head", torch.nn.Embedding(3, 4))


def changed(name, change):
    def apply(arrays, metadata):
        arrays[name] = change(arrays[name].copy())

    return apply


def said(name, value):
    def apply(arrays, metadata):
        metadata[name] = value

    return apply


@pytest.mark.parametrize(
    "damage",
    [
        said("format", "thinleaf model"),
        said("version", 99),
        said("n_paths", 7),
        said("rows", "int4"),
        said("exact", 1),
        said("trained_on", {"n_states": 3}),
        said("in_features", 11),
        changed("routers.bias", lambda a: a[:-1]),
        changed("routers.weights", lambda a: a * np.float32(np.nan)),
        changed("routers.weights", lambda a: a.astype(np.float64)),
        changed("sets.ptr", lambda a: a[::-1].copy()),
        changed("sets.classes", lambda a: a + 1000),
        changed("sets.classes", lambda a: -a),
        changed("sets.common", lambda a: a[::-1].copy()),
        changed("sets.frequent", lambda a: np.zeros_like(a)),
        lambda arrays, metadata: arrays.pop("sets.common"),
        lambda arrays, metadata: metadata.pop("layer"),
    ],
)
def test_damage_is_found(head, tmp_path, damage):
    path = tmp_path / "head"
    head.exact = True
    head.save(path)
    arrays, metadata = read_arrays(path, mapped=False)
    damage(arrays, metadata)
    write_arrays(path, arrays, metadata)
    with pytest.raises(ModelFileError, match="not a file of a head"):
        TreeHead.load(path, layer(bias=True))


def test_a_cut_file_is_refused(head, tmp_path):
    path = tmp_path / "head"
    head.save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelFileError):
        TreeHead.load(path, layer(bias=True))


# -- old files stay good ---------------------------------------------------------------------------

GOLDEN = json.loads((HERE / "expected.json").read_text("utf-8"))


def test_golden_files_are_all_there():
    assert {path.stem for path in HERE.glob("*.thinleaf")} == GOLDEN.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_files(name, tmp_path):
    linear, few = golden_layer().requires_grad_(False), golden_states(40, 11)
    expected = GOLDEN[name]
    head = TreeHead.load(HERE / f"{name}.thinleaf", linear)
    assert head.leaves_of(few).tolist() == expected["leaf"]
    kept = head.sparse(few)
    ptr = kept.ptr.tolist()
    lists = [kept.classes[a:b].tolist() for a, b in pairwise(ptr)]
    assert lists == expected["kept"]
    if name == "exact":
        assert head.exact
        assert expected["best"] == [int(linear(state).argmax()) for state in few]
    if name == "int8":  # they answered by 8 bits alone, now as rows of single precision do
        best = [own[int(linear(x)[own].argmax())] for own, x in zip(lists, few, strict=True)]
        assert head.predict(few).tolist() == best
    else:
        assert head.predict(few).tolist() == expected["best"]
    head.save(tmp_path / "again")
    written, golden = read_arrays(tmp_path / "again"), read_arrays(HERE / f"{name}.thinleaf")
    assert written[1] == golden[1]
    for key, array in written[0].items():
        np.testing.assert_array_equal(array, golden[0][key], key, strict=True)
    assert golden[0].keys() - written[0].keys() <= {"exact.rotation"}  # bounds need none any more
