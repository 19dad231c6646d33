"""The page that a browser gets: what can be asked, and a field to try it in. It loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib.resources import files
from typing import Any

from thinleaf.serving.limits import Limits
from thinleaf.serving.request import Shape


def page(shape: Shape, limits: Limits) -> str:
    """Return the page for a model."""
    one, many = shape.fields
    sample, is_a = _sample(shape)
    example = json.dumps({many: [sample, sample], "top_k": min(3, shape.n_classes), "proba": True})
    single = json.dumps({one: sample})
    fields = [
        (one, f"{is_a}: one answer"),
        (many, f"a list of at most {limits.max_batch:,} of them: a list of answers"),
        ("top_k", f"1 to {shape.n_classes:,}: this many labels, the most probable first"),
        ("proba", "true: labels with their probabilities"),
        ("min_proba", "0 to 1: less probable answers are rejected, their label is null"),
    ]
    if shape.rejects:
        about = "wanted precision, such as 0.95: answers are rejected so that this share is right"
        fields.append(("reject", about))
    rows = "".join(
        f"<tr><td><code>{name}</code></td><td>{about}</td></tr>" for name, about in fields
    )
    parts = {
        "about": escape(f"A model of {shape.n_classes:,} labels that takes {shape.in_words}."),
        "example": escape(example),
        "fields": rows,
        "curl": escape(
            f"curl -H 'content-type: application/json' -d '{single}' http://HOST:PORT/predict"
        ),
        "script": _asset("docs_page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], _asset("docs_page.html"))


def _sample(shape: Shape) -> tuple[Any, str]:
    """Return an example, and what is said of it."""
    if shape.kind == "texts":
        return "a text", "a string"
    if shape.kind == "records":
        record: dict[str, Any] = dict.fromkeys(shape.text_columns, "a text")
        return record | dict.fromkeys(shape.numeric_columns, 0), "an object of these columns"
    said = (
        f"a list of {shape.n_features:,} numbers, or an object of <code>indices</code> from 0 and "
        "<code>values</code> of the features that are not zero"
    )
    return {"indices": [0], "values": [1.0]}, said


def policy() -> str:
    """Return what the page may do: run its own code and ask its own server."""
    digest = base64.b64encode(hashlib.sha256(_asset("docs_page.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "connect-src 'self'; frame-ancestors 'none'"
    )


def _asset(name: str) -> str:
    return files("thinleaf.serving").joinpath(name).read_text(encoding="utf-8")
