"""The language model of paper 004: hierarchical log-bilinear, with a tree that is learned."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from thinleaf._dtypes import (
    INDEX,
    OFFSET,
    PARAM,
    AccumArray,
    AnyArray,
    IndexArray,
    OffsetArray,
    ParamArray,
)
from thinleaf.arrays.checks import check_top_k
from thinleaf.estimators._base.classifier import all_or_nothing
from thinleaf.estimators._base.documented import Documented
from thinleaf.estimators._base.label_tree_files import save_language_model
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.labeltree import fixed_trees as kinds
from thinleaf.labeltree.assign import Criterion, check_depth
from thinleaf.labeltree.bilinear import Contexts, LogBilinear
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.output_layers import FlatOutput, Output, TreeOutput
from thinleaf.labeltree.show import tree_text
from thinleaf.labeltree.statistics import NodeQuality, node_quality

OutputKind = Literal["learned", "balanced", "huffman", "clustering", "flat"]
UNKNOWN = "<unk>"
END = "</s>"
_TEST_BATCH = 256
_PROTOTYPE_DIM = 50


class LabelTreeLanguageModel(Documented):
    """Which word follows the T words before it: a log-bilinear model over a label tree.

    A context is Σ_k R_k U_w(t-k), with a matrix for each place and an embedding for each word. The
    next word is found on a path of softmaxes through a tree over the vocabulary, which is learned
    during the first half of training by equation 12 under a depth limit, or by a flat softmax.

    Parameters
    ----------
    n_context : int
        T, the number of words in a context.
    dim : int
        Length of the embeddings.
    tree : {"learned", "balanced", "huffman", "clustering", "flat"}
        "flat" is the softmax over all words, for comparison.
    arity : int or None
        M, the number of children of a node. None is the least with which paths of ``max_depth``
        nodes hold all words: children of a learned tree are then nearly full, and so balanced.
    max_depth : int or None
        The longest path of a learned tree (algorithm 3). None is the least depth for ``arity``, or
        if that is None too, 2.
    epochs : int
    batch_size : int
    learning_rate : float
        Of Adagrad.
    n_assignments : int
        How often the tree is re-assigned in an epoch, in the first half of them.
    criterion : {"log_likelihood", "probability"}
        Which derivative of J_n ranks assignments: equation 12 or 10.
    inertia : float
        By what factor another child must be better for a word to leave its own; 1 is the paper's.
        Rare words would else move whenever the tree is re-assigned.
    min_count : int
        Words that occur less often become ``"<unk>"``.
    end : str or None
        What is predicted after the last word of a sequence; None predicts no end.
    random_state : int, RandomState instance or None
    n_jobs : int or None
        Threads of matrix products, which a flat softmax profits from; None is one.
    verbose : int

    Attributes
    ----------
    vocabulary_ : list of str
        The words, most frequent first.
    word_count_ : ndarray of shape (n_words,)
    history_ : list of dict
        Training perplexity and depth of the tree after each epoch.
    quality_ : NodeQuality or None
        J_n, β and α of each node on the training text, as they were in the last epoch.

    Examples
    --------
    >>> from thinleaf import LabelTreeLanguageModel
    >>> lines = ["the cat sat", "the dog sat", "the cat ran"] * 20
    >>> model = LabelTreeLanguageModel(n_context=2, dim=8, arity=3, random_state=0).fit(lines)
    >>> model.predict_topk([["the"]], k=2)[0].tolist()
    [['cat', 'dog']]
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_context": [Interval(Integral, 1, None, closed="left")],
        "dim": [Interval(Integral, 1, None, closed="left")],
        "tree": [StrOptions({"learned", "balanced", "huffman", "clustering", "flat"})],
        "arity": [Interval(Integral, 2, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_assignments": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"probability", "log_likelihood"})],
        "inertia": [Interval(Real, 1, None, closed="left")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "end": [str, None],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_context: int = 4,
        dim: int = 200,
        tree: OutputKind = "learned",
        arity: int | None = None,
        max_depth: int | None = None,
        epochs: int = 5,
        batch_size: int = 64,
        learning_rate: float = 0.05,
        n_assignments: int = 50,
        criterion: Criterion = "log_likelihood",
        inertia: float = 2.0,
        min_count: int = 1,
        end: str | None = END,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_context = n_context
        self.dim = dim
        self.tree = tree
        self.arity = arity
        self.max_depth = max_depth
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_assignments = n_assignments
        self.criterion = criterion
        self.inertia = inertia
        self.min_count = min_count
        self.end = end
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, sequences: Iterable[str | Sequence[str]], y: Any = None
    ) -> LabelTreeLanguageModel:
        """Train the model.

        Parameters
        ----------
        sequences : iterable of str or of sequences of str
            Sentences or paragraphs. A string is split at white space.
        y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        lines = self._lines(sequences)
        vocabulary, counts = _counted(lines, self.min_count)
        n_words = len(vocabulary)
        contexts = _contexts(lines, _numbered(vocabulary), self.n_context)
        if not len(contexts):
            raise ValueError("no words to learn from")
        rng = np.random.default_rng(seed_sequence(self.random_state))
        core = LogBilinear.start(n_words, self.n_context, self.dim, rng)
        output: Output = FlatOutput(core, n_words)
        if self.tree != "flat":
            tree, max_depth = self._first_tree(contexts, counts, rng)
            output = TreeOutput.start(tree, self.dim, max_depth, self.criterion, self.inertia)
        with threadpool_limits(limits=self.n_jobs or 1):
            history = [
                self._epoch(core, output, contexts, counts, epoch, rng)
                for epoch in range(self.epochs)
            ]
        _check_finite(core, output)
        quality: NodeQuality | None = None
        if isinstance(output, TreeOutput):
            quality = node_quality(output.tree, output.memory.statistics)
            output.forget()
        self._set_vocabulary(vocabulary, counts)
        self.core_, self.output_ = core, output
        self.history_, self.quality_ = history, quality
        return self

    def _epoch(
        self,
        core: LogBilinear,
        output: Output,
        contexts: Contexts,
        counts: OffsetArray,
        epoch: int,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Train for an epoch; return what is known after it."""
        order = rng.permutation(len(contexts))
        starts = range(0, order.size, self.batch_size)
        learning = self.tree == "learned" and epoch < (self.epochs + 1) // 2
        cuts = np.linspace(0, len(starts), self.n_assignments + 1).astype(int)
        last = epoch == self.epochs - 1
        if isinstance(output, TreeOutput) and last and not learning:
            output.memory.statistics.reset()
        loss = 0.0
        for first, stop in pairwise(cuts.tolist()):
            for start in starts[first:stop]:
                at = order[start : start + self.batch_size]
                words = contexts.words[at]
                R = core.represent(words)
                batch_loss, delta = output.train(
                    R, contexts.next[at], self.learning_rate, learning or last
                )
                core.step(words, delta, self.learning_rate)
                loss += batch_loss
            ended = last and stop == len(starts)  # words that move now would not be trained
            if learning and first < stop and not ended and isinstance(output, TreeOutput):
                output.assign()
        record: dict[str, Any] = {
            "epoch": epoch + 1,
            "perplexity": float(np.exp(loss / order.size)),
        }
        if isinstance(output, TreeOutput):
            record |= {
                "depth": output.tree.depth,
                "mean_depth": output.tree.mean_depth(counts),
            }
        if self.verbose:
            text = "  ".join(f"{name} {value:.5g}" for name, value in record.items())
            print(f"{type(self).__name__}: {text}", file=sys.stderr, flush=True)
        return record

    # -- predictions -------------------------------------------------------------------------------

    def perplexity(self, sequences: Iterable[str | Sequence[str]]) -> float:
        """Return the perplexity of some text.

        Words that are not known are ``"<unk>"`` if the training text had such; else they are not
        counted.
        """
        return float(np.exp(-self.log_likelihood(sequences).mean()))

    def log_likelihood(self, sequences: Iterable[str | Sequence[str]]) -> AccumArray:
        """Return the log-probability of each word that is counted, in order."""
        check_is_fitted(self)
        contexts = self._contexts(self._lines(sequences))
        if not len(contexts):
            raise ValueError("no known words to predict")
        out = np.empty(len(contexts))
        with threadpool_limits(limits=self.n_jobs or 1):
            for start in range(0, len(contexts), _TEST_BATCH):
                at = slice(start, start + _TEST_BATCH)
                R = self.core_.represent(contexts.words[at])
                out[at] = self.output_.label_log_proba(R, contexts.next[at])
        return out

    def predict_topk(
        self, contexts: Iterable[str | Sequence[str]], k: int = 5
    ) -> tuple[AnyArray, AccumArray]:
        """Return the ``k`` most probable next words of each context, and their probabilities.

        Parameters
        ----------
        contexts : iterable of str or of sequences of str
            The words before; the last T of them count.

        Returns
        -------
        words, probabilities : ndarray of shape (n_contexts, k)
        """
        check_is_fitted(self)
        check_top_k(k, len(self.vocabulary_))
        words = self._last_words([_words(context) for context in _listed(contexts)])
        labels, scores = self.output_.topk(self.core_.represent(words), int(k))
        return np.array(self.vocabulary_, dtype=object)[labels], np.exp(scores.astype(np.float64))

    def sample(
        self, n_words: int = 20, prefix: Sequence[str] | str = (), seed: Any = None
    ) -> list[str]:
        """Return a random continuation, up to ``n_words`` words or the end of the sequence."""
        check_is_fitted(self)
        rng = np.random.default_rng(seed)
        words = _words(prefix)
        out: list[str] = []
        for _ in range(n_words):
            R = self.core_.represent(self._last_words([words + out]))
            p = np.exp(self.output_.log_proba(R)[0].astype(np.float64))
            word = self.vocabulary_[int(rng.choice(p.size, p=p / p.sum()))]
            if word == self.end:
                break
            out.append(word)
        return out

    # -- looking at it -----------------------------------------------------------------------------

    @property
    def tree_(self) -> LabelTree:
        """The tree over the vocabulary."""
        return self._tree_output().tree

    def inspect(self) -> NodeQuality:
        """Return J_n, β and α of every node (paper 004, section 5), from the last epoch."""
        self._tree_output()
        return cast(NodeQuality, self.quality_)

    def tree_text(self, **options: int) -> str:
        """Return the tree with the most frequent words of each node (paper 004, figure 3)."""
        return tree_text(self.tree_, self.vocabulary_, self.word_count_, self.inspect(), **options)

    def _tree_output(self) -> TreeOutput:
        check_is_fitted(self)
        if not isinstance(self.output_, TreeOutput):
            raise AttributeError("a flat softmax has no tree")
        return self.output_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`thinleaf.load_estimator` gives this model back from."""
        check_is_fitted(self)
        save_language_model(self, path)

    # -- words -------------------------------------------------------------------------------------

    def _lines(self, sequences: Iterable[str | Sequence[str]]) -> list[list[str]]:
        end = [] if self.end is None else [self.end]
        return [_words(line) + end for line in _listed(sequences)]

    def _set_vocabulary(self, words: list[str], counts: OffsetArray) -> None:
        self.vocabulary_ = words
        self.word_count_ = counts
        self._id_of = _numbered(words)

    def _contexts(self, lines: list[list[str]]) -> Contexts:
        return _contexts(lines, self._id_of, self.core_.R.shape[0])

    def _last_words(self, contexts: list[list[str]]) -> IndexArray:
        n_words, n_context = len(self.vocabulary_), self.core_.R.shape[0]
        out = np.full((len(contexts), n_context), n_words, dtype=INDEX)
        for row, context in enumerate(contexts):
            ids = _ids(context[-n_context:], self._id_of)[::-1]
            out[row, : ids.size] = np.where(ids < 0, n_words, ids)
        return out

    def _first_tree(
        self, contexts: Contexts, counts: OffsetArray, rng: np.random.Generator
    ) -> tuple[LabelTree, int | None]:
        n_words = counts.size
        arity = self.arity or kinds.least_arity(n_words, self.max_depth or 2)
        arity = kinds.useful_arity(n_words, arity)
        if self.tree == "huffman":
            return kinds.huffman(counts, arity), None
        if self.tree == "clustering":
            return kinds.clustered(_prototypes(contexts, n_words, rng), arity, rng), None
        tree = kinds.balanced(n_words, arity, rng)
        max_depth = self.max_depth or max(tree.depth, 1)
        if self.tree == "learned":
            check_depth(n_words, arity, max_depth)
        return tree, max_depth


def _listed(sequences: Iterable[str | Sequence[str]]) -> Iterable[str | Sequence[str]]:
    if isinstance(sequences, str):
        raise ValueError("give a list of sequences, not one string")
    return sequences


def _words(line: str | Sequence[str]) -> list[str]:
    if isinstance(line, str):
        return line.split()
    words = list(line) if isinstance(line, Iterable) else [line]
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"words must be strings, got {word!r}")
    return words


def _counted(lines: list[list[str]], min_count: int) -> tuple[list[str], OffsetArray]:
    """Return the words, most frequent first, and how often they occur."""
    counts = Counter(word for line in lines for word in line)
    kept = Counter({word: n for word, n in counts.items() if n >= min_count})
    n_rare = counts.total() - kept.total()
    if n_rare:
        kept[UNKNOWN] += n_rare
    ranked = sorted(kept.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ranked], np.array([n for _, n in ranked], dtype=OFFSET)


def _numbered(words: list[str]) -> dict[str, int]:
    return {word: i for i, word in enumerate(words)}


def _ids(words: Sequence[str], id_of: Mapping[str, int]) -> IndexArray:
    unknown = id_of.get(UNKNOWN, -1)
    return np.array([id_of.get(word, unknown) for word in words], dtype=INDEX)


def _contexts(lines: list[list[str]], id_of: Mapping[str, int], n_context: int) -> Contexts:
    return Contexts.of([_ids(line, id_of) for line in lines], n_context, len(id_of))


def _check_finite(core: LogBilinear, output: Output) -> None:
    arrays = [core.U, core.R]
    if isinstance(output, TreeOutput):
        arrays += [output.nodes.weights, output.nodes.bias]
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("training diverged: lower learning_rate")


def _prototypes(contexts: Contexts, n_words: int, rng: np.random.Generator) -> ParamArray:
    """Return an embedding of each word: the mean of random vectors of the words before it."""
    vectors = rng.standard_normal((contexts.words.shape[1], n_words + 1, _PROTOTYPE_DIM))
    out: ParamArray = np.zeros((n_words, _PROTOTYPE_DIM), dtype=PARAM)
    for k in range(contexts.words.shape[1]):
        np.add.at(out, contexts.next, vectors[k].astype(PARAM)[contexts.words[:, k]])
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), np.float32(1e-12))
    return out
