"""The documentation is true: code blocks and examples run, and what is named or linked exists."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from matplotlib import pyplot

from benchmarks import _report
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.estimators._base import tao_classifier as tao

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
PAGES += sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "docs").rglob("*.md")
    if "generated" not in path.parts
)
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


BRANDS = [f"{a}{b}" for a in ("Ann", "Bo", "Cy", "Di") for b in ("tek", "sys", "max", "pro", "lux")]
pages = pytest.mark.parametrize("page", PAGES)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/guide.md",
        "docs/architecture.md",
        "docs/auto.md",
        "docs/data.md",
        "docs/explain.md",
        "docs/explorer.md",
        "docs/index.md",
        "docs/quickstart/language_model.md",
        "docs/quickstart/numbers.md",
        "docs/quickstart/stream.md",
        "docs/heads.md",
        "docs/text.md",
        "docs/text_features.md",
        "docs/updates.md",
    ],
)
def test_code_blocks_run_in_order(page, tmp_path, monkeypatch, capsys):
    """Blocks of a page share their names, as they would in one interpreter.

    Where a page shows what they print, lines begin as shown; figures depend on the machine.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("products.csv", "new.csv"):  # a user's
        lines = [f"{brand} {thing},{thing}s" for brand in BRANDS for thing in ("cable", "mouse")]
        (tmp_path / name).write_text("\n".join(["title,category", *lines]) + "\n", "utf-8")
    text = read(page)
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    names: dict[str, object] = {"__name__": "docs"}
    for block in blocks:
        before = text.count("\n", 0, block.start(1))  # so that errors name the line of the page
        code = compile("\n" * before + block[1], page, "exec")
        exec(code, names)
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    if shown:
        printed = capsys.readouterr().out
        assert beginnings(printed) == beginnings(shown)


def beginnings(lines: str) -> list[str]:
    """Return what stands before the colon of each line."""
    return [line.partition(":")[0] for line in lines.splitlines()]


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")
    pyplot.close("all")
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


NAMED_FILE = re.compile(r"`((?:[\w.]+/)*[\w.]+\.(?:py|md|toml|yaml)|(?:[\w.]+/)+)`")


@pages
def test_files_that_are_named_exist(page):
    """Such as ``tao/sweep.py``: a file or a folder of the project whose path ends so."""
    tops = ("benchmarks", "docs", "examples", "src", "tests")
    files = [path for top in tops for path in ((ROOT / top), *(ROOT / top).rglob("*"))]
    files = [path for path in files if not {"__pycache__", "generated"} & set(path.parts)]
    ends = "\n".join(f"/{path.relative_to(ROOT)}{'/' * path.is_dir()}" for path in files)
    ends += "".join(f"\n/{path.name}" for path in ROOT.iterdir()) + "\n"
    for name in NAMED_FILE.findall(read(page)):
        assert f"/{name}\n" in ends, name


def test_the_layers_are_those_that_imports_are_checked_by():
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    _, _, table = read("docs/architecture.md").partition("| layer | what it is |\n|---|---|\n")
    rows = re.findall(r"^\| (`.*?`) \| ", table.partition("\n\n")[0], re.M)
    assert [row.replace("`", "").replace(", ", " | ") for row in rows] == layers


def test_the_table_beside_other_libraries_is_that_of_the_committed_result():
    """Each figure is that of the row of this name, rounded; in bold are models of this library."""
    result = _report.read("peers_icd10cm")
    assert f"`{result.command}`" in read("README.md")
    (part,) = result.tables
    columns = [part.headers.index(name) for name in ("error %", "single µs", "bytes", "train s")]
    measured = {row[0]: [row[column] for column in columns] for row in part.rows}
    _, _, table = read("README.md").partition("| model | error % |")
    rows = [line.split(" | ") for line in table.partition("\n\n")[0].splitlines()[2:]]
    assert len(rows) > 8
    for name, *cells in rows:
        error, single, n_bytes, seconds = measured[name.strip("| *")]
        for cell, value in zip(cells, (error, single, n_bytes / 1e6, seconds), strict=True):
            text = cell.strip(" |").replace(",", "")
            if isinstance(value, str):
                assert text == value
            else:
                digits = len(text.partition(".")[2])
                assert abs(float(text) - value) <= 0.5001 * 10**-digits, (name, text, value)


ESTIMATORS = (AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier)


def defaults_in(text: str) -> dict[str, object]:
    """Return the defaults in the tables of parameters of a text."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (`.+?`) \| .* \|$", text, re.M)
    defaults = {}
    for names, values in rows:
        for name, value in zip(names.split(", "), values.split(", ") * 3, strict=False):
            defaults[name.strip("`")] = ast.literal_eval(value.strip("`"))
    return defaults


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_defaults_in_the_guide_are_those_of_the_code(estimator):
    """A section of parameters is about the classes that its heading names, or about both."""
    parameters = inspect.signature(estimator).parameters
    names = {other.__name__ for other in ESTIMATORS}
    documented: dict[str, object] = {}
    for section in re.split(r"^##+ ", read("docs/guide.md"), flags=re.M):
        heading = section.partition("\n")[0]
        about = set(re.findall(r"`(\w+)`", heading)) & names or names
        if estimator.__name__ in about:
            documented |= defaults_in(section)
    for parameter, default in documented.items():
        assert default == parameters[parameter].default, parameter
    assert documented.keys() >= {"router_ridge", "absent", "beta", "init", "overlap", "max_sweeps"}
    own = {"contraction", "tolerance", "max_rounds"}
    assert documented.keys() >= (own if "contraction" in parameters else {"depth", "leaf_classes"})


@pages
def test_the_ridge_defaults_that_are_quoted_are_those_of_the_code(page):
    text = " ".join(read(page).split())
    quoted = re.findall(r"([\d.]+) and ([\d.]+) times the mean squared length", text)
    assert quoted or page not in ("docs/guide.md", "docs/fidelity.md")
    for router, leaf in quoted:
        assert (float(router), float(leaf)) == (tao.ROUTER_RIDGE, tao.LEAF_RIDGE)
