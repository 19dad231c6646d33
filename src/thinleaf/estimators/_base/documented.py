"""Where the HTML of an estimator, as notebooks show it, links to: the class's page of the site."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

from sklearn.base import BaseEstimator

VARIABLE = "THINLEAF_DOCS"
"""The environment variable with the address of the site, or of a folder that has it."""

PAGE = "generated/api/thinleaf.{estimator_name}.html"
"""Where the site has the page of a class."""


@cache
def project_site() -> str:
    """Return the address of the site that the installed package names, or nothing."""
    try:
        urls = metadata("thinleaf").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = (str(url).partition(", ") for url in urls)
    return next((url for name, _, url in named if name.lower() == "documentation"), "")


class Documented(BaseEstimator):  # type: ignore[misc]
    """An estimator of this library. Without an address of the site there is no link."""

    _doc_link_module = "thinleaf"

    @property
    def _doc_link_template(self) -> str:
        site = os.environ.get(VARIABLE) or project_site()
        # An address is no template: what looks like a field in it is none.
        site = site.rstrip("/").replace("{", "{{").replace("}", "}}")
        return f"{site}/{PAGE}" if site else ""
