"""Pages in a real browser: they answer as Python does, and do what people do with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.estimator_cases import problem, quick
from tests.narrow_cases import narrow_model
from tests.text_cases import TOPICS, made_texts
from thinleaf import (
    FlatSoftmaxClassifier,
    LabelTreeClassifier,
    LOMTreeClassifier,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
    TextClassifier,
)
from thinleaf.datasets import load_icd10cm

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"quotes' & &amp; \u2028 {{blocks}}",
    "\u202egnp.exe\u2066",
    "long " * 2000,
    "__proto__",
]
ODD_TEXTS = [
    "", "   ", "unheard words", "ΟΔΟΣ ΣΑΣ Σ", "İstanbul card", "ẞtraße CARD", "a\u00a0pin\u2003app",
    "🙂 card \U0001d4d0", "card " * 300, "it's a co-op_1", "\u0301card", "日本 card", "ca\u00adrd",
]  # fmt: skip


def many_classes(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts whose label is the first of their words that is of a topic."""
    texts = made_texts(n, seed)[0]
    known = set(" ".join(TOPICS.values()).split())
    return texts, [next(word for word in text.split() if word in known) for text in texts]


def texts_model(features: str = "both") -> tuple[Any, list[str], list[str]]:
    texts, labels = many_classes(320)
    tree = quick(depth=3, leaf_classes=8, leaf_ridge=0.01, router_l1=0.001, router_ridge=0.01)
    clf = TextClassifier(tree, features=features, rejection=False, random_state=0)
    return clf.fit(texts, labels).freeze(), texts, labels


def assert_same(opened: Any, inputs: list[str], model: Any, samples: Any) -> None:
    found = opened.answers(inputs)
    n = len(found[0])
    labels, p = model.predict_topk(samples, n)
    top = np.array([[value for _, value in best] for best in found])
    np.testing.assert_allclose(top, p, rtol=0, atol=1e-5)
    clear = p[:, 0] - p[:, 1] > 2e-5
    ours = np.array([best[0][0] for best in found])
    assert np.all((ours == labels[:, 0].astype(str))[clear])
    assert clear.mean() > 0.5


def as_text(X: np.ndarray) -> list[str]:
    return [", ".join(f"{value:.9g}" for value in row) for row in X.tolist()]


@pytest.mark.parametrize("features", ["words", "chars", "both", "hashing"])
def test_texts_are_answered_as_in_python(features, opened, tmp_path):
    model, texts, labels = texts_model(features)
    for beam in (1, 3):
        model = model.with_beam(beam, temperature=1.5)
        model.explore(tmp_path / "tree.html", texts, labels)
        page = opened(tmp_path / "tree.html")
        more = made_texts(100, seed=5)[0] + ODD_TEXTS
        assert_same(page, texts + more, model, texts + more)
        assert page.said == []


def test_a_thousand_diagnoses_that_are_typed_get_the_answers_of_python(opened, tmp_path):
    data = load_icd10cm()
    some = np.random.default_rng(0).permutation(len(data.texts_train))[:4000].tolist()
    tree = quick(depth=6, leaf_classes=60, leaf_ridge=0.01, router_l1=0.001, max_sweeps=1)
    clf = TextClassifier(tree, features="both", rejection=False, random_state=0)
    clf.fit([data.texts_train[i] for i in some], [data.y_train[i] for i in some])
    model, texts = clf.freeze(), data.texts_test[:1000]
    assert model.n_leaves == 64
    model.explore(tmp_path / "tree.html")
    page = opened(tmp_path / "tree.html")
    found = page.page.evaluate(
        """texts => {
          const { answers, tree } = explorer.app;
          const [side] = answers.sides, [field] = side.inputs;
          return texts.map((text) => {
            field.value = text;
            field.dispatchEvent(new Event("input"));
            answers.update(); // without the wait for more letters
            const shown = document.querySelector(".best .first .data").textContent;
            return [shown, side.answer.best.map(({ id, p }) => [tree.labels[id], p])];
          });
        }""",
        texts,
    )
    labels, p = model.predict_topk(texts, 10)
    assert [shown for shown, _ in found] == labels[:, 0].tolist()
    top = np.array([[value for _, value in best] for _, best in found])
    np.testing.assert_allclose(top, p, rtol=0, atol=1e-5)
    assert page.said == []


