"""Public names in the code of a page, such as ``TextClassifier``, lead to their pages.

So Markdown names a class as plain code, which can be read on a forge, and the site links it.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

import thinleaf
import thinleaf.torch

PLAIN = {name: f"thinleaf.{name}" for name in thinleaf.__all__ if name[0].isupper()}
PLAIN |= {name: f"thinleaf.torch.{name}" for name in thinleaf.torch.__all__ if name[0].isupper()}
FULL = re.compile(r"thinleaf(?:\.\w+)+")


def target_of(code: str) -> str | None:
    """Return the public name that a piece of code is."""
    code = code.removesuffix("()")
    if code in PLAIN:
        return PLAIN[code]
    return code if FULL.fullmatch(code) else None


def link_names(app: Any, doctree: nodes.document) -> None:
    """Make references of names; what has no page stays plain code."""
    for node in list(doctree.findall(nodes.literal)):
        target = target_of(node.astext())
        if target is None or _is_linked(node):
            continue
        reference = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refexplicit=False
        )
        node.replace_self(reference)
        reference += node


def _is_linked(node: nodes.Node) -> bool:
    """Return whether a node is part of a link, a title or a signature."""
    unlinked = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)
    while node.parent is not None:
        node = node.parent
        if isinstance(node, unlinked):
            return True
    return False


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-read", link_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
