"""The explorer: size of its pages, time to open, time a frame takes, and answers beside Python's.

Pages are opened in Chromium (the extra ``test`` has playwright, which drives it). Of bible_verse a
tree is trained on all rows, in 4 minutes, or on ``--verses`` rows of each class. ``--models`` keeps
fitted models in a directory, and takes them from there.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import arguments, table, write
from thinleaf import FrozenTree, SoftmaxTreeClassifier, TextClassifier, load
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.text import TextFeatures

COMMON = {
    "absent": "zero_one",
    "router_l1": 0.001,
    "leaf_l1": 0.001,
    "router_ridge": 0.01,
    "tol": 1e-2,
    "overlap": None,
}
N_TEXTS = 1000
N_FRAMES = 120
LIMIT_MB = 25.0

PANS = """async (n) => {
  const { app } = explorer;
  app.openAll(true);
  app.canvas.zoomAt(%s);
  const frames = [], draws = [];
  let last = 0;
  await new Promise((resolve) => {
    let i = 0;
    const step = (now) => {
      if (last) frames.push(now - last);
      last = now;
      const began = performance.now();
      app.canvas.pan(7 * Math.sin(i / 9), 9 * Math.cos(i / 9));
      app.canvas.draw();
      draws.push(performance.now() - began);
      if (++i < n) requestAnimationFrame(step);
      else resolve();
    };
    requestAnimationFrame(step);
  });
  return [frames, draws];
}"""


def texts_of(directory: Path, name: str, part: str) -> tuple[list[str], list[str]]:
    """Return texts and labels."""
    with gzip.open(directory / name / f"{part}.tsv.gz", "rt", encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t", 1) for line in file]
    return [text for _, text in pairs], [label for label, _ in pairs]


def kept_model(kept: Path | None, name: str, make: Callable[[], Any]) -> Any:
    """Return a model, made now or kept from before."""
    path = None if kept is None else kept / f"{name}.thinleaf"
    if path is not None and path.exists():
        return load(path)
    model = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    return model


def icd10cm(directory: Path, kept: Path | None = None) -> tuple[Any, list[str], list[str]]:
    """Return a tree of 64 leaves, and test texts."""

    def made() -> Any:
        tree = SoftmaxTreeClassifier(
            depth=6, leaf_classes=60, leaf_ridge=0.003, max_sweeps=2, **COMMON
        )
        clf = TextClassifier(tree, features="both", rejection=False, random_state=0)
        return clf.fit(*texts_of(directory, "icd10cm", "train")).freeze()

    return kept_model(kept, "explorer_icd10cm", made), *texts_of(directory, "icd10cm", "test")


def default_icd10cm(directory: Path, kept: Path | None) -> Any:
    """Return what TextClassifier trains by default, with weights of a byte."""

    def made() -> Any:
        clf = TextClassifier(random_state=0)
        return clf.fit(*texts_of(directory, "icd10cm", "train")).freeze()

    return kept_model(kept, "icd10cm", made).quantized("int8")


def bible_verse(
    directory: Path, n_rows: int, kept: Path | None = None
) -> tuple[Any, list[str], list[str]]:
    """Return a tree over all verses, and test texts."""
    name = f"explorer_bible_verse_{n_rows}"
    model = kept_model(kept, name, lambda: _bible_tree(directory, n_rows))
    return model, *texts_of(directory, "bible_verse", "test")


def _bible_tree(directory: Path, n_rows: int) -> Any:
    texts, labels = texts_of(directory, "bible_verse", "train")
    if n_rows:
        seen: Counter[str] = Counter()
        kept = []
        for i, label in enumerate(labels):
            if seen[label] < n_rows:
                seen[label] += 1
                kept.append(i)
        texts, labels = [texts[i] for i in kept], [labels[i] for i in kept]
    tree = SoftmaxTreeClassifier(
        depth=8, leaf_classes=250, leaf_ridge=0.03, max_sweeps=1, n_jobs=-1, **COMMON
    )
    features = TextFeatures("tfidf", max_features=100_000)
    clf = TextClassifier(tree, features=features, rejection=False, random_state=0)
    return clf.fit(texts, labels).freeze()


def large_tree(n_nodes: int = 20_001) -> FrozenTree:
    """Return a tree of random routers, as unbalanced as trained ones are."""
    rng = np.random.default_rng(0)
    children = np.full((n_nodes, 2), -1, dtype=np.int32)
    ends, made = [0], 1
    while made < n_nodes:
        at = ends.pop(int(rng.integers(max(len(ends) // 2, 1))))
        children[at] = made, made + 1
        ends += [made, made + 1]
        made += 2
    order = [0]
    for node in order:
        order.extend(child for child in children[node].tolist() if child >= 0)
    place = np.empty(n_nodes, dtype=np.int32)
    place[order] = np.arange(n_nodes)
    children = np.where(children >= 0, place[children], -1)[order].astype(np.int32)
    n_classes = 5000
    nodes: list[Router | Leaf] = []
    for node in range(n_nodes):
        features = np.sort(rng.choice(200, size=4, replace=False)).astype(np.int32)
        if children[node, 0] >= 0:
            weights = rng.normal(size=4).astype(np.float32)
            nodes.append(Router(features, weights, float(rng.normal())))
        else:
            classes = np.sort(rng.choice(n_classes, size=4, replace=False)).astype(np.int32)
            block = rng.normal(size=(4, 4)).astype(np.float32)
            nodes.append(Leaf(classes, features, block, np.zeros(4, dtype=np.float32)))
    tree = Tree.build(children, nodes, n_features=200, n_classes=n_classes)
    return FrozenTree(pack(tree, Outside.of(tree, None, 1e-3), sparse=False), np.arange(n_classes))


@contextmanager
def chromium() -> Iterator[Callable[[Path], Any]]:
    """Give what opens a page."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise SystemExit("there is no chromium: install it, on Debian by apt install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])

        def opened(path: Path) -> Any:
            page = browser.new_page(viewport={"width": 1400, "height": 860})
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
            return page

        yield opened
        browser.close()


