"""Figures of examples that were drawn without pyplot: thinleaf draws so, as it needs no display."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_drawn: WeakSet[Figure] = WeakSet()


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Write the figures that an example has made since, and return the text that shows them."""
    names = []
    for value in list(block_vars["example_globals"].values()):
        if not isinstance(value, Figure) or value in _drawn:
            continue
        _drawn.add(value)
        if value.canvas.manager is None:  # else pyplot has it, and it is written by its scraper
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=110, facecolor="white", bbox_inches="tight")
            names.append(path)
    return figure_rst(names, gallery_conf["src_dir"])
