"""A browser for pages: Chromium, driven by playwright. Without it, these tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: on Debian, apt install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is in thinleaf[test]"
    )
    with playwright.sync_playwright() as driver:
        # pages come from files of the test: as root, Chromium runs without its sandbox only
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page, and all that it said and asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def answers(self, inputs: list[str]) -> list[list[tuple[str, float]]]:
        """Return labels and probabilities of some inputs, best first."""
        found: list[Any] = self.page.evaluate(
            "inputs => inputs.map((input) => explorer.answer(input).best)", inputs
        )
        return found

    def text(self, selector: str) -> str:
        """Return what an element shows."""
        return str(self.page.inner_text(selector))


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def opener(path: Path, **options: Any) -> Opened:
        options = {"reduced_motion": "reduce", "viewport": {"width": 1200, "height": 800}} | options
        context = browser.new_context(**options)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.set_default_timeout(10_000)
        found.page.goto(path.as_uri())
        found.page.wait_for_selector("html[data-ready]", state="attached")
        return found

    yield opener
    for context in contexts:
        context.close()
