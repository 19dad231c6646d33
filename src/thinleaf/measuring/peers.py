"""Other libraries, near their default settings unless others are given. All are optional."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import PARAM, AccumArray, AnyArray
from thinleaf.measuring.latency import prepared_rows
from thinleaf.measuring.split import Split
from thinleaf.measuring.systems import System

_WORDS = re.compile(r"\w+|[^\w\s]")

_MAX_PROBABILITIES = 1 << 26
"""Of more pairs of test row and class, a library that gives lists of them is not asked."""


class Peer(System):
    """A library that may not be installed."""

    package: str | None = None

    def obstacle(self, split: Split) -> str | None:
        """Return why it cannot be fitted to a split, None if it can."""
        if self.package is not None and find_spec(self.package) is None:
            return f"{self.package} is not installed: pip install 'thinleaf[bench]'"
        return self.unsuited(split)

    def unsuited(self, split: Split) -> str | None:
        """Return why it does not suit a split, None if it does."""
        return None


class OneByOne(Peer):
    """A library that has no call for a batch: rows are predicted one after the other."""

    def predict(self, split: Split) -> AnyArray:
        """Return the class ids of the test part."""
        return np.array(self.batch(split)())

    def batch(self, split: Split) -> Callable[[], Any]:
        """Return a loop over prepared samples."""
        samples, one = self.samples(split, split.y_test.size), self.one()
        return lambda: [one(*sample) for sample in samples]


class NumpyLinear(Peer):
    """A flat softmax: scikit-learn's logistic regression, called as argmax(Wx + b)."""

    name = "flat softmax, NumPy"

    def unsuited(self, split: Split) -> str | None:
        """Sparse rows would need another call."""
        return "is for dense rows" if split.sparse else None

    def fit(self, split: Split) -> None:
        """Train by L-BFGS."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=300).fit(split.X_train, split.y_train)
        coef, intercept = model.coef_, model.intercept_
        if split.n_classes == 2:
            coef, intercept = np.vstack([0 * coef, coef]), np.concatenate([[0], intercept])
        self.W, self.b = coef.astype(PARAM), intercept.astype(PARAM)

    def predict(self, split: Split) -> AnyArray:
        """Return the class ids of the test part, as a batch."""
        ids: AnyArray = self._scores(split).argmax(axis=1)
        return ids

    def top_classes(self, split: Split, k: int) -> AnyArray:
        """Return the ``k`` best class ids of the test rows."""
        return _best(self._scores(split), k)

    def label_proba(self, split: Split) -> tuple[AccumArray, AccumArray]:
        """Return the softmax of the scores."""
        scores = self._scores(split)[split.known].astype(np.float64)
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        return _of_truth(P / P.sum(axis=1, keepdims=True), split)

    def shape(self, split: Split) -> dict[str, Any]:
        """Return K·D multiplications."""
        return {"flops": float(self.W.size)}

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return rows."""
        return prepared_rows(split.X_test, n)

    def one(self) -> Callable[..., Any]:
        """Return the matrix product and its argmax."""
        W, b = self.W, self.b
        return lambda x: (W.dot(x) + b).argmax()

    def nbytes(self) -> int:
        """Return the size of W and b."""
        return int(self.W.nbytes + self.b.nbytes)

    def _scores(self, split: Split) -> AnyArray:
        scores: AnyArray = split.X_test @ self.W.T + self.b
        return scores


