"""Models without Python: µs per prediction in C, WebAssembly and ONNX Runtime, and cold starts.

Trees of one path on Letter (dense rows) and icd10cm (rows and raw texts). C is compiled here with
``-O3 -march=native``; its labels must be Python's, on all test rows. Parts whose tools are missing
(gcc, node, Chromium, onnx, the extension) are left out, and said so. ``--models`` is a directory in
which trained models are kept between runs; a ``bible_verse.thinleaf`` in it is asked with a beam.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

import numpy as np
import scipy.sparse as sp

import thinleaf
from benchmarks._data import available, load, read_tsv
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import best_of, single_latency
from thinleaf.model import model_file
from thinleaf.model.file_parts import Section
from thinleaf.native.loading import compiled_model
from thinleaf.text import TextFeatures

HERE = Path(__file__).parent
NATIVE = Path(thinleaf.__file__).parent / "native"
SETS = ("letter", "icd10cm")
DENSE, PAIRS, TEXT = 1, 2, 4
ROUNDS = 31


def trained(folder: Path, data: Path, name: str) -> Path:
    """Return the file of a tree of one path, trained if it is not there."""
    path = folder / f"{name}.thinleaf"
    if path.exists():
        return path
    clf = AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=-1)
    if name == "letter":
        own = load(data, name)
        clf.fit(own.X_train, own.y_train).freeze().save(path)
        return path
    labels, texts = read_tsv(data / name / "train.tsv.gz")
    features = TextFeatures()
    model = clf.fit(features.fit_transform(texts), labels).freeze()
    model.with_sections(text=Section(*features.to_arrays())).save(path)
    return path


def inputs_of(data: Path, name: str) -> tuple[Any, list[str]]:
    """Return test rows, and test texts if there are any."""
    if name == "letter":
        return load(data, name).X_test, []
    return None, read_tsv(data / name / "test.tsv.gz")[1]


def written(path: Path, kind: int, X: Any) -> Path:
    """Write inputs as ``native_loop.c`` reads them."""
    if kind == DENSE:
        X = np.ascontiguousarray(X, dtype=np.float32)
        ptr, parts = np.arange(len(X) + 1, dtype=np.int64) * X.shape[1], [X]
    elif kind == PAIRS:
        rows = sp.csr_matrix(X)
        ptr, parts = rows.indptr, [rows.indices.astype("i4"), rows.data.astype("f4")]
    else:
        encoded = [text.encode() for text in X]
        ptr, parts = np.cumsum([0, *map(len, encoded)]), [np.frombuffer(b"".join(encoded), "u1")]
    head = np.array([kind, len(ptr) - 1], dtype=np.int64)
    path.write_bytes(b"".join(a.tobytes() for a in (head, np.asarray(ptr, np.int64), *parts)))
    return path


def c_program(folder: Path) -> Path | None:
    """Return the compiled loop, or None."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    flags = ["-std=c99", "-O3", "-march=native", "-ffp-contract=off", f"-I{NATIVE}"]
    target = folder / "native_loop"
    subprocess.run(
        [compiler, *flags, str(HERE / "native_loop.c"), "-o", str(target), "-lm"], check=True
    )
    return target


