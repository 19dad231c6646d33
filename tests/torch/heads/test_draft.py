from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.torch.heads.cases import DIM, N_CLASSES, layer, states
from thinleaf.torch import draft_mapping, draft_report, replace_head
from thinleaf.torch.heads.draft import accepted_length


@pytest.fixture(scope="module")
def head():
    return replace_head(layer(), states(2000), size=40)


def test_the_accepted_length_is_that_of_runs():
    rng = np.random.default_rng(0)
    accepts = rng.random((3, 9))
    total = []
    for row in accepts:
        for start in range(9 - 4 + 1):
            total.append(sum(np.prod(row[start : start + k]) for k in range(1, 5)))  # noqa: PERF401
    assert accepted_length(accepts, 4) == pytest.approx(np.mean(total))
    assert accepted_length(np.ones((2, 6)), 5) == 5.0


@pytest.mark.parametrize("greedy", [True, False])
def test_a_tree_has_longer_runs_than_a_fixed_list(head, greedy):
    report = draft_report(head, states(600, seed=1).reshape(6, 100, DIM), greedy=greedy)
    assert report.fixed < report.tree < report.full == 5.0
    assert report.size == 40


def test_greedy_runs_are_those_of_the_best_classes(head):
    test = states(100, seed=2).reshape(1, 100, DIM)
    report = draft_report(head, test, n_draft=1, drafter=0.5)
    with torch.no_grad():
        agree = head.predict(test[0]) == (test[0] @ head.weight.T).argmax(dim=1)
    assert report.tree == pytest.approx(0.5 * float(agree.float().mean()))
    assert report.full == 0.5


@pytest.mark.parametrize("leaf", [None, 0, 1])
def test_the_mapping_leads_to_the_classes(head, leaf):
    d2t, t2d = draft_mapping(head, leaf)
    classes = torch.arange(d2t.numel()) + d2t
    expected = np.sort(head.sets.frequent if leaf is None else head.sets.of(leaf))
    assert classes.tolist() == expected.tolist()
    assert torch.nonzero(t2d)[:, 0].tolist() == expected.tolist()
    assert t2d.shape == (N_CLASSES,)


def test_what_cannot_be_is_refused(head):
    with pytest.raises(ValueError, match="n_sequences"):
        draft_report(head, states(10))
    with pytest.raises(ValueError, match="n_draft"):
        draft_report(head, states(10).reshape(1, 10, DIM), n_draft=11)
    with pytest.raises(ValueError, match="n_draft"):
        draft_report(head, states(10).reshape(1, 10, DIM), n_draft=2.5)
    with pytest.raises(ValueError, match="drafter"):
        draft_report(head, states(10).reshape(1, 10, DIM), drafter=0.0)
    with pytest.raises(ValueError, match="leaf"):
        draft_mapping(head, 99)
