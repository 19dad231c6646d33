"""Explanations in words and in HTML: true, short, and nothing in them is taken for a command."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.frozen_cases import real_rows, rich_forest, rich_model
from thinleaf import TextClassifier
from thinleaf.model.explanation.in_words import lines_of, number, percent, rich_text, shown

HOSTILE = [
    "</script><script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "a\u202eevil\u202c",
    "x" * 10_000,
    "\x1b[31mred\n\r\x00",
    "[bold]rich[/bold]",
    "&lt;b&gt;",
    "$\\frac{1}{2}$",
    "plain",
]
ALLOWED = {
    "div",
    "p",
    "span",
    "bdi",
    "table",
    "tr",
    "td",
    "details",
    "summary",
    "b",
    "br",
    "ul",
    "li",
}


class Tags(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def hostile_model():
    names = [HOSTILE[i % len(HOSTILE)] for i in range(30)]
    return rich_model(labels=np.array(HOSTILE, dtype=object), feature_names=names)


def test_hostile_labels_are_text():
    model = hostile_model()
    for row in real_rows():
        e = model.explain(row, against=HOSTILE[0])
        page = Tags()
        page.feed(e._repr_html_())
        assert page.tags <= ALLOWED
        assert page.attributes <= {"class", "style", "title", "open"}
        for text in (e.to_text(), rich_text(e).plain):
            assert "\x1b" not in text
            assert "\x00" not in text
            assert "\u202e" not in text
            assert max(map(len, text.split("\n"))) < 800


def test_a_text_is_shown_with_its_words():
    texts = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 5
    y = ["fracture", "fracture", "fever", "fever"] * 5
    model = TextClassifier(features="words", random_state=0).fit(texts, y)
    e = model.explain("Broken <b>arm</b> & leg")
    page = Tags()
    page.feed(e._repr_html_())
    assert "Broken <b>arm</b> & leg" in page.text
    assert "Broken <b>arm</b> & leg" in str(e)


def test_words_say_what_the_values_say():
    model = rich_model(1)
    e = model.explain(real_rows(2)[0], against=int(model.labels[3]))
    text = str(e)
    assert text.startswith(f"label  {e.label}  {percent(e.probability)}")
    assert f"leaf {e.path.leaf}" in text
    assert "why not" in text
    for step in e.path.steps:
        assert f"{step.side}  {percent(step.probability)}" in text
    assert rich_text(e).plain == text


def test_only_some_paths_are_shown():
    e = rich_forest(range(3)).with_beam(4).explain(real_rows()[0])
    text = e.to_text(n_paths=2)
    assert text.count("\npath ") == 2
    assert f"and {len(e.paths) - 2} paths more" in text
    assert len(list(lines_of(e, 1, 1))) < len(list(lines_of(e, 5, 3)))
    assert repr(e).startswith("Explanation(")


@pytest.mark.parametrize(
    ("p", "said"),
    [(1.0, "100 %"), (0.9999, ">99.9 %"), (0.25, "25.0 %"), (1e-9, "<0.1 %"), (0, "0.0 %")],
)
def test_percent(p, said):
    assert percent(p) == said


def test_numbers_and_labels():
    assert (number(1.234), number(-0.001), number(0.0)) == ("+1.23", "-1e-03", "+0.00")
    assert shown("é\t") == "é\\u0009"
    assert len(shown("x" * 99)) == 60
    assert not re.search(r"[^\x20-\x7e]", shown("\x07\x1b"))
