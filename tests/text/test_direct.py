"""From a text to its class: as by way of a row, whatever the tree."""

from __future__ import annotations

import numpy as np
import pytest

from thinleaf import SoftmaxTreeClassifier
from thinleaf.text.direct import TextToClass
from thinleaf.text.features import TextFeatures

TEXTS = [f"word{i % 40} of class{i % 8} é{i % 3}" for i in range(160)]
LABELS = np.arange(160) % 8


@pytest.fixture(scope="module", params=["tfidf", "both", "hashing"])
def features(request) -> TextFeatures:
    return TextFeatures(request.param, n_buckets=256).fit(TEXTS)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("dense", [False, True])
def test_classes_are_those_of_rows(features, beam, dense):
    X = features.transform(TEXTS)
    clf = SoftmaxTreeClassifier(depth=2, leaf_classes=4, max_sweeps=2, random_state=0)
    model = clf.fit(X.toarray() if dense else X, LABELS).freeze().with_beam(beam)
    direct = TextToClass(features, model.predictor)
    asked = [*TEXTS[:20], "", "nothing known", "WORD3 É1 漢字", "a\ud800b"]
    expected = model.predictor.top_class(model._rows(features.transform(asked)))
    assert [direct(text) for text in asked] == expected.tolist()
    assert [model.predictor.top_class_one(*features.row_of(t)) for t in asked] == expected.tolist()
    with pytest.raises(ValueError, match="text must be a string"):
        direct(3)


def test_features_must_fit_the_tree(features):
    clf = SoftmaxTreeClassifier(depth=1, max_sweeps=1, random_state=0)
    model = clf.fit(np.eye(4, 3), [0, 1, 0, 1]).freeze()
    with pytest.raises(ValueError, match="but the model expects 3"):
        TextToClass(features, model.predictor)
