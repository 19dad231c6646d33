"""The documentation is true: code blocks and examples run, and what is named or linked exists."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from thinleaf import SoftmaxTreeClassifier
from thinleaf.estimators import softmax_tree

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
PAGES += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


pages = pytest.mark.parametrize("page", PAGES)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md", "docs/architecture.md"])
def test_code_blocks_run_in_order(page, tmp_path, monkeypatch):
    """Blocks of a page share their names, as they would in one interpreter."""
    monkeypatch.chdir(tmp_path)
    text = read(page)
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    names: dict[str, object] = {"__name__": "docs"}
    for block in blocks:
        before = text.count("\n", 0, block.start(1))  # so that errors name the line of the page
        code = compile("\n" * before + block[1], page, "exec")
        exec(code, names)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")
    assert "test error" in capsys.readouterr().out


@pages
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", read(page)):
        assert ((ROOT / page).parent / target).exists(), target


@pages
def test_code_that_is_named_exists(page):
    """References such as ``tao.sweep:fit_leaf`` resolve, below ``thinleaf``."""
    references = re.findall(r"`([a-z_.]+):([A-Za-z_][\w.]*)`", read(page))
    if page == "docs/fidelity.md":
        assert references
    for module, name in references:
        found = import_module(f"thinleaf.{module}")
        for part in name.split("."):
            found = getattr(found, part)


def test_the_defaults_in_the_readme_are_those_of_the_code():
    parameters = inspect.signature(SoftmaxTreeClassifier).parameters
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (`.+?`) \| (.*) \|$", read("README.md"), re.M)
    checked = set()
    for names, values, text in rows:
        for name, value in zip(names.split(", "), values.split(", ") * 2, strict=False):
            parameter = name.strip("`")
            assert ast.literal_eval(value.strip("`")) == parameters[parameter].default, parameter
            checked.add(parameter)
            if parameter == "router_ridge":
                router, leaf = softmax_tree._ROUTER_RIDGE, softmax_tree._LEAF_RIDGE
                assert f"{router} and {leaf} times" in text
    assert checked >= {"depth", "leaf_classes", "router_ridge", "absent", "beta", "init"}