class SklearnTree(Peer):
    """A decision tree, called through its low-level ``tree_.apply``."""

    name = "scikit-learn tree"

    def unsuited(self, split: Split) -> str | None:
        """Sparse rows would need another call."""
        return "is for dense rows" if split.sparse else None

    def fit(self, split: Split) -> None:
        """Grow the tree."""
        from sklearn.tree import DecisionTreeClassifier

        model = DecisionTreeClassifier(random_state=0).fit(split.X_train, split.y_train)
        self.tree = model.tree_
        self.shares = self.tree.value[:, 0, :]
        self.top = self.shares.argmax(axis=1).tolist()

    def predict(self, split: Split) -> AnyArray:
        """Return the class ids of the test part, as a batch."""
        ids: AnyArray = np.array(self.top)[self.tree.apply(split.X_test)]
        return ids

    def top_classes(self, split: Split, k: int) -> AnyArray:
        """Return the ``k`` most frequent classes of the leaves."""
        return _best(self.shares[self.tree.apply(split.X_test)], k)

    def label_proba(self, split: Split) -> tuple[AccumArray, AccumArray]:
        """Return the shares of classes in the leaves."""
        return _of_truth(self.shares[self.tree.apply(split.X_test[split.known])], split)

    def shape(self, split: Split) -> dict[str, Any]:
        """Return depth and leaves."""
        return {"depth": int(self.tree.max_depth), "leaves": int(self.tree.n_leaves)}

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return matrices of one row."""
        return [(split.X_test[i : i + 1].copy(),) for i in range(n)]

    def one(self) -> Callable[..., Any]:
        """Return the way to the leaf and its top class."""
        apply, top = self.tree.apply, self.top
        return lambda x: top[apply(x)[0]]

    def nbytes(self) -> int:
        """Return the size of the arrays."""
        state = self.tree.__getstate__()
        return int(state["nodes"].nbytes + state["values"].nbytes)


class LightGBM(Peer):
    """Boosted trees."""

    name = "LightGBM"
    package = "lightgbm"
    booster: Any

    def fit(self, split: Split) -> None:
        """Boost 200 rounds."""
        import lightgbm

        params = {
            "objective": "multiclass", "num_class": split.n_classes, "num_threads": 1,
            "verbose": -1, "num_leaves": 31, "learning_rate": 0.1, "seed": 0,
        }  # fmt: skip
        data = lightgbm.Dataset(split.X_train, split.y_train)
        self.booster = lightgbm.train(params, data, 200)

    def predict(self, split: Split) -> AnyArray:
        """Return the class ids of the test part, as a batch."""
        ids: AnyArray = self._probabilities(split).argmax(axis=1)
        return ids

    def top_classes(self, split: Split, k: int) -> AnyArray:
        """Return the ``k`` best class ids of the test rows."""
        return _best(self._probabilities(split), k)

    def label_proba(self, split: Split) -> tuple[AccumArray, AccumArray]:
        """Return the model's probabilities."""
        return _of_truth(self._probabilities(split)[split.known], split)

    def shape(self, split: Split) -> dict[str, Any]:
        """Return the number of trees' leaves."""
        trees = self.booster.dump_model()["tree_info"]
        return {"leaves": sum(tree["num_leaves"] for tree in trees)}

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return matrices of one row."""
        if split.sparse:
            return [(split.X_test[i],) for i in range(n)]
        return [(split.X_test[i : i + 1].astype(np.float64),) for i in range(n)]

    def one(self) -> Callable[..., Any]:
        """Return the prediction of one row."""
        booster = self.booster
        return lambda x: booster.predict(x, num_threads=1).argmax()

    def nbytes(self) -> int:
        """Return the size of the model as text."""
        return len(self.booster.model_to_string())

    def _probabilities(self, split: Split) -> AnyArray:
        P: AnyArray = self.booster.predict(split.X_test, num_threads=1)
        return P


class VowpalWabbit(OneByOne):
    """One of its reductions to logarithmic time.

    Parameters
    ----------
    name : str
    option : str
        The reduction; it takes the number of classes.
    """

    package = "vowpalwabbit"

    def __init__(self, name: str, option: str) -> None:
        self.name = f"Vowpal Wabbit {name}"
        self.option = option

    def fit(self, split: Split) -> None:
        """Take 3 passes over sparse and 5 over dense rows."""
        import vowpalwabbit

        options = f"{self.option} {split.n_classes} -b 24 -l 1 --quiet --random_seed 1"
        self.workspace = vowpalwabbit.Workspace(options)
        lines = list(vw_lines(split.X_train, split.y_train))
        rng = np.random.default_rng(0)
        for _ in range(3 if split.sparse else 5):
            for i in rng.permutation(len(lines)):
                self.workspace.learn(lines[i])

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return parsed examples."""
        lines = vw_lines(split.X_test[:n], np.zeros(n))
        return [(self.workspace.parse(line),) for line in lines]

    def one(self) -> Callable[..., Any]:
        """Return the prediction of an example."""
        predict = self.workspace.predict
        return lambda example: predict(example) - 1

    def nbytes(self) -> int:
        """Return the size of the file."""
        return _file_size(self.workspace.save)


