"""Other short lists of an output layer's rows: fixed, by an index, by clusters of equal size."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from thinleaf.torch.heads.leaf_sets import Counts, most_wanted
from thinleaf.torch.heads.targets import FullAnswers

N_CLUSTERS = 256


def fixed_list(train: FullAnswers, best: np.ndarray, n_classes: int, size: int) -> float:
    """Return the agreement of the better of two fixed lists: by first places, by probability."""
    lists = [most_wanted(Counts.of(train, n_classes, share).total(slice(None)), size)
             for share in (0.0, 1.0)]  # fmt: skip
    return max(float(np.isin(best, chosen).mean()) for chosen in lists)


class Clusters:
    """Rows in clusters; those whose centres score best are read, centres included.

    As an inverted file, clusters are those of k-means. As in FlashHead, rows are of unit length and
    clusters are of equal size: rows go to their best centre that has room, the surest first.
    """

    def __init__(self, weight: np.ndarray, *, equal: bool, seed: int = 0) -> None:
        rows = weight / np.linalg.norm(weight, axis=1, keepdims=True) if equal else weight
        means = MiniBatchKMeans(N_CLUSTERS, random_state=seed, n_init=1, batch_size=4096).fit(rows)
        self.centres = means.cluster_centers_.astype(np.float32)
        self.label = _equal(rows @ self.centres.T) if equal else means.labels_
        self.sizes = np.bincount(self.label, minlength=N_CLUSTERS)
        if equal:
            sums = np.zeros_like(self.centres)
            np.add.at(sums, self.label, rows)
            self.centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)

    def agreement(self, states: np.ndarray, best: np.ndarray, size: int) -> tuple[float, float]:
        """Return how often the full layer's class is read, and how many rows are."""
        order = np.argsort(-(states @ self.centres.T), axis=1)
        read = N_CLUSTERS + np.cumsum(self.sizes[order], axis=1)
        place = (order == self.label[best][:, None]).argmax(axis=1)
        # as many clusters for all states as fit the size in the mean
        n_read = int(np.searchsorted(read.mean(axis=0), size, side="right"))
        rows = float(read[:, n_read - 1].mean()) if n_read else float(N_CLUSTERS)
        return float((place < n_read).mean()), rows


def _equal(scores: np.ndarray) -> np.ndarray:
    """Return clusters of equal size."""
    n, k = scores.shape
    room = np.full(k, -(-n // k))
    label = np.full(n, -1)
    wishes = np.argsort(-scores, axis=1)
    for row in np.argsort(-scores.max(axis=1), kind="stable"):
        for choice in wishes[row]:
            if room[choice]:
                label[row] = choice
                room[choice] -= 1
                break
    return label
