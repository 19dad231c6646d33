"""Files of label trees on the command line: how ``train`` writes them and other verbs use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinleaf.cli._output import size

if TYPE_CHECKING:
    from thinleaf._dtypes import AccumArray, AnyArray
    from thinleaf.datasets import ExampleReader
    from thinleaf.datasets.examples import Examples
    from thinleaf.estimators._base.label_tree_files import LabelTreeFile
    from thinleaf.text.recipe import Recipe

_MAX_DEPTH = 2


class LabelTreeModel:
    """A label tree with the methods of a frozen tree that the verbs use.

    Parameters
    ----------
    file : LabelTreeFile
    """

    beam = 1
    temperature = 1.0

    def __init__(self, file: LabelTreeFile) -> None:
        self._estimator = file.estimator
        self.summary: dict[str, Any] = {"estimator": type(file.estimator).__name__, **file.summary}
        self.sections = file.sections

    @property
    def labels(self) -> AnyArray:
        """The class labels, of shape (n_classes,)."""
        return self._classifier.classes_  # type: ignore[no-any-return]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.labels.size

    def predict(self, X: Any, *, n_jobs: int = 1) -> AnyArray:
        """Return a label for each row."""
        return self._with(n_jobs).predict(X)  # type: ignore[no-any-return]

    def predict_topk(self, X: Any, k: int = 5, *, n_jobs: int = 1) -> tuple[AnyArray, AccumArray]:
        """Return the ``k`` most probable labels of each row and their probabilities."""
        return self._with(n_jobs).predict_topk(X, k)  # type: ignore[no-any-return]

    def label_proba(
        self, X: Any, y: AnyArray, *, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one given label for each row; every path holds it."""
        return self._with(n_jobs).label_proba(X, y)  # type: ignore[no-any-return]

    def describe(
        self,
        batches: Iterable[tuple[Examples, Any]] | None,
        *,
        n_children: int,
        n_labels: int,
    ) -> tuple[dict[str, Any], str]:
        """Return J_n, β and α of every node as a record, and the upper part of the tree as text.

        Parameters
        ----------
        batches : iterable, optional
            Labelled examples and their rows, to have the figures of; else those of the training.
        n_children, n_labels : int
            How many children of a node to show, and how many labels to name.
        """
        from thinleaf.labeltree.show import describe

        estimator = self._estimator
        quality = estimator.inspect() if batches is None else self._quality(batches)
        if hasattr(estimator, "vocabulary_"):
            tree, names, counts = estimator.tree_, estimator.vocabulary_, estimator.word_count_
        else:
            tree, names = estimator.model_.tree, estimator.classes_.tolist()
            counts = estimator.class_count_
        record, text = describe(
            tree, names, counts, quality,
            n_top=n_labels, max_depth=_MAX_DEPTH, max_children=n_children,
        )  # fmt: skip
        return record | {"summary": self.summary, "sections": sorted(self.sections)}, text

    def _quality(self, batches: Iterable[tuple[Examples, Any]]) -> Any:
        import numpy as np

        from thinleaf.text.recipe import KnownLabels

        known = KnownLabels(self.labels)

        def parts() -> Iterator[Any]:
            for examples, X in batches:
                ids = known.ids(examples.labels)
                at = np.flatnonzero(ids >= 0)
                if at.size:
                    yield self._classifier.node_statistics(X[at], self.labels[ids[at]])

        quality = self._classifier.quality_of(parts())
        if not np.any(quality.n_examples):
            raise ValueError("no line has a label that the model knows")
        return quality

    @property
    def _classifier(self) -> Any:
        if not hasattr(self._estimator, "classes_"):
            raise ValueError(
                "the file holds a language model: open it with thinleaf.load_estimator"
            )
        return self._estimator

    def _with(self, n_jobs: int) -> Any:
        return self._classifier.set_params(n_jobs=n_jobs)


def open_label_tree(
    path: str, beam: int | None, temperature: float | None, *, mapped: bool = True
) -> tuple[LabelTreeModel, Recipe]:
    """Return the label tree of a file, and how it reads data."""
    from thinleaf.estimators._base.label_tree_files import read_label_tree
    from thinleaf.text.recipe import Recipe

    if beam not in (None, 1) or temperature not in (None, 1.0):
        name = "--beam" if beam not in (None, 1) else "--temperature"
        raise ValueError(f"{name} is for softmax trees: a label tree is searched exactly")
    file = read_label_tree(path, mapped=mapped)
    raw = getattr(file.estimator, "features_", None) is not None
    n_features = getattr(file.estimator, "n_features_in_", 0)
    return LabelTreeModel(file), Recipe.of(file.sections, n_features, raw=raw)


def check_options(beam: int, temperature: float, weights: str, trainable: bool) -> None:
    """Refuse options of ``train`` that are for softmax trees."""
    given = {
        "--beam": beam != 1,
        "--temperature": temperature != 1.0,
        "--weights": weights != "float32",
        "--trainable": trainable,
    }
    for name, wanted in given.items():
        if wanted:
            raise ValueError(f"{name} is for softmax trees, not for --model label-tree")


def prepare_texts(
    reader: ExampleReader, examples: Examples, estimator: Any, settings: Mapping[str, Any]
) -> tuple[Recipe, Any]:
    """Return how lines are read, and the texts as they are; ``--ngrams`` goes to the estimator."""
    from thinleaf.text.recipe import Recipe

    low, high = settings["ngram_range"]
    if low != 1:
        raise ValueError("terms of a label tree begin with single words: --ngrams 1-HIGH")
    if estimator.ngrams == type(estimator)().ngrams:  # not given by --set
        estimator.set_params(ngrams=high)
    recipe = Recipe(0, reader.layout, raw=True)
    return recipe, recipe.rows(examples)


def write_label_tree(
    estimator: Any, recipe: Recipe, record: dict[str, Any], output: str
) -> tuple[dict[str, Any], str]:
    """Write a trained label tree; return what to say of it, as a record and as text."""
    from thinleaf.estimators._base.label_tree_files import save_classifier

    estimator.set_params(verbose=0)
    record |= {name: estimator.history_[-1][name] for name in ("loss", "depth", "mean_depth")}
    save_classifier(estimator, output, record, recipe.sections())
    n_bytes, tree = Path(output).stat().st_size, estimator.model_.tree
    n_features, dim = estimator.model_.U.shape
    shape = {"features": n_features, "classes": tree.n_labels, "nodes": tree.n_nodes, "dim": dim}
    text = (
        f"{type(estimator).__name__}: {record['rows']:,} rows, {n_features:,} features, "
        f"{tree.n_labels:,} classes, {record['fit_seconds']:.1f} s\n"
        f"{tree.n_nodes:,} nodes of arity {tree.arity}, depth {tree.depth}, "
        f"training loss {record['loss']:.4g}\n"
        f"wrote {output}, {size(n_bytes)}"
    )
    return record | shape | {"output": output, "file_bytes": n_bytes}, text