def vw_lines(X: Any, y: AnyArray) -> Iterator[str]:
    """Yield rows with class ids 0, 1, … as VW reads them."""
    rows = sp.csr_matrix(X)
    for i, label in enumerate(y):
        at = slice(rows.indptr[i], rows.indptr[i + 1])
        entries = zip(rows.indices[at], rows.data[at], strict=True)
        yield f"{int(label) + 1} | " + " ".join(f"{f}:{x:.7g}" for f, x in entries)


class FastText(OneByOne):
    """Embedding sums with a hierarchical or a flat softmax, on the texts themselves.

    Parameters
    ----------
    loss : {"hs", "softmax"}
    """

    package = "fasttext"

    def __init__(self, loss: str) -> None:
        self.name = f"fastText {loss}"
        self.loss = loss

    def unsuited(self, split: Split) -> str | None:
        """There must be texts."""
        return "reads texts, but the data are rows" if split.texts_train is None else None

    def fit(self, split: Split) -> None:
        """Train 25 epochs."""
        import fasttext

        wide = self.loss == "hs" or split.n_classes < 500
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            # it reads them in this order, and lines that are sorted by class teach it little
            order = np.random.default_rng(0).permutation(split.y_train.size)
            texts = split.texts_train or []
            lines = (f"__label__{split.y_train[i]} {fasttext_line(texts[i])}" for i in order)
            path.write_text("".join(lines), encoding="utf-8")
            self.model = fasttext.train_supervised(
                str(path), loss=self.loss, thread=1, wordNgrams=2, verbose=0, epoch=25, lr=0.5,
                dim=100 if wide else 50, bucket=200_000,
            )  # fmt: skip

    def top_classes(self, split: Split, k: int) -> AnyArray:
        """Return the ``k`` best class ids of the test rows; -1 where there are fewer."""
        top = np.full((split.y_test.size, k), -1)
        for i, (text,) in enumerate(self.samples(split, split.y_test.size)):
            for j, (_, label) in enumerate(self.model.f.predict(text, k, 0.0, "")):
                top[i, j] = int(label[9:])
        return top

    def label_proba(self, split: Split) -> tuple[AccumArray, AccumArray] | None:
        """Return the probabilities of all classes; None if they are too many."""
        if split.y_test.size * split.n_classes > _MAX_PROBABILITIES:
            return None
        p = np.zeros(split.y_test.size)
        for i, (text,) in enumerate(self.samples(split, split.y_test.size)):
            truth = f"__label__{split.y_test[i]}"
            found = self.model.f.predict(text, split.n_classes, 0.0, "")
            p[i] = next((value for value, label in found if label == truth), 0.0)
        p = np.minimum(p[split.known], 1.0)
        return p, p

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return texts as fastText reads them."""
        return [(fasttext_line(text),) for text in (split.texts_test or [])[:n]]

    def one(self) -> Callable[..., Any]:
        """Return the prediction of a text."""
        predict = self.model.f.predict
        return lambda text: int(predict(text, 1, 0.0, "")[0][1][9:])

    def nbytes(self) -> int:
        """Return the size of the file."""
        return _file_size(self.model.save_model)


def fasttext_line(text: str) -> str:
    """Return a text as fastText reads it: small letters, words apart from what stands beside."""
    return " ".join(_WORDS.findall(text.lower())) + "\n"


class NapkinXC(Peer):
    """Probabilistic label trees or hierarchical softmax over LIBLINEAR.

    Parameters
    ----------
    kind : {"PLT", "HSM"}
    **settings
        What is not as its defaults have it, such as ``liblinear_c``.
    """

    package = "napkinxc"

    def __init__(self, kind: str, **settings: Any) -> None:
        self.name = f"napkinXC {kind}"
        self.kind = kind
        self.settings = settings

    def fit(self, split: Split) -> None:
        """Train on one thread."""
        from napkinxc import models

        self.folder = tempfile.TemporaryDirectory()
        kind = getattr(models, self.kind)
        self.model = kind(self.folder.name, threads=1, seed=0, **self.settings)
        self.model.fit(sp.csr_matrix(split.X_train), split.y_train.tolist())

    def predict(self, split: Split) -> AnyArray:
        """Return the class ids of the test part, as a batch."""
        return self.top_classes(split, 1)[:, 0]

    def top_classes(self, split: Split, k: int) -> AnyArray:
        """Return the ``k`` best class ids of the test rows; -1 where there are fewer."""
        found = self.model.predict(sp.csr_matrix(split.X_test), top_k=k)
        return np.array([[*row[:k], *[-1] * (k - len(row))] for row in found])

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return matrices of one row."""
        X = sp.csr_matrix(split.X_test)
        return [(X[i],) for i in range(n)]

    def one(self) -> Callable[..., Any]:
        """Return the prediction of one row."""
        predict = self.model.predict
        return lambda x: predict(x, top_k=1)[0][0]

    def nbytes(self) -> int:
        """Return the size of the files."""
        return sum(path.stat().st_size for path in Path(self.folder.name).rglob("*"))


