"""Files of heads that must stay readable, and what the code that wrote them answered.

    python -m tests.data.heads.make

Those here are of the code before the exact mode read rows in 8 bits: it wrote a rotation of states
into files of heads with an exact mode. They are not to be made again.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

HERE = Path(__file__).parent
N_CLASSES, DIM = 200, 8
KINDS: dict[str, dict[str, Any]] = {
    "exact": {"exact": True},
    "two-paths": {"n_paths": 2},
    "bfloat16": {"rows": "bfloat16"},
    "int8": {"rows": "int8"},
    "leaf": {"depth": 0},
}


def numbers(n: int, width: int, step: int) -> np.ndarray:
    """Return numbers from -1 to 1 that are the same on every machine, to the last bit."""
    at = np.arange(n * width, dtype=np.int64).reshape(n, width) + step
    return ((at * at * step) % 1009 - 504).astype(np.float32) / np.float32(512)


def golden_layer() -> nn.Linear:
    """Return the layer that the heads belong to."""
    layer = nn.Linear(DIM, N_CLASSES)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(numbers(N_CLASSES, DIM, 7)))
        layer.bias.copy_(torch.from_numpy(numbers(1, N_CLASSES, 3)[0]))
    return layer


def golden_states(n: int, step: int) -> Tensor:
    """Return states around 16 centres."""
    centres = 2 * numbers(16, DIM, 5)
    return torch.from_numpy(centres[np.arange(n) * step % 16] + numbers(n, DIM, step))


def main() -> None:
    """Write the files and what heads say of some states."""
    from thinleaf.torch import replace_head

    few = golden_states(40, 11)
    said = {}
    for name, settings in KINDS.items():
        chosen = {"size": 30, "depth": 3, "n_sweeps": 1} | settings
        head = replace_head(golden_layer(), golden_states(800, 3), **chosen)
        head.save(HERE / f"{name}.thinleaf")
        kept = head.sparse(few)
        ptr = kept.ptr.tolist()
        said[name] = {
            "leaf": head.leaves_of(few).tolist(),
            "best": head.predict(few).tolist(),
            "kept": [kept.classes[a:b].tolist() for a, b in pairwise(ptr)],
        }
    (HERE / "expected.json").write_text(json.dumps(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
