"""What ``train`` does to keep a budget, and to say what a fit would cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thinleaf.cli._checks import check_between
from thinleaf.cli._output import Output, size

if TYPE_CHECKING:
    from thinleaf.datasets.examples import Examples
    from thinleaf.text.recipe import Recipe

_SUMMARY_BYTES = 4096
"""What the command line adds to a model file beside its sections, at the most."""

_BYTES = 1e6


def auto_settings(
    auto: bool,
    model: str,
    settings: Mapping[str, Any],
    max_us: float | None,
    max_mb: float | None,
    chosen: Mapping[str, bool],
) -> tuple[str, dict[str, Any]]:
    """Return the model and its settings, once options are known to go together.

    Parameters
    ----------
    auto : bool
        Whether ``--auto`` is given.
    model : str
        Of ``--model``.
    settings : mapping
        Parameters by their names in trees; None is not given.
    max_us, max_mb : float, optional
    chosen : mapping of str to bool
        Options that a fit to a budget chooses itself, and whether they are given.

    Raises
    ------
    ValueError
    """
    if auto and model not in ("ast", "auto"):
        raise ValueError(f"--auto chooses the model: leave out --model {model}")
    check_between("max_us", max_us)
    check_between("max_mb", max_mb)
    if not auto and model != "auto":
        if max_us is not None or max_mb is not None:
            raise ValueError("--max-us and --max-mb are a budget: give --auto, too")
        return model, dict(settings)
    for option, given in chosen.items():
        if given:
            raise ValueError(f"{option} is chosen with --auto: leave it out")
    names = {"max_seconds": "max_fit_seconds", "n_estimators": "max_trees"}
    found = {names.get(name, name): value for name, value in settings.items()}
    budget = {"max_us": max_us, "max_bytes": None if max_mb is None else max_mb * _BYTES}
    return "auto", found | budget


def deploy_with(estimator: Any, recipe: Recipe | None) -> None:
    """Let the budget of bytes be that of the file that is written."""
    estimator._reserved = _SUMMARY_BYTES
    if recipe is not None:
        sections = recipe.sections()
        estimator._wrap = lambda model: model.with_sections(**sections)


def dry_run(estimator: Any, X: Any, examples: Examples, out: Output) -> None:
    """Say what a fit would cost."""
    from thinleaf.datasets import label_array
    from thinleaf.estimators import estimate_cost

    found = estimate_cost(X, label_array(examples.labels), estimator)
    record = {
        "rows": found.n_rows,
        "seconds": round(found.seconds, 3),
        "peak_bytes": found.peak_bytes,
        "model_bytes": found.model_bytes,
    }
    memory = "" if found.peak_bytes is None else f", {size(found.peak_bytes)} of memory"
    model = "" if found.model_bytes is None else f", a model of {size(found.model_bytes)}"
    largest = found.probes[-1].n_rows
    out.done(
        record,
        f"{found.n_rows:,} rows: about {found.seconds:,.1f} s{memory}{model}\n"
        f"told by fits to up to {largest:,} rows; nothing was written",
    )


def summary_of(estimator: Any) -> dict[str, Any]:
    """Return what the summary of a model that keeps a budget tells."""
    chosen = estimator.frontier_.chosen
    return {
        "validation_error": chosen.error if estimator.metric == "error" else None,
        "chosen": chosen.name,
        "us": round(chosen.us, 3),
    }
