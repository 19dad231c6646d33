"""Try an installed thinleaf: ``python -I tests/check_installed.py`` in any folder.

It is started by :mod:`tests.check_distribution` in an environment that has nothing but thinleaf and
what that needs, and writes to the folder that it is started in.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import thinleaf

DATA = ("native/thinleaf.h", "py.typed", "measuring/evaluation_page.html")


def main() -> None:
    """Train, save, load and predict, in Python and on the command line."""
    package = Path(thinleaf.__file__).parent
    assert Path(sys.prefix) in package.parents, f"{package} is not the installed one"
    assert thinleaf.__version__ == version("thinleaf")
    for name in DATA:
        assert files("thinleaf").joinpath(name).is_file(), name
    for name in thinleaf.__all__:
        getattr(thinleaf, name)

    texts = ["my card was stolen", "i lost my card", "a loan for a house", "the rate of a loan"]
    labels = ["card", "card", "loan", "loan"]
    lines = [f"{label}\t{text}" for _ in range(10) for label, text in zip(labels, texts)]  # noqa: B905
    Path("train.tsv").write_text("\n".join(lines), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("thinleaf"))]
    if not Path("model.thinleaf").exists():  # what another installation has written is read
        subprocess.run([*command, "train", "train.tsv", "-o", "model.thinleaf", "-q"], check=True)
    answer = subprocess.run(
        [*command, "predict", "model.thinleaf", "-q"],
        input="somebody stole my card\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "card\n", answer.stdout
    model = thinleaf.load("model.thinleaf")
    assert model.predict_one("somebody stole my card") == "card"
    assert model.predict(["loans for houses", "a loan"]).tolist() == ["loan", "loan"]
    print(f"thinleaf {thinleaf.__version__} in {package} works")


if __name__ == "__main__":
    main()
