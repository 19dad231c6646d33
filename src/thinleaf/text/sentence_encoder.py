"""Sentence embeddings by a model in a local directory, through ONNX Runtime. Extra ``embed``.

Nothing is ever downloaded. What such directories hold: a tokenizer as the ``tokenizers`` library
writes it, and a transformer in the ONNX format.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from thinleaf._dtypes import PARAM, AnyArray, ParamArray
from thinleaf.arrays.checks import is_whole
from thinleaf.text.inputs import text_list

_USUAL = ("model.onnx", "onnx/model.onnx")
_MAX_TOKENS = 256
_CHUNK = 1 << 20


class SentenceEncoder:
    """An encoder of texts: the mean of a transformer's token states, of length 1.

    Parameters
    ----------
    directory : path-like
        With ``tokenizer.json`` and an ONNX file: ``model.onnx``, ``onnx/model.onnx``, or the only
        one there is.
    file : str, optional
        The ONNX file, from the directory on.
    max_tokens : int, optional
        Longer texts are cut. By default what ``sentence_bert_config.json`` says, or 256.
    batch_size : int
        The most texts at a time; texts of a batch have the same number of tokens, so that none is
        padded.
    n_jobs : int
        Threads of ONNX Runtime.
    name : str, optional
        What model files call it; by default the name of the directory.

    Attributes
    ----------
    fingerprint : str
        A hash of all that embeddings depend on: tokenizer, transformer and the longest text. A
        model that was trained with this encoder takes no other one.

    Examples
    --------
    >>> from thinleaf.text import SentenceEncoder
    >>> encoder = SentenceEncoder("all-MiniLM-L6-v2")  # doctest: +SKIP
    >>> encoder(["my card was stolen"]).shape  # doctest: +SKIP
    (1, 384)
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        file: str | None = None,
        max_tokens: int | None = None,
        batch_size: int = 64,
        n_jobs: int = 1,
        name: str | None = None,
    ) -> None:
        for label, value in (("batch_size", batch_size), ("n_jobs", n_jobs)):
            if not is_whole(value) or value < 1:
                raise ValueError(f"{label} must be an integer of 1 or more, got {value!r}")
        self.directory = Path(directory)
        if not self.directory.is_dir():
            raise ValueError(f"{directory} is no directory: an encoder needs a local one")
        self._tokens_file = self.directory / "tokenizer.json"
        if not self._tokens_file.is_file():
            raise ValueError(f"{directory} has no tokenizer.json")
        self.file = _onnx_file(self.directory, file)
        self.max_tokens = _usual_length(self.directory) if max_tokens is None else max_tokens
        if not is_whole(self.max_tokens) or self.max_tokens < 2:
            raise ValueError(f"max_tokens must be an integer of 2 or more, got {max_tokens!r}")
        self.batch_size, self.n_jobs = int(batch_size), int(n_jobs)
        self.name = name or self.directory.resolve().name
        self._session, self._tokenizer = self._open()

    def __call__(self, texts: Any) -> ParamArray:
        """Return an embedding for each text.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        E : ndarray of shape (n_texts, n_dimensions)
            Rows of length 1, float32.
        """
        encodings = self._tokenizer.encode_batch(text_list(texts))
        tokens = [encoding.ids for encoding in encodings]
        if not tokens:
            return np.empty((0, self._embedded([[0, 0]]).shape[1]), dtype=PARAM)
        order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))
        parts = []
        for _, group in groupby(order, key=lambda i: len(tokens[i])):
            same = list(group)
            parts += [
                self._embedded([tokens[i] for i in same[start : start + self.batch_size]])
                for start in range(0, len(same), self.batch_size)
            ]
        E = np.concatenate(parts)
        out = np.empty_like(E)
        out[order] = E
        return out

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that embeddings depend on."""
        digest = hashlib.sha256(f"mean, l2, {self.max_tokens} tokens".encode())
        beside = sorted(self.file.parent.glob(self.file.name + "?data"))
        for path in (self._tokens_file, self.file, *beside):
            with path.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
        return digest.hexdigest()

    def __repr__(self) -> str:
        """Return the name, without a path."""
        return f"SentenceEncoder({self.name!r}, max_tokens={self.max_tokens})"

    def __reduce__(self) -> Any:
        """Open the directory again where it is unpickled."""
        options = {
            "file": str(self.file.relative_to(self.directory)),
            "max_tokens": self.max_tokens,
            "batch_size": self.batch_size,
            "n_jobs": self.n_jobs,
            "name": self.name,
        }
        return _opened, (str(self.directory), options)

    def _open(self) -> tuple[Any, Any]:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ImportError(
                "SentenceEncoder needs onnxruntime and tokenizers: pip install 'thinleaf[embed]'"
            ) from error
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = self.n_jobs
        settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        try:
            session = onnxruntime.InferenceSession(
                str(self.file), settings, providers=["CPUExecutionProvider"]
            )
            tokenizer = Tokenizer.from_file(str(self._tokens_file))
        except Exception as error:  # each library has its own
            raise ValueError(
                f"{self.directory} holds no model that can be opened: {error}"
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(int(self.max_tokens))
        return session, tokenizer

    def _embedded(self, tokens: list[list[int]]) -> ParamArray:
        """Return embeddings of texts with as many tokens each."""
        ids = np.array(tokens, dtype=np.int64)
        known = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(ids.shape[1]), ids.shape),
        }
        wanted = [given.name for given in self._session.get_inputs()]
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise ValueError(f"the ONNX model asks for {unknown}: it is no encoder of sentences")
        states = _token_states(self._session.run(None, {name: known[name] for name in wanted}))
        mean: AnyArray = states if states.ndim == 2 else states.mean(axis=1, dtype=np.float64)
        length = np.linalg.norm(mean, axis=1, keepdims=True)
        unit: ParamArray = (mean / np.maximum(length, 1e-12)).astype(PARAM)
        return unit


def _token_states(outputs: list[Any]) -> AnyArray:
    """Return the states of all tokens, or if there are none, sentences as the model pools them."""
    for n_axes in (3, 2):
        for output in outputs:
            array = np.asarray(output)
            if array.ndim == n_axes and array.dtype.kind == "f" and array.shape[1] > 0:
                return array
    raise ValueError("the ONNX model gives neither states of tokens nor embeddings")


def _onnx_file(directory: Path, file: str | None) -> Path:
    if file is not None:
        if not (directory / file).is_file():
            raise ValueError(f"{directory} has no file {file}")
        return directory / file
    for usual in _USUAL:
        if (directory / usual).is_file():
            return directory / usual
    found = sorted(directory.rglob("*.onnx"))
    if len(found) != 1:
        names = [str(path.relative_to(directory)) for path in found]
        raise ValueError(
            f"{directory} has no model.onnx"
            + (f", but {names}: say which is meant by file=…" if names else "")
        )
    return found[0]


def _usual_length(directory: Path) -> int:
    try:
        settings = json.loads((directory / "sentence_bert_config.json").read_text("utf-8"))
        return int(settings["max_seq_length"])
    except (OSError, ValueError, KeyError, TypeError):
        return _MAX_TOKENS


def _opened(directory: str, options: dict[str, Any]) -> SentenceEncoder:
    return SentenceEncoder(directory, **options)