def test_narrow_models_are_answered_as_in_python(opened, tmp_path):
    model, texts, labels = texts_model()
    model = narrow_model(model, "int8").with_beam(2)
    model.explore(tmp_path / "tree.html", texts, labels)
    page = opened(tmp_path / "tree.html")
    assert_same(page, texts + ODD_TEXTS, model, texts + ODD_TEXTS)
    assert page.said == []


FAMILIES = {
    "tree": lambda X, y: quick(depth=3).fit(X, y).freeze(),
    "sparse": lambda X, y: quick(depth=3).fit(sp.csr_matrix(X), y).freeze(),
    "beam": lambda X, y: quick(depth=3).fit(X, y).freeze(beam=4),
    "int8": lambda X, y: quick(depth=3).fit(X, y).freeze(weights="int8"),
    "float16": lambda X, y: quick(depth=3).fit(X, y).freeze(weights="float16"),
    "forest": lambda X, y: SoftmaxForestClassifier(quick(), n_estimators=3, random_state=0).fit(
        X, y
    ),
    "one leaf": lambda X, y: FlatSoftmaxClassifier().fit(X, y),
    "recall tree": lambda X, y: RecallTreeClassifier(random_state=0).fit(X, y),
    "LOMTree": lambda X, y: LOMTreeClassifier(random_state=0).fit(X, y),
    "label tree": lambda X, y: LabelTreeClassifier(dim=6, arity=3, epochs=3, random_state=0).fit(
        X, y
    ),
    "binary label tree": lambda X, y: LabelTreeClassifier(
        dim=6, arity=2, epochs=3, random_state=0
    ).fit(X, y),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_answered_as_in_python(family, opened, tmp_path):
    X, y = problem(0, n_classes=8, n_rows=240, spread=1.0)
    X = X.astype(np.float32)
    model = FAMILIES[family](X, y)
    model.explore(tmp_path / "tree.html", X, y)
    page = opened(tmp_path / "tree.html")
    rows = X[:120]
    assert_same(page, as_text(rows), model, rows)
    pairs = [" ".join(f"{i}:{v:.9g}" for i, v in enumerate(row)) for row in rows[:10].tolist()]
    assert page.answers(pairs) == page.answers(as_text(rows[:10]))
    assert page.said == []


def test_texts_of_a_label_tree_are_answered_as_in_python(opened, tmp_path):
    texts, labels = made_texts(200)
    clf = LabelTreeClassifier(dim=6, arity=2, epochs=5, ngrams=2, random_state=0).fit(texts, labels)
    clf.explore(tmp_path / "tree.html", texts, labels)
    page = opened(tmp_path / "tree.html")
    assert_same(page, texts + ODD_TEXTS[2:], clf, texts + ODD_TEXTS[2:])
    # what pushes a text along is what Python says, by its words
    found = page.page.evaluate(
        """text => explorer.app.answer([text]).paths[0].steps.map(({ parts }) =>
        parts.map(({ feature, value }) => [explorer.app.reader.name(feature), value]))""",
        texts[0],
    )
    for step, parts in zip(clf.explain(texts[0]).path.steps, found, strict=True):
        assert len(parts) > 1
        expected = {part.name: part.amount for part in step.margin.contributions}
        assert dict(parts) == pytest.approx(expected, abs=1e-4)


def test_columns_are_answered_as_in_python(opened, tmp_path):
    texts, labels = made_texts(160)
    numbers = np.arange(160) % 7 * 1.5
    table = {"title": texts, "body": texts[::-1], "age": numbers}
    clf = TextClassifier(
        quick(), features="both", text_columns=["title", "body"], numeric_columns="age",
        rejection=False, random_state=0,
    ).fit(table, labels)  # fmt: skip
    clf.explore(tmp_path / "tree.html", table, labels)
    page = opened(tmp_path / "tree.html").page
    expected = clf.predict_proba(table)
    for i in range(30):
        sample = [table["title"][i], table["body"][i], str(numbers[i])]
        found = dict(page.evaluate("fields => explorer.answer(...fields).best", sample))
        for label, p in zip(clf.classes_, expected[i], strict=True):
            assert found[label] == pytest.approx(p, abs=1e-5)
    # examples are rows of the table: they are shown by column, and walk
    page.evaluate("explorer.app.select(0, true)")
    example = page.locator(".examples li").first
    assert example.locator("dt").all_inner_texts() == ["title", "body", "age"]
    cells = example.locator("dd").all_inner_texts()
    example.get_by_text("walk").click()
    assert [page.input_value(f"#in-A-{i}") for i in range(3)] == cells
    row = {"title": [cells[0]], "body": [cells[1]], "age": [float(cells[2])]}
    assert page.inner_text(".best .first .data") == clf.predict(row)[0]
    page.fill("#in-A-0", texts[0])
    page.fill("#in-A-2", "old")
    page.wait_for_function("() => document.querySelector('.error').textContent.includes('age')")


@pytest.fixture(scope="module")
def typed(tmp_path_factory) -> tuple[Any, list[str], list[str], Path]:
    model, texts, labels = texts_model()
    path = tmp_path_factory.mktemp("explorer") / "tree.html"
    model.explore(path, texts, labels, title="A tree of topics")
    return model, texts, labels, path


def test_a_page_says_nothing_to_the_console_and_asks_for_nothing(typed, opened):
    page = opened(typed[-1])
    page.page.fill("#in-A-0", "my card was stolen")
    page.page.wait_for_selector(".best li")
    assert page.said == []
    assert page.requests == [typed[-1].as_uri()]
    assert page.page.title() == "A tree of topics"


def test_a_typed_text_walks_the_tree(typed, opened):
    model, texts, _, path = typed
    page = opened(path)
    page.page.fill("#in-A-0", texts[0])
    page.page.wait_for_selector(".best li")
    assert page.text(".best .first .data") == model.predict_one(texts[0])
    (label, p), *_ = model.predict_topk_one(texts[0])
    assert f"{100 * p:.1f} %" in page.text(".best .first")
    assert page.text("#live").startswith(f"{label}, ")
    nodes = page.page.evaluate("explorer.app.canvas.walks[0].paths[0].nodes")
    assert nodes[0] == 0
    assert nodes[-1] == int(model.apply([texts[0]])[0])
    assert page.page.locator(".steps > li").count() == len(nodes)


def test_two_texts_are_compared(typed, opened):
    page = opened(typed[-1])
    page.page.fill("#in-A-0", "card stolen pin")
    page.page.check("#compare")
    page.page.fill("#in-B-0", "flight hotel visa")
    page.page.wait_for_selector(".compared")
    assert re.search("part at|both end in", page.text(".compared"))
    assert page.page.locator(".result").count() == 2
    assert len(page.page.evaluate("explorer.app.canvas.walks")) == 2


def test_search_finds_classes_features_and_texts(typed, opened):
    page = opened(typed[-1])
    for query, kind in (("visa", "class"), ("mortgage", "feature"), ("please", "example")):
        page.page.fill("#search", query)
        found = page.page.locator(f"#found li:has(.kind.{kind})").first
        found.wait_for()
        assert query in found.inner_text()
        found.click()
        assert page.page.locator("#node h2").inner_text()
        assert page.page.locator("#node").is_visible()
    page.page.fill("#search", "nothing like it")
    page.page.wait_for_selector("#found .empty")
    page.page.press("#search", "Escape")
    assert page.page.locator("#found").is_hidden()


def test_a_click_on_a_node_shows_it(typed, opened):
    model, texts, labels, path = typed
    page = opened(path)
    box = page.page.locator("#canvas").bounding_box()
    x, y = page.page.evaluate("[explorer.app.canvas.screenX(0), explorer.app.canvas.screenY(0)]")
    page.page.mouse.click(box["x"] + x, box["y"] + y)
    assert page.text("#node h2") == "root"
    shown = page.text("#node")
    wrong = np.mean(model.predict(texts) != np.array(labels))
    assert f"{len(texts)}" in shown
    assert f"error\n{100 * wrong:.0f}" in shown
    assert "Features that decide" in shown
    assert f"{model.n_classes} classes" in shown
    # the same node again closes it
    before = page.page.evaluate("explorer.app.layout.shown.length")
    page.page.mouse.click(box["x"] + x, box["y"] + y)
    assert page.page.evaluate("explorer.app.layout.shown.length") == 1 < before


def test_classes_of_a_leaf_have_their_share(typed, opened):
    model, texts, labels, path = typed
    page = opened(path).page
    leaf = int(np.bincount(model.apply(texts)).argmax())
    here = model.apply(texts) == leaf
    names, counts = np.unique(np.array(labels)[here], return_counts=True)
    page.evaluate("node => explorer.app.select(node, true)", leaf)
    first = page.locator(".classes .tag").first
    assert first.locator(".data").inner_text() in names[counts == counts.max()]
    share = f"{100 * counts.max() / here.sum():.0f} %"
    assert first.locator(".share").inner_text().strip() == share
    assert share in page.evaluate("node => explorer.app.tree.summary(node)", leaf)


def test_an_example_is_shown_and_walks(typed, opened):
    page = opened(typed[-1])
    page.page.evaluate("explorer.app.select(explorer.app.tree.leafNode[0], true)")
    example = page.page.locator(".examples li").first
    text = example.locator("p").first.inner_text()
    assert text in typed[1]
    example.get_by_text("walk").click()
    assert page.page.input_value("#in-A-0") == text
    assert page.page.locator("#ask").is_visible()


def test_keys_move_in_the_picture_and_in_the_outline(typed, opened):
    page = opened(typed[-1]).page
    page.focus("#canvas")
    selected = "explorer.app.canvas.selected"
    assert page.evaluate(selected) == 0
    page.keyboard.press("ArrowRight")
    assert page.evaluate(selected) == 1
    assert "depth 1" in page.inner_text("#live")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(selected) == 2
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(selected) == 0
    page.keyboard.press("Enter")
    assert page.evaluate("explorer.app.layout.open[0]") == 0
    zoom = page.evaluate("explorer.app.canvas.view.zoom")
    page.keyboard.press("+")
    assert page.evaluate("explorer.app.canvas.view.zoom") > zoom
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.click("#outline-tab")
    page.focus('.tree [tabindex="0"]')
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate(selected) > 0
    tree = page.get_by_role("tree", name="Nodes of the tree")
    assert tree.get_by_role("treeitem").count() >= 3
    assert page.locator('[role=treeitem][aria-selected="true"]').count() == 1


def test_controls_have_names(typed, opened):
    page = opened(typed[-1]).page
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, input, textarea, select, canvas")].filter((e) =>
        !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).length"""
    )
    assert nameless == 0
    assert page.get_attribute("#live", "aria-live") == "polite"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes(scheme, typed, opened):
    page = opened(typed[-1], color_scheme=scheme).page

    def background() -> int:
        found = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", found)[:3])

    def pixel() -> int:
        return sum(
            page.evaluate(
                "[...document.getElementById('canvas').getContext('2d').getImageData(2, 300, 1, 1)"
                ".data].slice(0, 3)"
            )
        )

    dark = scheme == "dark"
    assert (background() < 200) is dark
    assert (pixel() < 200) is dark
    page.click("#theme")
    assert (background() < 200) is not dark
    assert (pixel() < 200) is not dark


def test_colours_follow_the_choice(typed, opened):
    page = opened(typed[-1]).page
    shades = {}
    for by in ("error", "size", "depth"):
        page.select_option("#colour", by)
        shades[by] = page.evaluate("explorer.app.canvas.colour(0)")
        assert by in page.inner_text("#legend")
    assert len(set(shades.values())) == 3


def test_hostile_strings_show_as_text(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, len(HOSTILE))).astype(np.float32)
    y = np.array(HOSTILE, dtype=object)[X.argmax(axis=1)]
    clf = SoftmaxTreeClassifier(depth=2, random_state=0).fit(X, y)
    model = clf.freeze().replaced(feature_names=HOSTILE)
    model.explore(tmp_path / "tree.html", X, y, title=HOSTILE[0])
    page = opened(tmp_path / "tree.html")
    assert page.text("h1") == HOSTILE[0]
    assert page.page.title() == HOSTILE[0]
    shown = set()
    page.page.evaluate("explorer.app.openAll(true)")
    for node in range(page.page.evaluate("explorer.app.tree.nNodes")):
        page.page.evaluate("node => explorer.app.select(node, true, 'node')", node)
        shown |= set(page.page.locator("#node .data").all_text_contents())
    page.page.evaluate("explorer.app.showTab('ask')")
    for row in as_text(X[:30]):
        page.page.fill("#in-A-0", row)
        page.page.wait_for_selector(".best li")
        shown |= set(page.page.locator("#ask .data").all_text_contents())
    page.page.fill("#search", "<")
    shown |= set(page.page.locator("#found .data").all_text_contents())
    assert set(HOSTILE) - {HOSTILE[4]} <= shown
    assert any(text.startswith("long long") and len(text) <= 400 for text in shown)
    assert page.said == []
    assert page.requests == [(tmp_path / "tree.html").as_uri()]
    assert page.page.locator("img, iframe").count() == 0
    isolated = "getComputedStyle(document.querySelector('bdi')).unicodeBidi"
    assert page.page.evaluate(isolated) == "isolate"


def test_a_forest_switches_trees(opened, tmp_path):
    X, y = problem(0, n_classes=8, n_rows=240, spread=1.0)
    clf = SoftmaxForestClassifier(quick(), n_estimators=3, random_state=0).fit(X, y)
    clf.explore(tmp_path / "tree.html", X, y)
    page = opened(tmp_path / "tree.html")
    page.page.fill("#in-A-0", as_text(X[:1])[0])
    page.page.wait_for_selector(".path")
    assert page.page.locator(".path").count() == 3
    page.page.select_option("#tree-switch", "2")
    assert page.page.evaluate("explorer.app.layout.root") == 2
    assert "tree 3" in page.text('.path[aria-pressed="true"]')
    page.page.locator(".path").first.click()
    assert page.page.evaluate("explorer.app.layout.root") == 0


def test_a_page_that_holds_some_leaves_says_so(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 300)).astype(np.float32)
    y = (X[:, :16] > 1.0).argmax(axis=1)
    model = quick(depth=3, leaf_classes=16).fit(X, y).freeze()
    whole = model.explore(tmp_path / "whole.html", X, y)
    limit = whole.nbytes / 1e6 - 0.02
    part = model.explore(tmp_path / "part.html", X, y, max_mb=limit, exact=True)
    assert not part.approximate
    assert 0 < part.n_answering < part.n_leaves == whole.n_answering
    assert part.nbytes <= 1e6 * limit
    page = opened(tmp_path / "part.html")
    assert "leaves fit into the page" in page.text("#notes")
    rows = as_text(X[:100])
    found, expected = page.answers(rows), model.predict_topk(X[:100], 1)[1][:, 0]
    answered = [i for i, best in enumerate(found) if best is not None]
    assert 0 < len(answered) < len(rows)
    for i in answered:
        assert found[i][0][1] == pytest.approx(expected[i], abs=1e-5)
    page.page.fill("#in-A-0", rows[next(i for i, best in enumerate(found) if best is None)])
    page.page.wait_for_selector(".steps")
    assert "not in this page" in page.text("#ask")


def test_a_page_with_a_lighter_model_says_so(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 300)).astype(np.float32)
    y = (X[:, :16] > 1.0).argmax(axis=1)
    model = quick(depth=3, leaf_classes=16).fit(X, y).freeze()
    limit = model.explore(tmp_path / "whole.html", X, y).nbytes / 1e6 - 0.02
    written = model.explore(tmp_path / "light.html", X, y, max_mb=limit)
    assert written.approximate
    assert written.n_answering == written.n_leaves
    assert written.nbytes <= 1e6 * limit
    page = opened(tmp_path / "light.html")
    assert "answers are approximate" in page.text("#notes")
    assert "of 400 rows of the data" in page.text("#notes").lower()
    found = page.answers(as_text(X[:100]))
    labels, p = model.predict_topk(X[:100], 1)
    assert (
        np.mean([best[0][0] == str(label) for best, label in zip(found, labels[:, 0], strict=True)])
        > 0.95
    )
    assert np.mean(np.abs([best[0][1] for best in found] - p[:, 0])) < 0.02
    page.page.fill("#in-A-0", as_text(X[:1])[0])
    page.page.wait_for_selector(".best li")
    assert "lighter model" in page.text("#ask")
    assert "about" in page.text("#live")
    assert page.said == []


def test_a_page_without_a_model_says_so(typed, opened, tmp_path):
    model, texts, labels, _ = typed
    page = model.explore(tmp_path / "small.html", texts, labels, max_mb=0.12)
    assert page.n_answering == 0
    found = opened(tmp_path / "small.html")
    assert "nothing can be typed" in found.text("#notes")
    assert "Nothing can be typed here" in found.text("#ask")
    assert found.page.locator("textarea").count() == 0
    found.page.evaluate("explorer.app.select(0, true)")
    assert "Features that decide" in found.text("#node")
    assert found.said == []


def test_a_wrong_row_is_refused_with_words(opened, tmp_path):
    X, y = problem(0, n_classes=4, n_rows=80)
    quick().fit(X, y).explore(tmp_path / "tree.html")
    page = opened(tmp_path / "tree.html").page
    for wrong, said in (
        ("1, 2", "numbers, not 2"),
        ("a:1", "no feature a"),
        ("0:x", "x is no number"),
    ):
        page.fill("#in-A-0", wrong)
        page.wait_for_function(
            "said => document.querySelector('.error').textContent.includes(said)", arg=said
        )


def test_narrow_windows_and_print(typed, opened):
    page = opened(typed[-1], viewport={"width": 380, "height": 700}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.emulate_media(media="print")
    assert page.locator("#search").is_hidden()
    assert page.locator("#canvas").is_visible()
