"""Pages of the site that stand outside ``docs/``: the changelog, and what was measured.

Markdown of the project links to files as they stand, so that it can be read on a forge. The site
has copies of the files outside ``docs/`` in ``docs/generated/``, and links to them lead there.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent

RESULTS = "benchmarks/results"
PLACES = {  # what stands outside, and where the site has it
    "README.md": "docs/index.md",
    "CHANGELOG.md": "docs/generated/changelog.md",
    "CONTRIBUTING.md": "docs/generated/contributing.md",
    "LICENSE": "docs/generated/LICENSE",
    "CITATION.cff": "docs/generated/CITATION.cff",
    "examples": "docs/generated/examples/index.rst",
    RESULTS: "docs/generated/measured/index.md",
}
TARGET = re.compile(r"\]\((?!https?:|mailto:|#|/)([^)#\s]+)")


def place_of(path: str) -> str:
    """Return where the site has a file of the project, both relative to its root."""
    if path in PLACES:
        return PLACES[path]
    if path.startswith(f"{RESULTS}/"):
        return f"docs/generated/measured/{path.removeprefix(f'{RESULTS}/')}"
    if path.startswith("examples/") and path.endswith(".py"):
        return f"docs/generated/{path.removesuffix('.py')}.rst"
    return path


def moved(text: str, source: str, page: str) -> str:
    """Return the Markdown of a file with links as they are on its page of the site."""
    here, there = posixpath.dirname(source), posixpath.dirname(page)

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match[1]))
        return f"]({posixpath.relpath(place_of(target), there)}"

    return TARGET.sub(link, text)


def write(page: str, text: str) -> None:
    """Write a file, unless it is there as it should be: Sphinx reads what is newer."""
    path = ROOT / page
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def copy_file(source: str, page: str) -> None:
    """Write the page of a file."""
    text = (ROOT / source).read_text(encoding="utf-8")
    write(page, moved(text, source, page) if source.endswith(".md") else text)


def copy_in_both_modes(source: str) -> None:
    """Write a figure that follows the system's mode as two that are light and dark."""
    text = (ROOT / source).read_text(encoding="utf-8")
    for mode, media in (("light", "not all"), ("dark", "all")):
        page = f"docs/generated/{Path(source).stem}_{mode}.svg"
        write(page, text.replace("@media (prefers-color-scheme: dark)", f"@media {media}"))


def index_of_results(names: list[str]) -> str:
    """Return a page that lists the pages of results by their titles."""
    lines = ["# What was measured", "", "Each page names the command that made it.", ""]
    toctree = ["```{toctree}", ":hidden:", ""]
    for name in names:
        first = (ROOT / RESULTS / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0]
        lines.append(f"- [{first.removeprefix('# ')}]({name}.md) (`{name}`)")
        toctree.append(name)
    return "\n".join([*lines, "", *toctree, "```", ""])


def copy_all(*_: Any) -> None:
    """Bring ``docs/generated/`` up to date."""
    for source in ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "CITATION.cff"):
        copy_file(source, PLACES[source])
    for path in sorted((ROOT / "examples").glob("*.*")):
        # Examples run where they stand, and write files there.
        copy_file(f"examples/{path.name}", f"docs/generated/example_sources/{path.name}")
    results = sorted(path for path in (ROOT / RESULTS).iterdir() if path.suffix in (".md", ".svg"))
    for path in results:
        source = f"{RESULTS}/{path.name}"
        copy_file(source, place_of(source))
    names = [path.stem for path in results if path.suffix == ".md"]
    write("docs/generated/measured/index.md", index_of_results(names))
    copy_in_both_modes("docs/tree.svg")


def move_links(app: Any, docname: str, source: list[str]) -> None:
    """Let links out of ``docs/`` lead to the copies."""
    path = Path(app.env.doc2path(docname)).relative_to(ROOT).as_posix()
    if path.endswith(".md") and not path.startswith("docs/generated/"):
        source[0] = moved(source[0], path, path)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("config-inited", copy_all)
    app.connect("source-read", move_links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
