"""Hashes of what seeded fits predict: two checkouts that learn the same give the same file.

``python -m benchmarks.fingerprints OUT.json`` writes them; run it with ``PYTHONPATH`` set to the
src folder of another checkout, and compare the files. Hashes depend on the kind of processor.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

import thinleaf as tl


def fingerprint(*arrays: Any) -> str:
    """Return a hash of dtypes, shapes and contents."""
    digest = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        digest.update(f"{array.dtype}{array.shape}".encode() + content)
    return digest.hexdigest()[:16]


def classifiers() -> dict[str, Any]:
    """Return what is fitted to dense and to sparse rows."""
    few = {"max_rounds": 2, "random_state": 0}
    label = {"dim": 10, "epochs": 5, "random_state": 0}
    monotone = {"monotone": True, "overlap": None, "random_state": 0}
    judged = {"validation_fraction": 0.2, "overlap": None}
    return {
        "ast": tl.AdaptiveSoftmaxTreeClassifier(decisions="training", max_sweeps=4, **few),
        "ast, validated": tl.AdaptiveSoftmaxTreeClassifier(
            decisions="training", max_sweeps=3, **few | judged
        ),
        "st": tl.SoftmaxTreeClassifier(depth=3, max_sweeps=4, random_state=0),
        "st, monotone": tl.SoftmaxTreeClassifier(depth=2, max_sweeps=4, **monotone),
        "forest": tl.SoftmaxForestClassifier(n_estimators=3, random_state=0),
        "recall": tl.RecallTreeClassifier(random_state=0),
        "lom": tl.LOMTreeClassifier(random_state=0),
        "online one-vs-all": tl.OnlineOneVsAllClassifier(random_state=0),
        "label tree": tl.LabelTreeClassifier(arity=3, **label),
        "huffman": tl.LabelTreeClassifier(arity=2, tree="huffman", search="greedy", **label),
        "flat": tl.FlatSoftmaxClassifier(random_state=0),
        "one-vs-all": tl.OneVsAllClassifier(),
        "mach": tl.MACHClassifier(random_state=0),
        "double sampling": tl.DoubleSamplingClassifier(random_state=0),
    }


def of_rows(clf: Any, X: Any, y: Any) -> dict[str, str]:
    """Return the hashes of a fitted classifier, of its frozen form, and with a beam."""
    few = X[:200]
    found = {
        "": fingerprint(
            clf.predict(X), clf.predict_proba(few), *clf.predict_topk(few, 3),
            clf.label_proba(few, y[:200]),
        )
    }  # fmt: skip
    if hasattr(clf, "freeze"):
        model = clf.freeze()
        found[", frozen"] = fingerprint(model.predict(X), model.predict_proba(few))
        if hasattr(model, "with_beam"):
            wide = model.with_beam(4, temperature=2.0)
            found[", beam"] = fingerprint(wide.predict(X), wide.predict_proba(few))
    return found


def main() -> None:
    """Fit everything and write the hashes."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    ids = np.arange(900) % 30
    y = np.array([f"c{i:02d}" for i in range(30)])[ids]
    dense = (rng.normal(size=(30, 12))[ids] + 0.6 * rng.normal(size=(900, 12))).astype("float32")
    noise = np.where(rng.random((900, 60)) < 0.15, rng.random((900, 60)), 0.0)
    sparse = sp.csr_matrix(noise + 0.7 * np.eye(60)[2 * ids], dtype="float32")
    out: dict[str, str] = {}
    for kind, X in (("dense", dense), ("sparse", sparse)):
        for name, clf in classifiers().items():
            for form, value in of_rows(clf.fit(X, y), X, y).items():
                out[f"{name}, {kind}{form}"] = value
    texts = [f"a{i % 30} b{i % 7} common word{i % 11}" for i in range(900)]
    clf = tl.LabelTreeClassifier(dim=10, arity=4, epochs=4, random_state=0).fit(texts, y)
    out["label tree, texts"] = fingerprint(clf.predict(texts), clf.predict_proba(texts[:50]))
    lines = [f"the w{i % 20} is x{i % 13}" for i in range(200)]
    for tree in ("learned", "flat"):
        model = tl.LabelTreeLanguageModel(
            dim=8, n_context=2, epochs=3, arity=4, tree=tree, random_state=0
        ).fit(lines)
        out[f"language model, {tree}"] = fingerprint(
            *model.predict_topk(["the w3"], 5), model.log_likelihood(["the w3 is x3"])
        )
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(out, file, indent=1)


if __name__ == "__main__":
    main()