class Pecos(Peer):
    """XR-Linear. It wants an older NumPy: ``PECOS_PYTHON`` names an interpreter that has it.

    Parameters
    ----------
    timed : bool
        Whether latencies are measured, too.
    **settings
        What is not as its defaults have it: ``max_leaf_size`` of its tree, and what ``train`` of
        its model takes, such as ``Cp``, ``Cn`` and ``threshold``.
    """

    name = "PECOS XR-Linear"

    def __init__(self, *, timed: bool = True, **settings: Any) -> None:
        self.timed = timed
        self.settings = settings

    def obstacle(self, split: Split) -> str | None:
        """Return why it cannot be fitted to a split, None if it can."""
        if "PECOS_PYTHON" not in os.environ:
            return "set PECOS_PYTHON to a Python interpreter that has libpecos"
        return None if split.sparse else "is for sparse rows"

    def fit(self, split: Split) -> None:
        """Train, predict and measure in the other interpreter."""
        folder = tempfile.TemporaryDirectory()
        for part, X in (("train", split.X_train), ("test", split.X_test)):
            sp.save_npz(f"{folder.name}/{part}.npz", sp.csr_matrix(X))
        np.save(f"{folder.name}/y.npy", split.y_train)
        given = {"timed": self.timed, "settings": self.settings}
        Path(folder.name, "given.json").write_text(json.dumps(given), encoding="utf-8")
        script = Path(__file__).with_name("pecos_script.py")
        command = [os.environ["PECOS_PYTHON"], str(script), folder.name]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise RuntimeError(f"{command[0]} failed: {last}")
        with np.load(f"{folder.name}/out.npz") as out:
            self.out = {name: out[name] for name in out.files}
        folder.cleanup()

    def predict(self, split: Split) -> AnyArray:
        """Return what was predicted there."""
        ids: AnyArray = self.out["top"][:, 0]
        return ids

    def top_classes(self, split: Split, k: int) -> AnyArray:
        """Return what was predicted there, five classes at the most."""
        ids: AnyArray = self.out["top"][:, :k]
        return ids

    def measured(self) -> dict[str, float]:
        """Return what was measured there."""
        names = ("train_seconds", "single_us", "batch_us")
        return {name: float(self.out[name]) for name in names}

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Rows are in the other interpreter."""
        raise NotImplementedError

    def one(self) -> Callable[..., Any]:
        """Rows are predicted in the other interpreter."""
        raise NotImplementedError

    def nbytes(self) -> int:
        """Return the size of the files."""
        return int(self.out["nbytes"])


# -- all of them -----------------------------------------------------------------------------------

PEERS: dict[str, Callable[[], list[Peer]]] = {
    "numpy": lambda: [NumpyLinear()],
    "sklearn": lambda: [SklearnTree()],
    "lightgbm": lambda: [LightGBM()],
    "vw": lambda: [
        VowpalWabbit("recall tree", "--recall_tree"),
        VowpalWabbit("LOMTree", "--log_multi"),
    ],
    "fasttext": lambda: [FastText("hs"), FastText("softmax")],
    "napkinxc": lambda: [NapkinXC("HSM"), NapkinXC("PLT")],
    "pecos": lambda: [Pecos()],
}
"""What can be asked for by name, and the systems that it stands for."""


def _best(scores: AnyArray, k: int) -> AnyArray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def _of_truth(P: AnyArray, split: Split) -> tuple[AccumArray, AccumArray]:
    """Return the probability of the true class, of rows whose class is known."""
    p: AccumArray = P[np.arange(P.shape[0]), split.y_test[split.known]].astype(np.float64)
    return p, p


def _file_size(save: Callable[[str], Any]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        save(str(Path(folder) / "model"))
        return (Path(folder) / "model").stat().st_size
