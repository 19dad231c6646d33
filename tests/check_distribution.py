"""Build sdist and wheel, and try both in an environment of their own: ``make wheel``.

The wheel is built from the sdist, so the sdist has all that is needed. What is tried is in
:mod:`tests.check_installed`.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
WANTED = ("CITATION.cff", "LICENSE", "README.md", "docs/conf.py", "pyproject.toml")


def run(*words: object, cwd: Path = ROOT) -> None:
    """Run a command; if it fails, so does this."""
    print("+", *words, flush=True)
    subprocess.run([str(word) for word in words], cwd=cwd, check=True)


def package_files() -> set[str]:
    """Return the files of the package that are kept in git; none without it."""
    found = subprocess.run(
        ["git", "ls-files", "src/thinleaf"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = found.stdout.split("\n")
    names = [name for name in names if name and (ROOT / name).is_file()]
    return {name.removeprefix("src/") for name in names}


def check_contents(sdist: Path, wheel: Path) -> None:
    """Raise an error if a file of the package is in neither, or one is there that should not be."""
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    missing = package_files() - in_wheel
    if missing:
        raise SystemExit(f"{wheel.name} lacks {sorted(missing)}")
    strange = {name for name in in_wheel if not name.startswith("thinleaf")}
    if strange:
        raise SystemExit(f"{wheel.name} has {sorted(strange)}")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    missing = {*WANTED, *(f"src/{name}" for name in package_files())} - in_sdist
    if missing:
        raise SystemExit(f"{sdist.name} lacks {sorted(missing)}")
    if any("__pycache__" in name for name in in_wheel | in_sdist):
        raise SystemExit("there are compiled files in sdist or wheel")


def main() -> None:
    """Build into ``dist``; install the wheel, then the sdist, and try what they give."""
    for old in [*DIST.glob("thinleaf-*.whl"), *DIST.glob("thinleaf-*.tar.gz")]:
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", DIST)
    (wheel,), (sdist,) = DIST.glob("thinleaf-*.whl"), DIST.glob("thinleaf-*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    check_contents(sdist, wheel)
    with tempfile.TemporaryDirectory(prefix="thinleaf-") as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        python = place / "env" / "bin" / "python"
        try_it = [python, "-I", ROOT / "tests" / "check_installed.py"]
        run(python, "-m", "pip", "install", "-q", wheel)
        run(*try_it, cwd=place)
        run(python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", sdist)
        run(*try_it, cwd=place)
        run(python, "-m", "pip", "check")
    print(f"{wheel.name} and {sdist.name} can be installed, and work")


if __name__ == "__main__":
    main()
