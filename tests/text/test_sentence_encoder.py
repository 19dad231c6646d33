"""Sentence embeddings: what a tiny transformer in a local directory gives, and nothing else."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import thinleaf
from tests.text_cases import made_texts
from thinleaf import SoftmaxTreeClassifier, TextClassifier
from thinleaf.text import SentenceEncoder

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
tokenizers = pytest.importorskip("tokenizers")

TEXTS, LABELS = made_texts(80)
DIM = 6


def write_model(directory, seed: int = 0, file: str = "model.onnx", pooled: bool = False):
    """Write a model whose token states are rows of a table: embeddings are their means."""
    directory.mkdir(exist_ok=True)
    words = sorted({word for text in TEXTS for word in text.split()})
    vocabulary = {"[UNK]": 0} | {word: i + 1 for i, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(directory / "tokenizer.json"))
    table = np.random.default_rng(seed).normal(size=(len(vocabulary), DIM)).astype(np.float32)
    helper, kind = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"])]
    output = helper.make_tensor_value_info("states", kind.FLOAT, ["n", "t", DIM])
    if pooled:
        nodes.append(helper.make_node("ReduceMax", ["states", "axes"], ["pooled"], keepdims=0))
        output = helper.make_tensor_value_info("pooled", kind.FLOAT, ["n", DIM])
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, kind.INT64, ["n", "t"])
            for name in ("input_ids", "attention_mask")
        ],
        [output],
        [
            onnx.numpy_helper.from_array(table, "table"),
            onnx.numpy_helper.from_array(np.array([1], dtype=np.int64), "axes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (directory / file).parent.mkdir(exist_ok=True)
    onnx.save(model, str(directory / file))
    return vocabulary, table


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoders") / "tiny"
    write_model(path)
    return path


def test_an_embedding_is_the_mean_of_token_states(tmp_path):
    vocabulary, table = write_model(tmp_path / "m")
    E = SentenceEncoder(tmp_path / "m", batch_size=3)(TEXTS)
    assert (E.dtype, E.shape) == (np.float32, (80, DIM))
    for row, text in zip(E, TEXTS, strict=True):
        mean = table[[vocabulary.get(word, 0) for word in text.split()]].mean(axis=0)
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-6)


def test_batches_and_order_do_not_matter(directory):
    encoder = SentenceEncoder(directory)
    E = encoder(TEXTS)
    for other in (SentenceEncoder(directory, batch_size=1)(TEXTS), encoder(TEXTS[::-1])[::-1]):
        np.testing.assert_allclose(other, E, atol=1e-6)
    np.testing.assert_array_equal(encoder(np.array(TEXTS)), E)
    assert encoder([]).shape == (0, DIM)


def test_long_texts_are_cut(directory):
    encoder = SentenceEncoder(directory, max_tokens=2)
    np.testing.assert_array_equal(encoder(["card loan"]), encoder(["card loan travel phone"]))
    (directory / "sentence_bert_config.json").write_text('{"max_seq_length": 3}')
    assert SentenceEncoder(directory).max_tokens == 3
    (directory / "sentence_bert_config.json").unlink()
    assert SentenceEncoder(directory).max_tokens == 256


def test_a_model_that_pools_itself(tmp_path):
    vocabulary, table = write_model(tmp_path / "m", pooled=True)
    (row,) = SentenceEncoder(tmp_path / "m")(["card loan"])
    largest = table[[vocabulary["card"], vocabulary["loan"]]].max(axis=0)
    np.testing.assert_allclose(row, largest / np.linalg.norm(largest), atol=1e-6)


def test_a_classifier_with_an_encoder(directory, tmp_path):
    encoder = SentenceEncoder(directory)
    tree = SoftmaxTreeClassifier(depth=1, random_state=0)
    clf = TextClassifier(tree, encoder).fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    assert encoder.fingerprint.encode() in content
    assert b"tiny" in content
    assert str(directory.parent).encode() not in content
    model = thinleaf.load(tmp_path / "model", encoder=SentenceEncoder(directory))
    assert model.predict(TEXTS).tolist() == clf.predict(TEXTS).tolist()
    assert model.predict_one(TEXTS[0]) == model.predict(TEXTS[:1])[0]
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(TEXTS).tolist() == clf.predict(TEXTS).tolist()
    write_model(tmp_path / "other", seed=1)
    with pytest.raises(ValueError, match="is not the one"):
        thinleaf.load(tmp_path / "model", encoder=SentenceEncoder(tmp_path / "other"))
    with pytest.raises(ValueError, match="is not the one"):
        model.with_encoder(SentenceEncoder(directory, max_tokens=3))


def test_directories_that_hold_no_encoder(directory, tmp_path):
    with pytest.raises(ValueError, match="is no directory"):
        SentenceEncoder(tmp_path / "missing")
    with pytest.raises(ValueError, match=r"no tokenizer\.json"):
        SentenceEncoder(tmp_path)
    write_model(tmp_path / "m", file="onnx/model.onnx")
    assert SentenceEncoder(tmp_path / "m").name == "m"
    write_model(tmp_path / "n", file="a.onnx")
    assert SentenceEncoder(tmp_path / "n", name="mine").name == "mine"
    write_model(tmp_path / "n", file="b.onnx")
    with pytest.raises(ValueError, match="say which"):
        SentenceEncoder(tmp_path / "n")
    assert SentenceEncoder(tmp_path / "n", file="b.onnx")(["card"]).shape == (1, DIM)
    (tmp_path / "n" / "a.onnx").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no model that can be opened"):
        SentenceEncoder(tmp_path / "n", file="a.onnx")
    for wrong in ({"batch_size": 0}, {"n_jobs": 0}, {"max_tokens": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SentenceEncoder(directory, **wrong)
