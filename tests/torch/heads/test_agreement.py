from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from tests.torch.heads.cases import DIM, N_CLASSES, layer, states
from thinleaf.torch import agreement_report, replace_head


@pytest.fixture(scope="module")
def linear():
    return layer(bias=True)


@pytest.fixture(scope="module")
def head(linear):
    return replace_head(linear, states(3000), size=60)


def test_figures_are_those_of_the_definitions(linear, head):
    test = states(400, seed=1)
    followed = torch.randint(N_CLASSES, (400,), generator=torch.Generator().manual_seed(0))
    text = agreement_report(head, {"a": (test, followed)}, timed=False)["a"]
    with torch.no_grad():
        full, own = linear(test).double(), head(test).double()
    kept = torch.isfinite(own)
    agreement = (full.argmax(1) == own.argmax(1)).double().mean()
    assert text.agreement == pytest.approx(float(agreement))
    recall = kept.gather(1, full.topk(5).indices).double().mean()
    assert text.top5_recall == pytest.approx(float(recall))
    p, q = full.log_softmax(1), own.log_softmax(1)
    kl = torch.where(kept, q.exp() * (q - p), torch.zeros(())).sum(1).mean()
    assert text.kl == pytest.approx(float(kl), rel=1e-4)
    loss = torch.nn.functional.cross_entropy(full, followed)
    assert text.full_perplexity == pytest.approx(float(loss.exp()), rel=1e-4)
    assert text.coverage == pytest.approx(float(kept.gather(1, followed[:, None]).double().mean()))
    assert text.rows == 60
    assert text.microseconds is None
    assert 0.0 <= text.leaf_drift <= 1.0


def test_probabilities_with_back_off_sum_to_one(head):
    state = states(1, seed=2)
    every = torch.arange(N_CLASSES)
    text = agreement_report(
        head, {c: (state, every[c : c + 1]) for c in range(N_CLASSES)}, timed=False, warn=False
    )
    assert sum(1.0 / part.perplexity for part in text.texts) == pytest.approx(1.0, rel=1e-4)


def test_a_text_unlike_the_training_text_is_warned_of(head):
    strange = 2.0 * torch.randn(500, DIM, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match="unlike the text .* strange"):
        report = agreement_report(head, {"same": states(500, seed=3), "strange": strange})
    assert not report["same"].unlike
    assert report["strange"].unlike
    assert report["strange"].leaf_drift > report["same"].leaf_drift
    assert report["same"].microseconds > 0.0
    assert report["same"].perplexity is None


def test_the_report_is_a_table_and_json(head, tmp_path):
    report = agreement_report(head, {"a": states(50, seed=4)}, timed=False)
    assert json.loads(report.to_json(tmp_path / "report.json")) == report.to_dict()
    assert (tmp_path / "report.json").read_text() == report.to_json()
    lines = str(report).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("| kind | n states | agreement |")


def test_what_does_not_fit_is_refused(head):
    with pytest.raises(ValueError, match="no states"):
        agreement_report(head, {"a": np.zeros((0, DIM))})
    with pytest.raises(ValueError, match="that followed"):
        agreement_report(head, {"a": (states(3), np.zeros(2))})
    for wrong in (-2, N_CLASSES):
        with pytest.raises(ValueError, match="must be from -1 to"):
            agreement_report(head, {"a": (states(3), np.array([0, wrong, 1]))})
    with pytest.raises(KeyError):
        agreement_report(head, {"a": states(3)}, timed=False)["b"]


def test_places_that_nothing_followed_do_not_count(head):
    test, followed = states(60, seed=5), np.arange(60)
    followed[::3] = -1
    known = followed >= 0
    found = agreement_report(head, {"a": (test, followed)}, timed=False)["a"]
    alone = agreement_report(head, {"a": (test[known], followed[known])}, timed=False)["a"]
    for name in ("perplexity", "full_perplexity", "coverage"):
        assert getattr(found, name) == pytest.approx(getattr(alone, name), rel=1e-6)
    none = agreement_report(head, {"a": (test, np.full(60, -1))}, timed=False)["a"]
    assert none.perplexity is none.full_perplexity is none.coverage is None
