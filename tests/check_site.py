"""Check a built site: links and anchors lead somewhere, and pages load nothing from elsewhere.

``make docs`` runs it after the build: ``python -m tests.check_site build/site``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
ELSEWHERE = re.compile(r"""url\(\s*["']?(?:https?:)?//|@import\s+["'](?:https?:)?//""")


class Page(HTMLParser):
    """What a page links to, what it loads, and where it can be entered."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loads = tag != "link" or given.get("rel") in ("stylesheet", "icon", "preload")
        if tag in LOADED and LOADED[tag] in given and loads:
            self.loaded.append(given[LOADED[tag]])


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with a site."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    if not pages:
        yield f"there are no pages in {site}"
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.loaded:
            if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
                yield f"{name} loads {target}"
            elif not target.startswith("data:") and not _file(path, target).is_file():
                yield f"{name} loads {target}, which is not there"
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            file = _file(path, link) if parts.path else path
            if file.is_dir():
                file /= "index.html"
            anchor = unquote(parts.fragment)
            if not file.is_file():
                yield f"{name} links to {link}, which is not there"
            elif anchor and file in pages and anchor not in pages[file].ids:
                yield f"{name} links to {link}: the page has no such place"
    for style in sorted(site.rglob("*.css")):
        if ELSEWHERE.search(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)} loads from elsewhere"


def _file(page: Path, link: str) -> Path:
    """Return the file that a relative link of a page names."""
    return (page.parent / unquote(urlsplit(link).path)).resolve()


def main() -> None:
    """Print what is wrong; exit with 1 if there is anything."""
    site = Path(sys.argv[1]).resolve()
    found = list(problems(site))
    print("\n".join(found[:50]) or f"{site.name}: all links lead somewhere, nothing is loaded")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
