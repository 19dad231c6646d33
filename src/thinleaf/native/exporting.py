"""A model file in other forms: C source, a folder for the web, JSON, ONNX."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from thinleaf.arrays.replace import replace_file
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.model_file import load
from thinleaf.native.c_array import c_array
from thinleaf.native.tree_json import to_json

Form: TypeAlias = Literal["c", "wasm", "json", "onnx"]

WEB = Path(__file__).with_name("web")
WEB_FILES = ("thinleaf.js", "thinleaf.d.ts", "thinleaf.wasm", "package.json")
PAGE = """<!doctype html>
<meta charset="utf-8">
<title>A thinleaf model</title>
<input id="x" size="60" autofocus>
<pre id="answer"></pre>
<script type="module">
  import { load } from "./thinleaf.js";
  const model = await load("model.thinleaf");
  const x = document.getElementById("x"), answer = document.getElementById("answer");
  x.placeholder = model.takesTexts ? "a text" : `${model.nFeatures} numbers`;
  x.oninput = () => {
    try {
      const input = model.takesTexts ? x.value : x.value.trim().split(/[\\s,]+/).map(Number);
      const top = model.topk(input, 5);
      answer.textContent = top.map((a) => `${a.probability.toFixed(4)}  ${a.label}`).join("\\n");
    } catch (error) {
      answer.textContent = error.message;
    }
  };
</script>
"""


def export(
    model: str | os.PathLike[str],
    to: Form,
    output: str | os.PathLike[str],
    *,
    name: str = "thinleaf_model",
) -> list[Path]:
    """Write a model file in another form.

    Parameters
    ----------
    model : path-like
        A model file; it is checked whole.
    to : {"c", "wasm", "json", "onnx"}
        "c" is a header with the file as an array, for programs that include ``thinleaf.h``. "wasm"
        is a folder with the file, what predicts with it in browsers and Node, and a page.
    output : path-like
        A file; for "wasm", a directory that is empty or does not exist.
    name : str
        Of the array in C.

    Returns
    -------
    written : list of Path

    Raises
    ------
    ModelFileError
        If the model file is damaged.
    ValueError
        If the model has no such form.
    """
    if to not in get_args(Form):
        raise ValueError(f"to must be one of {get_args(Form)}, got {to!r}")
    opened, target = load(model), Path(output)
    if isinstance(opened, FrozenTree):
        opened.check()
    if to == "wasm":
        return _web_folder(Path(model), target)
    if to == "c":
        content = c_array(Path(model).read_bytes(), name).encode()
    elif to == "json":
        content = to_json(opened).encode()
    elif isinstance(opened, FrozenTree):
        content = opened.to_onnx().SerializeToString()
    else:
        raise ValueError("label trees have no ONNX form: their search is no graph of operators")
    with replace_file(target) as temporary:
        temporary.write_bytes(content)
    return [target]


def _web_folder(model: Path, folder: Path) -> list[Path]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already: give the name of a new or empty directory")
    folder.mkdir(exist_ok=True)
    written = [folder / file for file in (*WEB_FILES, "model.thinleaf", "index.html")]
    for file in WEB_FILES:
        shutil.copyfile(WEB / file, folder / file)
    shutil.copyfile(model, folder / "model.thinleaf")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    return written
