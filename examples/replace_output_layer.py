"""
A tree in the place of an output layer
======================================

Paper 001, section 5.3.1, in small: an LSTM learns to predict the next word with an ordinary
softmax. Then its last hidden states become rows, the next words their classes, and softmax trees
are trained on them. It needs the ``torch`` extra.
"""

# %%
# A language of 20 topics, and a network over 600 words.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

from thinleaf import SoftmaxTreeClassifier
from thinleaf.measuring import metrics

N_TOPICS, N_WORDS = 20, 600
LENGTH, BATCH, HIDDEN, EPOCHS = 20, 20, 48, 6


def text(n_words: int, seed: int) -> Tensor:
    """Return streams of words: a topic has its own words, and in it a word suggests the next."""
    rng = np.random.default_rng(seed)
    size = N_WORDS // N_TOPICS
    follow = np.random.default_rng(0).permuted(np.tile(np.arange(size), (N_TOPICS, 1)), axis=1)
    words = np.empty((n_words // BATCH, BATCH), dtype=np.int64)
    topic, at = rng.integers(N_TOPICS, size=BATCH), rng.integers(size, size=BATCH)
    for step in words:
        step[:] = topic * size + at
        stray = rng.random(BATCH) < 0.3
        at = np.where(stray, np.minimum(rng.geometric(0.2, BATCH) - 1, size - 1), follow[topic, at])
        topic = np.where(rng.random(BATCH) < 0.02, rng.integers(N_TOPICS, size=BATCH), topic)
    return torch.from_numpy(words)


class Network(nn.Module):
    """Embeddings, an LSTM, and the output layer that is to be replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_WORDS, HIDDEN)
        self.lstm = nn.LSTM(HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, N_WORDS)

    def forward(self, words: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, ...]:
        """Return the last hidden state at each word, one a row, and the state to go on with."""
        hidden, state = self.lstm(self.embedding(words), state)
        return hidden.reshape(-1, HIDDEN), state


def pieces(words: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return sequences and the words after them."""
    starts = range(0, len(words) - LENGTH, LENGTH)
    return [(words[i : i + LENGTH], words[i + 1 : i + LENGTH + 1].reshape(-1)) for i in starts]


def train(network: Network, words: Tensor) -> None:
    """Minimise the cross-entropy of the next word."""
    optimizer = torch.optim.Adam(network.parameters(), 5e-3)
    for _ in range(EPOCHS):
        state = None
        for sequence, target in pieces(words):
            hidden, state = network(sequence, state)
            state = tuple(part.detach() for part in state)
            optimizer.zero_grad()
            nn.functional.cross_entropy(network.output(hidden), target).backward()
            optimizer.step()


@torch.no_grad()
def hidden_states(network: Network, words: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train a tree on: hidden states, and the words that follow."""
    states, targets, state = [], [], None
    for sequence, target in pieces(words):
        hidden, state = network(sequence, state)
        states.append(hidden.numpy())
        targets.append(target.numpy())
    return np.concatenate(states), np.concatenate(targets)


# %%
# First the network with its softmax.

torch.manual_seed(0)
torch.set_num_threads(1)
train_words, test_words = text(40_000, seed=1), text(10_000, seed=2)
network = Network()
train(network, train_words)
X, y = hidden_states(network, train_words)
X_test, y_test = hidden_states(network, test_words)
W, b = (parameter.detach().numpy() for parameter in network.output.parameters())
flat = (X_test @ W.T + b).argsort(axis=1)[:, ::-1][:, :5]
errors = {"softmax": (W.size, 100 * np.mean(flat[:, 0] != y_test))}
print(
    f"softmax: test error {errors['softmax'][1]:.1f} %, "
    f"top-5 {100 * metrics.top_k_error(y_test, flat):.1f} %, {W.size:,} multiplications"
)

# %%
# Then trees on its hidden states. A tree reads the words of one leaf, where the softmax reads all.
# Deeper trees with thinner leaves cost less and err more.

for depth, k in ((1, 300), (2, 150), (3, 80), (4, 40)):
    tree = SoftmaxTreeClassifier(depth, k, random_state=0, max_sweeps=3).fit(X, y)
    top, _ = tree.predict_topk(X_test, 5)
    name = f"depth {depth}, leaves of {k}"
    errors[name] = (tree.mean_flops(X_test), 100 * np.mean(top[:, 0] != y_test))
    print(
        f"{name}: test error {errors[name][1]:.1f} %, "
        f"top-5 {100 * metrics.top_k_error(y_test, top):.1f} %, "
        f"{errors[name][0]:,.0f} multiplications"
    )

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, (cost, error) in errors.items():
    ax.scatter([cost], [error], s=50)
    ax.annotate(name, (cost, error), (7, 4), textcoords="offset points")
ax.set(xscale="log", xlabel="multiplications a prediction", ylabel="test error %")
ax.set(xlim=(1500, 120_000))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Words outside a leaf have no score there. The perplexity of the papers is over the rows that
# have their word in their leaf; with back-off, over all.

covered = metrics.perplexity(tree.label_proba(X_test, y_test, smooth=False))
everywhere = metrics.perplexity(tree.label_proba(X_test, y_test))
print(
    f"perplexity {covered.value:.1f} of the {100 * covered.coverage:.0f} % covered rows, "
    f"{everywhere.value:.1f} of all"
)

# %%
# What is deployed is the tree alone.

frozen = tree.freeze()
print(f"the layer to deploy: {frozen.nbytes / 1e6:.2f} MB")
print(f"next word: {frozen.predict_one(X_test[0])}")
