"""Other libraries behind one interface, so that one run measures them beside ours.

A system that is not installed is left out. Each is called in the fastest way that its Python
interface has: what a single prediction needs is prepared beforehand. All run on one thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import _vw
from benchmarks._data import Dataset
from thinleaf.predictor import FrozenTree


class System:
    """A classifier: what it needs, and how to fit, call and weigh it. Labels are class ids."""

    name: str
    package: str | None = None

    @classmethod
    def installed(cls) -> bool:
        """Whether its package is there."""
        return cls.package is None or find_spec(cls.package) is not None

    def suits(self, data: Dataset) -> bool:
        """Whether it can be fitted to a set in reasonable time."""
        return True

    def fit(self, data: Dataset, y: np.ndarray) -> None:
        """Train on one thread."""
        raise NotImplementedError

    def predict(self, data: Dataset) -> np.ndarray:
        """Return the class ids of the test part, as a batch."""
        one = self.one()
        return np.array([one(sample) for sample in self.samples(data, len(data.y_test))])

    def samples(self, data: Dataset, n: int) -> list[Any]:
        """Return the first test rows, prepared for :meth:`one`."""
        raise NotImplementedError

    def one(self) -> Callable[[Any], Any]:
        """Return the fastest call for a prepared sample."""
        raise NotImplementedError

    def nbytes(self) -> int:
        """Return the size of the model on disk, or of its arrays."""
        raise NotImplementedError


class Ours(System):
    """A frozen model; of one that is fitted already, only another beam."""

    def __init__(self, name: str, model: Any, beam: int = 1) -> None:
        self.name = name
        self.model = model
        self.beam = beam
        self.frozen: FrozenTree

    def fit(self, data, y):
        if not hasattr(self.model, "classes_"):
            self.model.fit(data.X_train, y)
        self.frozen = self.model.freeze(beam=self.beam)

    def predict(self, data):
        return self.frozen.predict(data.X_test)

    def samples(self, data, n):
        X = data.X_test
        if not sp.issparse(X):
            return [X[i].copy() for i in range(n)]
        return [(X[i].indices.astype(np.int32), X[i].data) for i in range(n)]

    def one(self):
        call = self.frozen.predict_one
        return (lambda pair: call(*pair)) if self.frozen.packed.sparse else call

    def nbytes(self):
        return self.frozen.nbytes


class NumpyLinear(System):
    """A flat softmax: scikit-learn's logistic regression, called as argmax(Wx + b)."""

    name = "flat softmax, NumPy"

    def suits(self, data):
        return data.name == "letter"

    def fit(self, data, y):
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=300).fit(data.X_train, y)
        self.W, self.b = model.coef_.astype(np.float32), model.intercept_.astype(np.float32)

    def predict(self, data):
        return (data.X_test @ self.W.T + self.b).argmax(axis=1)

    def samples(self, data, n):
        return [data.X_test[i].copy() for i in range(n)]

    def one(self):
        W, b = self.W, self.b
        return lambda x: (W.dot(x) + b).argmax()

    def nbytes(self):
        return self.W.nbytes + self.b.nbytes


class SklearnTree(System):
    """A decision tree, called through its low-level ``tree_.apply``."""

    name = "scikit-learn tree, tree_.apply"

    def suits(self, data):
        return not sp.issparse(data.X_train)

    def fit(self, data, y):
        from sklearn.tree import DecisionTreeClassifier

        self.tree = DecisionTreeClassifier(random_state=0).fit(data.X_train, y).tree_
        self.top = self.tree.value[:, 0, :].argmax(axis=1).tolist()

    def predict(self, data):
        return np.array(self.top)[self.tree.apply(data.X_test)]

    def samples(self, data, n):
        return [data.X_test[i : i + 1].copy() for i in range(n)]

    def one(self):
        apply, top = self.tree.apply, self.top
        return lambda x: top[apply(x)[0]]

    def nbytes(self):
        state = self.tree.__getstate__()
        return state["nodes"].nbytes + state["values"].nbytes


class LightGBM(System):
    """Boosted trees."""

    name = "LightGBM"
    package = "lightgbm"

    def suits(self, data):
        return data.name == "letter"

    def fit(self, data, y):
        import lightgbm

        params = {
            "objective": "multiclass", "num_class": int(y.max()) + 1, "num_threads": 1,
            "verbose": -1, "num_leaves": 31, "learning_rate": 0.1, "seed": 0,
        }  # fmt: skip
        self.booster = lightgbm.train(params, lightgbm.Dataset(data.X_train, y), 200)

    def predict(self, data):
        return self.booster.predict(data.X_test, num_threads=1).argmax(axis=1)

    def samples(self, data, n):
        return [data.X_test[i : i + 1].astype(np.float64) for i in range(n)]

    def one(self):
        booster = self.booster
        return lambda x: booster.predict(x, num_threads=1).argmax()

    def nbytes(self):
        return len(self.booster.model_to_string())