def in_c(program: Path, folder: Path, model: Path, kind: int, X: Any) -> tuple[float, np.ndarray]:
    """Return median µs of a prediction in a loop, and the ids."""
    inputs, ids = written(folder / "inputs", kind, X), folder / "ids"
    done = subprocess.run(
        [str(program), str(model), str(inputs), str(ids), str(ROUNDS)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(done.stdout.split()[0]) / 1000, np.fromfile(ids, dtype=np.int32)


def in_node(folder: Path, model: Path, kind: int, X: Any) -> tuple[float, list[int]] | None:
    """Return the same of WebAssembly in Node, or None."""
    node = shutil.which("node")
    if node is None:
        return None
    inputs = written(folder / "inputs", kind, X)
    done = subprocess.run(
        [node, str(HERE / "native_loop.mjs"), str(NATIVE / "web"), str(model), str(inputs)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    return found["us"], found["ids"]


_PAGE = """<script type="module">
import { loop } from "/loop.mjs";
import { load } from "/web/thinleaf.js";
const of = async (path) => (await fetch(path)).arrayBuffer();
const found = await loop(load, new Uint8Array(await of("/model")), await of("/inputs"));
await fetch("/found", { method: "POST", body: JSON.stringify(found) });
</script>"""
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm"}


def in_chromium(folder: Path, model: Path, kind: int, X: Any) -> tuple[float, list[int]] | None:
    """Return the same of Chromium, or None."""
    browser = shutil.which("chromium")
    if browser is None:
        return None
    files = {"/loop.mjs": HERE / "native_loop.mjs", "/model": model}
    files |= {f"/web/{path.name}": path for path in (NATIVE / "web").iterdir()}
    files["/inputs"] = written(folder / "inputs", kind, X)
    found: Queue[str] = Queue()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = files.get(self.path)
            self.send_response(404 if path is None and self.path != "/" else 200)
            self.send_header("Content-Type", _TYPES.get(Path(self.path).suffix, "text/html"))
            self.end_headers()
            self.wfile.write(_PAGE.encode() if path is None else path.read_bytes())

        def do_POST(self) -> None:
            found.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu"]
        process = subprocess.Popen(
            [browser, *options, f"--user-data-dir={folder / 'browser'}",
             f"http://127.0.0.1:{server.server_port}/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            answer = json.loads(found.get(timeout=90))
        except Empty:
            return None
        finally:
            process.kill()
            process.wait()
            server.shutdown()
    return answer["us"], answer["ids"]


def roofline(frozen: Any, X: Any) -> float:
    """Return the µs that memory alone takes for the weights of a prediction: see latency.py."""
    from thinleaf.model.cost import frozen_mean_flops

    array = np.ones(max(frozen.nbytes // 4, 2**14), dtype=np.float32)
    bandwidth = array.nbytes / best_of(50, lambda: array.sum())
    return 4e6 * float(frozen_mean_flops(frozen, X)) / bandwidth


_FIRST = """
import sys, time
began = time.perf_counter()
import thinleaf
model = thinleaf.load(sys.argv[1])
label = model.predict_one(sys.argv[2]) if len(sys.argv) > 2 else model.predict_one([0.0] * 16)
ms = 1e3 * (time.perf_counter() - began)
with open("/proc/self/status") as status:  # ru_maxrss may be that of the process that started it
    peak = next(line for line in status if line.startswith("VmHWM"))
print(ms, int(peak.split()[1]) / 1024)
"""


def first_answers(path: Path, text: str | None) -> list[list[Any]]:
    """Return ms of load and first prediction in a fresh process, MB, ms of a line at a shell."""
    out = []
    for what in ["numba"] + ["extension"] * (compiled_model(path) is not None):
        environment = os.environ | {"THINLEAF_NATIVE": str(int(what == "extension"))}
        command = [sys.executable, "-c", _FIRST, str(path), *([text] if text else [])]
        found = [
            subprocess.run(
                command, check=True, capture_output=True, text=True, env=environment
            ).stdout.split()
            for _ in range(7)
        ]
        line = [min(float(ms) for ms, _ in found), min(float(mb) for _, mb in found)]
        out.append([what, *line, shell_line(path, text, environment)])
    return out


def shell_line(path: Path, text: str | None, environment: dict[str, str]) -> float | str:
    """Return ms of ``thinleaf predict`` of one line, from start to end of the process."""
    if text is None:
        return ""
    command = [sys.executable, "-m", "thinleaf", "predict", str(path)]
    took = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run(
            command, input=f"{text}\n".encode(), check=True, capture_output=True, env=environment
        )
        took.append(1e3 * (time.perf_counter() - began))
    return min(took)


def one_at_a_time(model: Any, inputs: list[Any]) -> float | str:
    """Return µs of ``predict_one``, or why there are none."""
    return "not built" if model is None else single_latency(model.predict_one, inputs).median


def beams(data: Path, models: Path, folder: Path) -> list[Any]:
    """Return µs of texts that take 16 paths, in numba and in the extension."""
    out = []
    for name in ("icd10cm", "bible_verse"):
        path = models / f"{name}.thinleaf"
        if not path.exists() or not available(data, name):
            continue
        model_file.load(path).with_beam(16, temperature=4.0).save(folder / "beam.thinleaf")
        python = model_file.load(folder / "beam.thinleaf")
        extension = compiled_model(folder / "beam.thinleaf")
        texts = read_tsv(data / name / "test.tsv.gz")[1][:1000]
        one = [(text,) for text in texts]
        equal = (
            "" if extension is None else np.mean(extension.predict(texts) == python.predict(texts))
        )
        out.append([name, one_at_a_time(python, one), one_at_a_time(extension, one), equal])
    return out


def in_onnx(model: Any, X: np.ndarray) -> tuple[float, np.ndarray, int] | None:
    """Return µs of a row alone in ONNX Runtime on one thread, the labels, and bytes; or None."""
    try:
        import onnxruntime

        made = model.to_onnx(probabilities=False).SerializeToString()
    except (ImportError, ValueError) as error:
        print(f"ONNX is left out: {error}")
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(made, options)
    some = [(np.ascontiguousarray(row[None], dtype=np.float32),) for row in X[:500]]
    single = single_latency(lambda row: session.run(None, {"X": row}), some)
    labels = [session.run(None, {"X": X[at : at + 256]})[0] for at in range(0, len(X), 256)]
    return single.median, np.concatenate(labels), len(made)


def figures(name: str, data: Path, models: Path, folder: Path, program: Path | None) -> list[Any]:
    """Return a row for each kind of input of a set."""
    path = trained(models, data, name)
    model: Any = model_file.load(path)
    extension = compiled_model(path)
    X, texts = inputs_of(data, name)
    if texts:
        X = model.input.features.transform(texts)
    labels = model.predict(X)
    cases = [("rows", DENSE if name == "letter" else PAIRS, X)]
    cases += [("texts", TEXT, texts)] if texts else []
    out = []
    for what, kind, asked in cases:
        one = [(x,) for x in texts] if kind == TEXT else [(x,) for x in X]
        if kind == PAIRS:
            one = [(row.indices, row.data) for row in X[:2000]]
        line: list[Any] = [name, what, one_at_a_time(model, one[:2000])]
        line.append(one_at_a_time(extension, one[:2000]))
        if program is None:
            line += ["no gcc", ""]
        else:
            us, ids = in_c(program, folder, path, kind, asked)
            line += [us, 100 * float(np.mean(model.labels[ids] == labels))]
        for where in (in_node, in_chromium):
            found = where(folder, path, kind, asked)
            same = 100 * float(np.mean(model.labels[found[1]] == labels)) if found else ""
            line += [found[0], same] if found else ["not there", ""]
        share = 100 * roofline(model, X) / line[4] if kind != TEXT and program else ""
        out.append([*line, share])
    return out


def onnx_figures(name: str, data: Path, models: Path) -> list[Any]:
    """Return what an ONNX graph takes, in µs and bytes."""
    path = trained(models, data, name)
    model: Any = model_file.load(path)
    X, texts = inputs_of(data, name)
    if texts:
        X = model.input.features.transform(texts[:2000]).toarray()
    X = np.asarray(X, dtype=np.float32)
    found = in_onnx(model, X)
    if found is None:
        return [name, "left out", "", "", path.stat().st_size]
    us, labels, size = found
    equal = 100 * float(np.mean(labels == model.predict(X)))
    return [name, us, equal, size, path.stat().st_size]


def main() -> None:
    """Measure what is there."""
    parser = arguments(__doc__)
    parser.add_argument("--models", type=Path, help="directory that trained models are kept in")
    options = parser.parse_args()
    sets = [name for name in SETS if available(options.data, name)]
    rows, graphs, first = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = options.models or folder
        models.mkdir(exist_ok=True)
        program = c_program(folder)
        for own in sets:
            rows += figures(own, options.data, models, folder, program)
            graphs.append(onnx_figures(own, options.data, models))
            text = None if own == "letter" else "fracture of left arm"
            path = trained(models, options.data, own)
            megabytes = path.stat().st_size / 2**20
            first += [[own, *line, megabytes] for line in first_answers(path, text)]
        several = beams(options.data, models, folder)
    sizes = {
        path.name: path.stat().st_size
        for path in sorted((NATIVE / "web").iterdir())
        if path.suffix != ".c"
    }
    write(
        "native",
        "Models without Python",
        "Microseconds of a prediction, one at a time; labels equal to Python's in percent, on all "
        "test rows. numba and extension are `predict_one` in Python; roofline is what memory alone "
        "takes for the weights of a prediction, in percent of C.",
        table(
            [
                "set",
                "input",
                "numba µs",
                "extension µs",
                "C µs",
                "equal %",
                "WASM in Node µs",
                "equal %",
                "in Chromium µs",
                "equal %",
                "roofline %",
            ],
            rows,
        ),
        "Texts that take 16 paths, at temperature 4:",
        table(["set", "numba µs", "extension µs", "equal"], several),
        "ONNX Runtime, one thread, a dense row alone:",
        table(["set", "ONNX µs", "equal %", "ONNX bytes", "model file bytes"], graphs),
        "Import, load and first prediction in a fresh Python process, its largest resident memory; "
        "and `thinleaf predict` of one line, from start to end of the process:",
        table(["set", "by", "ms", "MB", "line ms", "model MB"], first),
        f"The web folder has {sum(sizes.values()):,} bytes: "
        + ", ".join(f"{file} {size:,}" for file, size in sizes.items()),
    )


if __name__ == "__main__":
    main()
