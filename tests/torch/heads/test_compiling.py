"""After ``warm_up(heads=True)``, heads compile nothing."""

from __future__ import annotations

import torch
from torch import nn

from thinleaf.kernels._jit import compiled_signatures
from thinleaf.torch import TreeHead, replace_head
from thinleaf.warmup import steps


def _steps():
    return [call for name, call in steps(False, True) if name.startswith("heads")]


def test_heads_compile_nothing_afterwards(tmp_path):
    for call in _steps():
        call()
    known = sum(compiled_signatures())
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        layer = nn.Linear(9, 40, dtype=dtype)
        head = replace_head(layer, torch.randn(60, 9), size=5, depth=2, n_sweeps=0)
        after = sum(compiled_signatures())
        head.save(tmp_path / "head")
        for rows in (None, "float16", "int8"):
            for n_paths in (1, 2):
                again = TreeHead.load(tmp_path / "head", layer, rows=rows)
                again.n_paths = n_paths
                for exact in (False, True):
                    again.exact = exact
                    with torch.no_grad():
                        for states in (torch.randn(1, 9), torch.randn(3, 9, dtype=dtype)):
                            again(states), again.predict(states), again.sparse(states)
        assert sum(compiled_signatures()) == after
    assert known > 0


def test_they_are_asked_for():
    assert len(_steps()) == 4
    assert len(steps(False)) + 4 == len(steps(False, True))