class VowpalWabbit(System):
    """One of its reductions to logarithmic time."""

    package = "vowpalwabbit"

    def __init__(self, name: str, options: str, n_passes: int) -> None:
        self.name = f"Vowpal Wabbit {name}"
        self.options, self.n_passes = options, n_passes

    def fit(self, data, y):
        import vowpalwabbit

        options = self.options.format(K=int(y.max()) + 1)
        self.workspace = vowpalwabbit.Workspace(f"{options} --quiet --random_seed 1")
        lines = list(_vw.lines(data.X_train, y))
        rng = np.random.default_rng(0)
        for _ in range(self.n_passes):
            for i in rng.permutation(len(lines)):
                self.workspace.learn(lines[i])

    def samples(self, data, n):
        lines = _vw.lines(data.X_test[:n], np.zeros(n))
        return [self.workspace.parse(line) for line in lines]

    def one(self):
        predict = self.workspace.predict
        return lambda example: predict(example) - 1

    def nbytes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.workspace.save(str(Path(folder) / "model"))
            return (Path(folder) / "model").stat().st_size


class FastText(System):
    """Embedding sums with a hierarchical or a flat softmax, on the texts themselves."""

    package = "fasttext"

    def __init__(self, loss: str, **options: Any) -> None:
        self.name = f"fastText {loss}"
        self.options = {"loss": loss, "thread": 1, "wordNgrams": 2, "verbose": 0} | options

    def suits(self, data):
        return data.texts_train is not None

    def fit(self, data, y):
        import fasttext

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            lines = (f"__label__{c} {_flat(t)}\n" for c, t in zip(y, data.texts_train, strict=True))
            path.write_text("".join(lines), encoding="utf-8")
            self.model = fasttext.train_supervised(str(path), **self.options)

    def samples(self, data, n):
        return [_flat(text) + "\n" for text in data.texts_test[:n]]

    def one(self):
        predict = self.model.f.predict
        return lambda text: int(predict(text, 1, 0.0, "")[0][1][9:])

    def nbytes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_model(str(Path(folder) / "model"))
            return (Path(folder) / "model").stat().st_size


def _flat(text: str) -> str:
    return " ".join(text.lower().split())


class NapkinXC(System):
    """Probabilistic label trees or hierarchical softmax over LIBLINEAR."""

    package = "napkinxc"

    def __init__(self, kind: str, **options: Any) -> None:
        self.name = f"napkinXC {kind}"
        self.kind, self.options = kind, options

    def fit(self, data, y):
        from napkinxc import models

        self.folder = tempfile.TemporaryDirectory()
        kind = getattr(models, self.kind)
        self.model = kind(self.folder.name, threads=1, seed=0, **self.options)
        self.model.fit(sp.csr_matrix(data.X_train), y.tolist())

    def predict(self, data):
        labels = self.model.predict(sp.csr_matrix(data.X_test), top_k=1)
        return np.array([row[0] if row else -1 for row in labels])

    def samples(self, data, n):
        X = sp.csr_matrix(data.X_test)
        return [X[i] for i in range(n)]

    def one(self):
        predict = self.model.predict
        return lambda x: predict(x, top_k=1)[0][0]

    def nbytes(self):
        return sum(path.stat().st_size for path in Path(self.folder.name).rglob("*"))


class Pecos(System):
    """XR-Linear. It wants an older NumPy: ``PECOS_PYTHON`` names an interpreter that has it."""

    name = "PECOS XR-Linear"

    @classmethod
    def installed(cls) -> bool:
        return "PECOS_PYTHON" in os.environ

    def suits(self, data):
        return sp.issparse(data.X_train)

    def fit(self, data, y):
        self.folder = tempfile.TemporaryDirectory()
        for part, X in (("train", data.X_train), ("test", data.X_test)):
            sp.save_npz(f"{self.folder.name}/{part}.npz", sp.csr_matrix(X))
        np.save(f"{self.folder.name}/y.npy", y)
        script = Path(__file__).with_name("_pecos.py")
        command = [os.environ["PECOS_PYTHON"], str(script), self.folder.name]
        subprocess.run(command, check=True, stdout=sys.stderr)
        with np.load(f"{self.folder.name}/out.npz") as out:
            self.out = {name: out[name] for name in out.files}

    def predict(self, data):
        return self.out["predicted"]

    def nbytes(self):
        return int(self.out["nbytes"])


def peers(data: Dataset) -> list[System]:
    """Return the installed systems that suit a set, near their default settings, not tuned."""
    text = sp.issparse(data.X_train)
    K = data.n_classes
    systems: list[System] = [
        NumpyLinear(),
        SklearnTree(),
        LightGBM(),
        VowpalWabbit("recall tree", f"--recall_tree {K} -b 24 -l 1", 3 if text else 5),
        VowpalWabbit("LOMTree", f"--log_multi {K} -b 24 -l 1", 3 if text else 5),
        FastText("hs", epoch=25, lr=0.5, dim=100, bucket=200_000),
        FastText("softmax", epoch=25, lr=0.5, dim=100 if K < 500 else 50, bucket=200_000),
        NapkinXC("HSM"),
        NapkinXC("PLT"),
        Pecos(),
    ]
    return [system for system in systems if system.installed() and system.suits(data)]
