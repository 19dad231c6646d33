"""Several processes have one tree: statistics are added up, and the first process assigns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

from tests.torch.test_label_tree_softmax import clusters  # noqa: E402
from thinleaf.torch import LabelTreeSoftmax  # noqa: E402

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
OPTIONS = ({"top_children": None}, {"top_children": 3}, {"shortlist": 4})


def trained(wrap, rank: int, n_processes: int, options) -> LabelTreeSoftmax:
    """Train with this process's part of each batch."""
    X, y = clusters()
    layer = LabelTreeSoftmax(8, 30, **options)
    model = wrap(layer)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    for step in range(6):
        batch = slice(60 * step, 60 * step + 60)
        own = slice(rank, None, n_processes)
        optimizer.zero_grad()
        model(X[batch][own], y[batch][own]).loss.backward()
        optimizer.step()
        if step % 2:
            layer.update_tree()
    return layer


def run(rank: int, folder: Path) -> None:
    """Be one of two processes."""
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    wrap = torch.nn.parallel.DistributedDataParallel
    layers = [trained(wrap, rank, 2, options) for options in OPTIONS]
    np.savez(folder / f"rank{rank}.npz", *[layer.tree.children for layer in layers])
    dist.destroy_process_group()


def test_two_processes_have_the_tree_that_one_would_have(tmp_path):
    command = [sys.executable, "-m", "tests.torch.test_one_tree"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    both = [
        subprocess.Popen([*command, str(rank), str(tmp_path)], env=environment,
                         stderr=subprocess.PIPE)
        for rank in (0, 1)
    ]  # fmt: skip
    errors = [process.communicate(timeout=120)[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    ranks = [np.load(tmp_path / f"rank{rank}.npz") for rank in (0, 1)]
    for name, options in zip(ranks[0].files, OPTIONS, strict=True):
        np.testing.assert_array_equal(ranks[0][name], ranks[1][name])
        if options.get("top_children", 0) is None:  # of some children, parts of a batch keep others
            alone = trained(lambda layer: layer, 0, 1, options)
            np.testing.assert_array_equal(ranks[0][name], alone.tree.children)


if __name__ == "__main__":
    run(int(sys.argv[1]), Path(sys.argv[2]))
