"""Requests to a shop: from texts to a model file that answers single texts, and may say no.

Run it with ``python examples/text_classifier.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split

from thinleaf import TextClassifier, load

WORDS = {
    "delivery": "parcel late courier delivery address delayed shipped arrive",
    "refund": "refund money back return price cancel paid twice",
    "warranty": "broken warranty repair defect replace screen battery crack",
    "account": "password login account email locked reset profile name",
    "stock": "available stock size colour when again sold out",
}
OPENINGS = ["hello", "please", "i have a question about", "can you help with", "it is about", ""]


def requests(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts and what they are about."""
    rng = np.random.default_rng(seed)
    topics = rng.choice(list(WORDS), size=n).tolist()
    texts = []
    for topic in topics:
        own = rng.choice(WORDS[topic].split(), size=rng.integers(1, 4), replace=False)
        other = rng.choice(WORDS[rng.choice(list(WORDS))].split(), size=rng.integers(1, 3))
        texts.append(" ".join([rng.choice(OPENINGS), *rng.permutation([*own, *other])]).strip())
    return texts, topics


def main() -> None:
    texts, topics = requests(2000)
    train, test, y_train, y_test = train_test_split(texts, topics, random_state=0)

    clf = TextClassifier(random_state=0).fit(train, y_train)
    print(f"features: {clf.input_.features.kind}, {clf.input_.n_features:,}")
    print(f"test error {1 - clf.score(test, y_test):.1%}")

    clf.save("requests.thinleaf")
    model = load("requests.thinleaf")
    text = "my parcel is late, where is the courier?"
    print(f"{text!r}: {model.predict_topk_one(text, k=2)}")

    answers = model.predict(test, reject=0.97)
    given = np.array([answer is not None for answer in answers])
    right = answers[given] == np.array(y_test, dtype=object)[given]
    print(f"with reject=0.97: {given.mean():.1%} are answered, {right.mean():.1%} of them right")
    print(f"'asdfgh qwerty': {model.predict_one('asdfgh qwerty', reject=0.97)}")


if __name__ == "__main__":
    main()
