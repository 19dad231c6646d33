"""
Many intents, on rows of your own
=================================

Requests to a bank: 120 intents from generated texts, as sparse tf-idf rows of scikit-learn.
"""

# %%
# An intent is an action and a thing; both have several names.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from thinleaf import SoftmaxTreeClassifier
from thinleaf.measuring import metrics

ACTIONS = {
    "open": ["open", "set up", "start"],
    "close": ["close", "shut down", "get rid of"],
    "block": ["block", "freeze", "lock"],
    "renew": ["renew", "extend", "prolong"],
    "replace": ["replace", "swap", "send a new one for"],
    "find": ["find", "locate", "where is"],
    "explain": ["explain", "what is", "tell me about"],
    "change": ["change", "update", "edit"],
    "compare": ["compare", "which is the best", "choose between offers for"],
    "share": ["share", "add my partner to", "give access to"],
}
THINGS = {
    "account": ["account", "current account", "checking account"],
    "savings": ["savings", "savings account", "deposit"],
    "credit_card": ["credit card", "visa", "charge card"],
    "debit_card": ["debit card", "bank card", "cash card"],
    "loan": ["loan", "personal loan", "borrowing"],
    "mortgage": ["mortgage", "home loan", "house credit"],
    "pin": ["pin", "secret number", "four digit code"],
    "password": ["password", "login", "web access"],
    "address": ["address", "postal address", "street name"],
    "insurance": ["insurance", "policy", "cover"],
    "transfer": ["transfer", "payment", "wire"],
    "statement": ["statement", "monthly report", "account history"],
}
OPENINGS = ["please", "i want to", "can you", "how do i", "hello", "need to", "quick question", ""]
CLOSINGS = ["today", "as soon as possible", "thanks", "for my company", "from abroad", ""]


def requests(n_each: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts and their intents, an action and a thing each."""
    rng = np.random.default_rng(seed)
    texts, intents = [], []
    for action, verbs in ACTIONS.items():
        for thing, nouns in THINGS.items():
            for _ in range(n_each):
                parts = [rng.choice(OPENINGS), rng.choice(verbs), "my", rng.choice(nouns)]
                texts.append(" ".join([*parts, rng.choice(CLOSINGS)]).strip())
                intents.append(f"{action} {thing}")
    return texts, intents


texts, intents = requests(n_each=30)
train, test, y_train, y_test = train_test_split(
    texts, intents, test_size=0.25, stratify=intents, random_state=0
)
tfidf = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)
X_train, X_test = tfidf.fit_transform(train), tfidf.transform(test)

# %%
# A tree of fixed depth. A prediction looks at some of the words of one path and one leaf.

clf = SoftmaxTreeClassifier(absent="zero_one", random_state=0).fit(X_train, y_train)
labels, _ = clf.predict_topk(X_test, k=5)
shape = metrics.summarize(clf.tree_)
print(f"{len(train)} texts, {X_train.shape[1]} features, {clf.classes_.size} intents")
print(
    f"test error {100 * (1 - clf.score(X_test, y_test)):.1f} %, "
    f"top-5 error {100 * metrics.top_k_error(y_test, labels):.1f} %"
)
print(
    f"depth {shape.depth}, {shape.n_leaves} leaves of {shape.mean_leaf_classes:.1f} intents; "
    f"{clf.mean_flops(X_test):.0f} multiplications a prediction"
)
print(f"{100 * clf.coverage_:.1f} % of the training texts have their intent in their leaf")

# %%
# New texts:

asked = ["lock my visa please", "which mortgage is the best", "need a new pin from abroad"]
top, top_p = clf.predict_topk(tfidf.transform(asked), k=3)
for text, answers, probabilities in zip(asked, top, top_p, strict=True):
    best = (f"{a} {100 * p:.0f} %" for a, p in zip(answers, probabilities, strict=True))
    print(f"{text!r}: {', '.join(best)}")

# %%
# The root asks for words of actions. Negative weights send a text left, positive ones right.

words = tfidf.get_feature_names_out()
root = clf.tree_.router(0)
order = np.argsort(root.weights)
extreme = np.concatenate([order[:8], order[-8:]])

figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
colours = np.where(root.weights[extreme] < 0, "tab:blue", "tab:orange")
ax.barh(words[root.features[extreme]], root.weights[extreme], color=colours)
ax.set(xlabel="weight at the root: left below 0, right above")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
