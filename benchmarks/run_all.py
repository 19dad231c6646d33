"""Run every benchmark whose data the directory holds, one after the other."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

from benchmarks import adaptive_sets, labeltree, online
from benchmarks._data import available
from benchmarks._report import arguments

BENCHMARKS = [
    ("letter", "letter", []),
    ("solvers", "letter", []),
    ("fontglyph", "fontglyph1000", []),
    ("text", "icd10cm", ["--set", "icd10cm"]),
    ("text", "bible_verse", ["--set", "bible_verse"]),
    ("adaptive", "letter", []),
    ("fit_time", "letter", []),
    ("control", "letter", ["--set", "letter"]),
    ("control", "fontglyph1000", ["--set", "fontglyph1000"]),
    *(("adaptive_sets", name, ["--set", name]) for name in adaptive_sets.SETTINGS),
    *(("online", name, ["--set", name]) for name in online.COMPARISONS),
    ("latency", "letter", []),
    ("peers", "letter", ["--set", "letter"]),
    ("peers", "icd10cm", ["--set", "icd10cm"]),
    ("ptb", "ptb", []),
    *(("labeltree", name, ["--set", name]) for name in labeltree.SETS),
    ("language", "novels100", ["--set", "novels100"]),
    *([("torch_lm", "ptb", [])] if find_spec("torch") else []),
    ("defaults", "letter", []),
]


def main() -> None:
    """Run them; stop at the first failure."""
    options = arguments(__doc__).parse_args()
    for module, needed, extra in BENCHMARKS:
        if not available(options.data, needed):
            print(f"skipped {module} {' '.join(extra)}: no {needed} in {options.data}")
            continue
        command = [sys.executable, "-m", f"benchmarks.{module}", "--data", str(options.data)]
        subprocess.run([*command, *extra], check=True)


if __name__ == "__main__":
    main()
