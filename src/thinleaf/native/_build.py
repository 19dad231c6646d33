"""The extension around ``thinleaf.h``: ``python -m thinleaf.native._build`` builds it in place.

Wheels and editable installs build it by themselves (``hatch_build.py``) where there is a C
compiler. It has the stable ABI: one file serves Python 3.11 and all later ones.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NAME = "_compiled.abi3.so"
OPTIONS = (
    "-std=c99", "-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden",
)  # fmt: skip
_LOADS = (
    "import sys; from importlib.machinery import ExtensionFileLoader as Loader; "
    "from importlib.util import module_from_spec, spec_from_file_location as spec; "
    "found = spec('_compiled', sys.argv[1], loader=Loader('_compiled', sys.argv[1])); "
    "found.loader.exec_module(module_from_spec(found))"
)


class NoExtensionError(Exception):
    """The extension cannot be built here."""


def build(folder: Path) -> Path:
    """Compile the extension into a directory, and return its file.

    Raises
    ------
    NoExtensionError
        With the reason, if there is no compiler, or it fails, or Python does not load what it made.
    """
    if os.name != "posix" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NoExtensionError("it is for POSIX systems, and for Python with the stable ABI")
    compiler = shlex.split(os.environ.get("CC", ""))
    if not compiler:
        found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
        if found is None:
            raise NoExtensionError("there is no C compiler (cc, gcc or clang)")
        compiler = [found]
    flavour = ["-shared"]
    if sys.platform == "darwin":
        flavour = ["-bundle", "-undefined", "dynamic_lookup"]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        made = Path(name) / NAME
        folders = [f"-I{sysconfig.get_path('include')}", f"-I{HERE}"]
        files = [str(HERE / "_compiled.c"), "-o", str(made), "-lm"]
        _run([*compiler, *OPTIONS, *flavour, *folders, *files])
        _run([sys.executable, "-c", _LOADS, str(made)])
        return made.replace(folder / NAME)  # at once: a process may have the old one open


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoExtensionError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise NoExtensionError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    print(build(HERE))
