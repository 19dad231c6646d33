"""How a head compares with the full layer, by kind of text: what users look at before they deploy.

The head's distribution q is the full layer's p, restricted to the kept classes S and normalised: so
KL(q‖p) = -log p(S). The other direction is infinite. Perplexity gives what a leaf does not keep the
probability that it had in training, spread evenly.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from thinleaf._dtypes import AnyArray, ParamArray
from thinleaf.arrays.replace import replace_file
from thinleaf.model.latency import prepared_rows, single_latency
from thinleaf.torch.heads.collect import as_states
from thinleaf.torch.heads.targets import full_answers
from thinleaf.torch.heads.tree_head import TreeHead

_BLOCK = 256
_N_TIMED = 100
_LEAST_LOSS = 0.01
"""Below what held-out text promised by this much, a text is unlike it, if that is no chance."""


@dataclass(frozen=True)
class TextAgreement:
    """Figures of one kind of text.

    Attributes
    ----------
    kind : str
    n_states : int
    agreement : float
        Share of states whose best class is the full layer's.
    standard_error : float
        Of it, for states that are drawn one by one.
    top5_recall : float
        Share of the full layer's five best classes that are kept.
    kl : float
        Mean of KL(head ‖ full layer), in nats.
    perplexity, full_perplexity : float or None
        Of the classes that followed, if they were given.
    coverage : float or None
        Share of those that were kept.
    rows, bytes : float
        That are read for a state.
    leaf_drift : float
        Total variation between the use of leaves here and in training: from 0 to 1.
    microseconds, full_microseconds : float or None
        Of one state, on one thread.
    unlike : bool
        Agreement is lower than on held-out text of the kind that the head was trained on.
    """

    kind: str
    n_states: int
    agreement: float
    standard_error: float
    top5_recall: float
    kl: float
    perplexity: float | None
    full_perplexity: float | None
    coverage: float | None
    rows: float
    bytes: float
    leaf_drift: float
    microseconds: float | None
    full_microseconds: float | None
    unlike: bool


@dataclass(frozen=True)
class AgreementReport:
    """What :func:`agreement_report` found.

    Attributes
    ----------
    expected : float
        Agreement on text that was held out in training; NaN if that is not known.
    texts : list of TextAgreement
    """

    expected: float
    texts: list[TextAgreement]

    def __getitem__(self, kind: str) -> TextAgreement:
        return {text.kind: text for text in self.texts}[kind]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        expected = self.expected if np.isfinite(self.expected) else None
        return {"expected": expected, "texts": [asdict(text) for text in self.texts]}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as JSON, and write it to a file if one is named."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        if path is not None:
            with replace_file(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return text

    def table(self) -> str:
        """Return the report as a Markdown table, a line a kind of text."""
        names = [field.name for field in fields(TextAgreement)]
        lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |"]
        lines.append("|" + "---|" * len(names))
        cells = [[_cell(getattr(text, name)) for name in names] for text in self.texts]
        lines += ["| " + " | ".join(row) + " |" for row in cells]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"


@torch.no_grad()
def agreement_report(
    head: TreeHead, texts: Mapping[str, Any], *, timed: bool = True, warn: bool = True
) -> AgreementReport:
    """Compare a head with the full layer on texts of several kinds.

    Parameters
    ----------
    head : TreeHead
    texts : mapping of str to states, or to (states, followed)
        Hidden states of shape (…, in_features) of each kind of text; and the class that followed
        each of them, of shape (…), for perplexities; -1 if none did.
    timed : bool
        Whether to measure microseconds.
    warn : bool
        Warn of texts that are unlike what the head was trained on.
    """
    known = head.trained_on
    expected = np.nan if known is None else known.agreement
    found = [_of_text(head, kind, given, timed) for kind, given in texts.items()]
    strange = [text for text in found if text.unlike]
    if strange and warn:
        named = ", ".join(f"{text.kind} ({100 * text.agreement:.1f} %)" for text in strange)
        warnings.warn(
            f"unlike the text that this head was trained on, where agreement is "
            f"{100 * expected:.1f} %: {named}. Train it on such text, too, or use exact=True",
            stacklevel=3,
        )
    return AgreementReport(float(expected), found)


def _of_text(head: TreeHead, kind: str, given: Any, timed: bool) -> TextAgreement:
    states, followed = given if isinstance(given, tuple) else (given, None)
    rows = as_states(states, head.in_features)
    if not len(rows):
        raise ValueError(f"there are no states of {kind!r}")
    followed = followed.cpu() if isinstance(followed, Tensor) else followed
    after = None if followed is None else np.asarray(followed).reshape(-1).astype(np.int64)
    if after is not None and after.size != len(rows):
        raise ValueError(f"{len(rows)} states of {kind!r}, but {after.size} that followed")
    if after is not None and not -1 <= int(after.min()) <= int(after.max()) < head.out_features:
        raise ValueError(f"what followed {kind!r} must be from -1 to {head.out_features - 1}")
    bias = None if head.bias is None else head.bias.detach()
    full = full_answers(rows, head.weight.detach(), bias, 5, after)
    leaves = head.leaves_of(torch.from_numpy(rows)).reshape(len(rows), -1).numpy()
    log_kept, own_log_proba, right, recall, n_kept = _answers(head, rows, full.classes, after)
    agreement = float(right.mean())
    error = float(np.sqrt(agreement * (1.0 - agreement) / len(rows)))
    perplexity = full_perplexity = coverage = None
    if after is not None and full.log_proba is not None and (after >= 0).any():
        known = after >= 0
        kept = np.isfinite(own_log_proba)[known]
        full_perplexity = float(np.exp(-full.log_proba[known].mean()))
        outside = _outside(head)[leaves[known, 0]]
        spread = np.log(outside / np.maximum(head.out_features - n_kept[known], 1))
        log_proba = np.where(kept, own_log_proba[known] + np.log1p(-outside), spread)
        coverage, perplexity = float(kept.mean()), float(np.exp(-log_proba.mean()))
    trained_on, drift, unlike = head.trained_on, 0.0, False
    if trained_on is not None:
        share = np.bincount(leaves[:, 0], minlength=head.n_leaves) / len(rows)
        drift = float(0.5 * np.abs(share - np.array(trained_on.leaf_share)).sum())
        below = trained_on.agreement - agreement
        unlike = not head.exact and below > max(_LEAST_LOSS, 3.0 * error)
    mine, of_full = _latencies(head, rows) if timed else (None, None)
    return TextAgreement(
        kind,
        len(rows),
        agreement,
        error,
        float(recall.mean()),
        float(np.mean(full.log_norm - log_kept)),
        perplexity,
        full_perplexity,
        coverage,
        float(n_kept.mean()),
        head.bytes_per_state(leaves.ravel()) * leaves.shape[1],
        drift,
        mine,
        of_full,
        unlike,
    )


def _outside(head: TreeHead) -> AnyArray:
    if head.trained_on is None:
        return np.full(head.n_leaves, 0.01)
    outside: AnyArray = np.clip(np.array(head.trained_on.outside), 1e-6, 0.5)
    return outside


def _answers(
    head: TreeHead, rows: ParamArray, best: AnyArray, after: AnyArray | None
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return log Σ exp of kept logits, log-probabilities, and how the full layer's best fare."""
    log_kept, right = np.empty(len(rows)), np.empty(len(rows), dtype=np.bool_)
    recall, n_kept = np.empty(best.shape), np.empty(len(rows))
    own = np.full(len(rows), -np.inf)
    for begin in range(0, len(rows), _BLOCK):
        part = slice(begin, min(begin + _BLOCK, len(rows)))
        logits = head(torch.from_numpy(rows[part]).to(head.weight.device)).float()
        kept = torch.isfinite(logits)
        log_kept[part] = torch.logsumexp(logits, dim=1).cpu().numpy()
        n_kept[part] = kept.sum(dim=1).cpu().numpy()
        right[part] = logits.argmax(dim=1).cpu().numpy() == best[part, 0]
        wanted = torch.from_numpy(best[part].astype(np.int64)).to(kept.device)
        recall[part] = kept.gather(1, wanted).cpu().numpy()
        if after is not None:
            followed = torch.from_numpy(np.maximum(after[part], 0))[:, None].to(logits.device)
            own[part] = logits.gather(1, followed)[:, 0].cpu().numpy() - log_kept[part]
    return log_kept, own, right, recall, n_kept


def _latencies(head: TreeHead, rows: ParamArray) -> tuple[float, float]:
    weight, bias = head.weight, head.bias
    chosen = prepared_rows(rows, min(_N_TIMED, len(rows)))
    samples = [(torch.from_numpy(row).to(weight.device),) for (row,) in chosen]
    n_threads = torch.get_num_threads()
    on_cpu = weight.device.type == "cpu"

    def mine_of(state: Tensor) -> Any:
        return (
            head(state) if on_cpu else head(state).max().item()
        )  # a GPU answers before it is done

    def full_of(state: Tensor) -> Any:
        logits = nn.functional.linear(state.to(weight.dtype), weight, bias)
        return logits if on_cpu else logits.max().item()

    torch.set_num_threads(1)
    try:
        mine = single_latency(mine_of, samples).median
        full = single_latency(full_of, samples[:30]).median
    finally:
        torch.set_num_threads(n_threads)
    return mine, full