def difference(page: Any, model: Any, texts: list[str]) -> tuple[str, str]:
    """Return the largest difference of five probabilities, and how many labels differ."""
    found = page.evaluate("texts => texts.map((text) => explorer.answer(text).best)", texts)
    labels, p = model.predict_topk(texts, 5)
    answered = [i for i, best in enumerate(found) if best is not None]
    differs = [abs(found[i][j][1] - p[i, j]) for i in answered for j in range(5)]
    n_wrong = sum(found[i][0][0] != str(labels[i, 0]) for i in answered)
    said = f"{max(differs):.1e}, mean {np.mean(differs):.1e}" if differs else "–"
    return said, f"{n_wrong} of {len(answered)} answered"


def row(
    name: str, model: Any, data: tuple[Any, Any] | None, folder: Path, opened: Callable[[Path], Any]
) -> list[Any]:
    """Measure one page."""
    path = folder / f"{name.split()[0]}.html"
    written = model.explore(path, *(data or ()), title=name, max_mb=LIMIT_MB)
    seen, ready, frames = [], [], []
    for _ in range(3):
        page = opened(path)
        # since the file was asked for: reading and parsing are in it
        seen.append(page.evaluate("explorer.timings.drawn + explorer.timings.began") / 1e3)
        ready.append(page.evaluate("explorer.timings.ready + explorer.timings.began") / 1e3)
        page.close()
    page = opened(path)
    for zoom in ("1", "4", "24"):
        between, drawing = page.evaluate(PANS % zoom, N_FRAMES)
        frames.append((np.median(between), np.percentile(between, 95), np.median(drawing)))
    worst = max(frames)
    compared = ("–", "–")
    if data is not None and written.n_answering:
        compared = difference(page, model, data[0][:N_TEXTS])
    n_nodes = page.evaluate("explorer.app.tree.nNodes")
    page.close()
    return [
        name, n_nodes, written.nbytes / 1e6,
        f"{written.n_answering} of {written.n_leaves}{', about' if written.approximate else ''}",
        float(np.median(seen)), float(np.median(ready)), float(worst[0]), float(worst[1]),
        float(worst[2]), *compared,
    ]  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    parser = arguments(__doc__)
    parser.add_argument("--verses", type=int, default=0, help="rows of each verse; 0 is all")
    parser.add_argument("--models", type=Path, help="directory where fitted models are kept")
    parser.add_argument("--skip-bible", action="store_true", help="leave bible_verse out")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, chromium() as opened:
        if (args.data / "icd10cm").exists():
            model, texts, labels = icd10cm(args.data, args.models)
            rows.append(row("icd10cm", model, (texts, labels), Path(folder), opened))
            model = default_icd10cm(args.data, args.models)
            rows.append(row("icd10cm, default, int8", model, (texts, labels), Path(folder), opened))
        rows.append(row("20,001 nodes", large_tree(), None, Path(folder), opened))
        if (args.data / "bible_verse").exists() and not args.skip_bible:
            model, texts, labels = bible_verse(args.data, args.verses, args.models)
            name = f"bible_verse, {args.verses} rows a class" if args.verses else "bible_verse"
            rows.append(row(name, model, (texts, labels), Path(folder), opened))
    heads = [
        "page", "nodes", "MB", "leaves that answer", "tree seen s", "model ready s", "frame ms",
        "95 % ms", "drawing ms", "largest difference of p", "labels that differ",
    ]  # fmt: skip
    write(
        "explorer",
        "The explorer",
        table(heads, rows),
        "Frames: all nodes open, while panning, at the slowest of three zooms; drawing is the part "
        "that the page's script takes. Texts: the first 1,000 of the test. Leaves answer about "
        "so where the model does not fit into 25 MB: a lighter one is in the page, which says so.",
    )


if __name__ == "__main__":
    main()
