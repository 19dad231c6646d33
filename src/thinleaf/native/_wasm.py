"""``thinleaf.wasm`` from ``thinleaf.h``: ``python -m thinleaf.native._wasm``.

Clang comes with the package ``ziglang`` (``pip install ziglang==0.17.0``): the same version makes
the same bytes, on every machine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).with_name("web")
ZIG = "0.17.0"
OPTIONS = (
    "--target=wasm32-freestanding", "-std=c99", "-Oz", "-ffp-contract=off", "-nostdlib",
    "-fno-sanitize=all", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint",
    "-mllvm", "-inlinehint-threshold=5", "-mllvm", "-inline-threshold=5", "-mllvm", "-disable-lsr",
    "-Wl,--no-entry", "-Wl,--strip-all", "-s",
)  # fmt: skip


def build(target: Path) -> None:
    """Compile to a file."""
    command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS, "thinleaf.c", "-o", str(target)]
    subprocess.run(command, cwd=WEB, check=True)
    target.chmod(0o644)


if __name__ == "__main__":
    build(WEB / "thinleaf.wasm")
