"""The HTML of an estimator links to its page, if the site has an address."""

from __future__ import annotations

import pytest

import thinleaf
from thinleaf.estimators._base import documented

NAMES = [
    name
    for name in thinleaf.__all__
    if name.endswith("Classifier") or name == "LabelTreeLanguageModel"
]


@pytest.fixture(autouse=True)
def no_site(monkeypatch):
    monkeypatch.delenv(documented.VARIABLE, raising=False)
    monkeypatch.setattr(documented, "project_site", lambda: "")


@pytest.mark.parametrize("name", NAMES)
def test_the_link_leads_to_the_page_of_the_class(name, monkeypatch):
    estimator = getattr(thinleaf, name)()
    assert estimator._get_doc_link() == ""
    monkeypatch.setenv(documented.VARIABLE, "file:///home/me/{site}/")
    page = f"file:///home/me/{{site}}/generated/api/thinleaf.{name}.html"
    assert estimator._get_doc_link() == page
    assert page in estimator._repr_html_()


def test_without_an_address_there_is_no_link():
    html = thinleaf.TextClassifier()._repr_html_()
    assert "generated/api" not in html
    assert "https://scikit-learn.org" not in html


def test_the_address_of_the_package_is_taken(monkeypatch):
    monkeypatch.setattr(documented, "project_site", lambda: "https://docs.example/thinleaf")
    link = thinleaf.MACHClassifier()._get_doc_link()
    assert link == "https://docs.example/thinleaf/generated/api/thinleaf.MACHClassifier.html"


def test_the_address_is_the_one_named_documentation(monkeypatch):
    monkeypatch.undo()

    class Metadata:
        def get_all(self, key):
            assert key == "Project-URL"
            return ["Source, https://x.example", "Documentation, https://docs.example"]

    monkeypatch.setattr(documented, "metadata", lambda _: Metadata())
    assert documented.project_site.__wrapped__() == "https://docs.example"
