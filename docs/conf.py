"""How Sphinx makes the site: ``make docs``. It needs no network, and the pages load nothing."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples print the same on every machine

from thinleaf import __version__  # noqa: E402

project = "thinleaf"
author = "thinleaf contributors"
copyright = "thinleaf contributors"
version = release = __version__

extensions = [
    "names",
    "outside",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_ext", "generated/example_sources"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "code"
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # the order of examples is a function

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say types
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": ["generated/example_sources"],
    "gallery_dirs": ["generated/examples"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("thinleaf",),
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "ExampleTitleSortKey",
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "image_scrapers": ("figures.scrape", "matplotlib"),
    "remove_config_comments": True,
    "abort_on_example_error": True,
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = "thinleaf"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "when": []}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "thinleaf"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_prev_next": True,
}


def skip_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds for the routing of metadata."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("autodoc-skip-member", skip_member)
