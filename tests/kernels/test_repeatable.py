"""The same bits in every process, whether kernels were just compiled or came from the cache."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import hashlib
import numpy as np
import scipy.sparse as sp
from thinleaf import SoftmaxTreeClassifier

rng = np.random.default_rng(0)
y = np.arange(240) % 60
X = np.eye(60, 80)[y] + (rng.random((240, 80)) < 0.1) * rng.random((240, 80))
for rows, depth in ((sp.csr_matrix(X), 0), (sp.csr_matrix(X), 2), (X[:, :20], 2)):
    clf = SoftmaxTreeClassifier(depth=depth, leaf_classes=60, max_sweeps=2, random_state=0)
    tree = clf.fit(rows, y).tree_
    digest = hashlib.sha256()
    for name, value in sorted(vars(tree).items()):
        if isinstance(value, np.ndarray):
            digest.update(name.encode() + value.tobytes())
    print(tree.n_leaves, tree.leaf_sizes.max(), digest.hexdigest())
"""


def run(cache_dir) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache_dir)},
    )
    return done.stdout


@pytest.mark.compiles
def test_compiled_and_cached_kernels_train_the_same_tree(tmp_path):
    compiled = run(tmp_path)
    assert any(tmp_path.rglob("*.nbi")), "the first run left no cache"
    lines = [line.split() for line in compiled.splitlines()]
    assert int(lines[0][1]) >= 48  # enough classes for vector instructions and their remainder
    assert all(int(line[0]) > 1 for line in lines[1:])
    assert run(tmp_path) == compiled
