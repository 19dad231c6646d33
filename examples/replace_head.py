"""
A tree before a network's own output layer
==========================================

An LSTM learns to predict the next word with an ordinary output layer. ``replace_head`` then trains
a tree on its hidden states: a state reads the rows of a leaf, where the layer reads all. Rows stay
the network's own. ``docs/heads.md`` does the same with language models.
It needs the ``torch`` extra.
"""

# %%
# A language of 20 topics, and a network over 2,000 words.

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from thinleaf.torch import TreeHead, agreement_report, draft_mapping, draft_report, replace_head

N_TOPICS, N_WORDS = 20, 2000
LENGTH, BATCH, HIDDEN, EPOCHS = 20, 20, 32, 4


def text(n_words: int, seed: int, n_topics: int = N_TOPICS) -> Tensor:
    """Return streams of words: a topic has its own words, and in it a word suggests the next."""
    rng = np.random.default_rng(seed)
    size = N_WORDS // N_TOPICS
    follow = np.random.default_rng(0).permuted(np.tile(np.arange(size), (N_TOPICS, 1)), axis=1)
    words = np.empty((n_words // BATCH, BATCH), dtype=np.int64)
    topic, at = rng.integers(n_topics, size=BATCH), rng.integers(size, size=BATCH)
    for step in words:
        step[:] = topic * size + at
        stray = rng.random(BATCH) < 0.3
        at = np.where(stray, np.minimum(rng.geometric(0.2, BATCH) - 1, size - 1), follow[topic, at])
        topic = np.where(rng.random(BATCH) < 0.02, rng.integers(n_topics, size=BATCH), topic)
    return torch.from_numpy(words)


class Network(nn.Module):
    """Embeddings, an LSTM, and the output layer that is to be replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_WORDS, HIDDEN)
        self.lstm = nn.LSTM(HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, N_WORDS)

    def forward(self, words: Tensor) -> Tensor:
        """Return logits of the next word, of shape (length, batch, n_words)."""
        return self.output(self.lstm(self.embedding(words))[0])


def pieces(words: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return sequences and the words after them."""
    starts = range(0, len(words) - LENGTH, LENGTH)
    return [(words[i : i + LENGTH], words[i + 1 : i + LENGTH + 1]) for i in starts]


def train(network: Network, words: Tensor) -> None:
    """Minimise the cross-entropy of the next word."""
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(EPOCHS):
        for sequence, target in pieces(words):
            logits = network(sequence)
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
            optimizer.step()


@torch.no_grad()
def hidden_states(network: Network, words: Tensor) -> tuple[Tensor, Tensor]:
    """Return hidden states of shape (n_sequences, length, hidden), and the words that followed."""
    parts = [(network.lstm(network.embedding(x))[0].transpose(0, 1), y.T) for x, y in pieces(words)]
    states, targets = zip(*parts, strict=True)
    return torch.cat(states), torch.cat(targets)


# %%
# The network is trained, then its layer is replaced: by batches that the network is run on, or by
# hidden states.

torch.manual_seed(0)
torch.set_num_threads(1)
train_words, test_words = text(24_000, seed=1), text(6_000, seed=2)
network = Network()
train(network, train_words)
layer = network.output

head = replace_head(network, [sequence for sequence, _ in pieces(train_words)], size=100)
print(head)

# %%
# What it costs: on text of the same kind, and on noise.

test = hidden_states(network, test_words)
noise = torch.randn(2000, HIDDEN)
report = agreement_report(head, {"test": test, "noise": noise}, timed=False, warn=False)
with torch.no_grad():
    errors = [float((one(test[0]).argmax(-1) != test[1]).float().mean()) for one in (layer, head)]
print(f"test error {100 * errors[0]:.1f} %, with the tree {100 * errors[1]:.1f} %")
for found in report.texts:
    print(
        f"{found.kind}: {found.rows:.0f} of {N_WORDS} rows, the layer's word in "
        f"{100 * found.agreement:.1f} % of cases{', unlike its training' * found.unlike}"
    )

# %%
# As a drafter's short list, and in a file beside the layer's weights.

draft = draft_report(head, test[0])
print(f"of five proposals: {draft.tree:.2f} accepted, {draft.fixed:.2f} with a fixed list")
print(f"words that a drafter would have: {int(draft_mapping(head).t2d.sum())}")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "head.thinleaf"
    head.save(path)
    print(f"in a file: {path.stat().st_size / 1000:.0f} kB beside the layer's weights")
    network.output = TreeHead.load(path, layer, rows="int8")
with torch.no_grad():
    words = network(test_words[:5]).argmax(dim=-1)
print(f"next words: {words[-1, :5].tolist()}")
