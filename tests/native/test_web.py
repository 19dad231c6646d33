"""The WebAssembly module: small, what the header compiles to, and right in Node and Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from tests.data.vectors.make import HERE as VECTORS
from thinleaf._version import __version__
from thinleaf.native import _wasm

SCRIPT = Path(__file__).with_name("check_vectors.mjs")


def test_the_package_is_small_and_complete():
    package = json.loads((_wasm.WEB / "package.json").read_text("utf-8"))
    files = [_wasm.WEB / name for name in ["package.json", *package["files"]]]
    assert sum(path.stat().st_size for path in files) <= 60_000
    assert package["version"] == __version__


def test_the_module_is_what_the_header_compiles_to(tmp_path):
    try:
        found = version("ziglang")
    except PackageNotFoundError:
        pytest.skip("ziglang is not installed")
    if found != _wasm.ZIG:
        pytest.skip(f"ziglang is {found}, not {_wasm.ZIG}")
    _wasm.build(tmp_path / "made.wasm")
    committed = (_wasm.WEB / "thinleaf.wasm").read_bytes()
    assert (tmp_path / "made.wasm").read_bytes() == committed, "run python -m thinleaf.native._wasm"


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_vectors_in_node():
    command = ["node", str(SCRIPT), str(_wasm.WEB), str(VECTORS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


PAGE = """<script type="module">
import { differences } from "/check_vectors.mjs";
const bytes = async (name) => new Uint8Array(await (await fetch(`/vectors/${name}`)).arrayBuffer());
let found;
try {
  const vectors = await (await fetch("/vectors/vectors.json")).json();
  found = await differences(await import("/web/thinleaf.js"), vectors, bytes);
} catch (error) {
  found = [String(error)];
}
await fetch("/found", { method: "POST", body: JSON.stringify(found) });
</script>"""
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm"}


class Site(BaseHTTPRequestHandler):
    """The page, the module, the vectors; what the page finds goes to ``found``."""

    found: Queue[str] = Queue()

    def do_GET(self) -> None:
        roots = {"web": _wasm.WEB, "vectors": VECTORS}
        first, _, name = self.path.strip("/").partition("/")
        path = roots[first] / name if first in roots else SCRIPT
        content = PAGE.encode() if self.path == "/" else path.read_bytes()
        self.send_response(200)
        kind = "text/html" if self.path == "/" else TYPES.get(path.suffix, "application/json")
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.found.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium")
def test_vectors_in_chromium(tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        url = f"http://127.0.0.1:{server.server_port}/"
        browser = subprocess.Popen(
            ["chromium", *options, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert json.loads(Site.found.get(timeout=90)) == []
        except Empty:
            pytest.skip("Chromium does not start here")
        finally:
            browser.kill()
            browser.wait()
            server.shutdown()
