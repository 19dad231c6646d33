"""Run every benchmark whose data the directory holds, one after the other."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

from benchmarks import adaptive_sets, adapts, control, embedded, labeltree, online, peers
from benchmarks._data import LANGUAGE_SETS, available
from benchmarks._report import arguments

PAPERS = {
    "paper000_figure2": "letter",
    "paper000_figure3": "letter",
    "paper000_figure5": "ptb",
    "paper000_figure6": "clinc150",
    "paper000_letter": "letter",
    "paper001_table1": "letter",
    "paper001_table3": "ptb",
    "paper001_figure2": "letter",
    "paper001_figure3": "letter",
    "paper002_figure4": "fontglyph1000",
} | ({"paper001_table4": "ptb"} if find_spec("torch") else {})
"""Scripts that fit models of their own, and the set that they cannot do without."""

BENCHMARKS = [
    ("letter", "letter", []),
    ("solvers", "letter", []),
    ("fontglyph", "fontglyph1000", []),
    ("text", "icd10cm", ["--set", "icd10cm"]),
    ("text", "bible_verse", ["--set", "bible_verse"]),
    ("text_features", "banking77", []),
    ("text_path", "icd10cm", []),
    *(("embedded", name, ["--sets", name]) for name in embedded.SETS),
    ("explorer", "icd10cm", []),
    ("adaptive", "letter", []),
    ("fit_time", "letter", []),
    *(("control", name, ["--set", name]) for name in control.SETTINGS),
    *(("adaptive_sets", name, ["--set", name]) for name in adaptive_sets.SETTINGS),
    *(("online", name, ["--set", name]) for name in online.COMPARISONS),
    *(("forest", name, ["--set", name]) for name in peers.FORESTS),
    ("latency", "letter", []),
    ("native", "letter", []),
    ("serve", "icd10cm", []),
    *(("peers", name, ["--set", name]) for name in peers.SETS if name not in LANGUAGE_SETS),
    *(("adapts", name, ["--sets", name]) for name in adapts.SETS),
    ("ptb", "ptb", []),
    *(("labeltree", name, ["--set", name]) for name in labeltree.SETS),
    *(("labeltree_starts", name, ["--set", name]) for name in labeltree.SETS),
    ("language", "novels100", ["--set", "novels100"]),
    *([("torch_lm", "ptb", [])] if find_spec("torch") else []),
    *([("transformer_heads", "novels100", [])] if find_spec("torch") else []),
    *([("executors", "letter", []), ("kills", "letter", [])] if find_spec("ray") else []),
    ("defaults", "letter", []),
    ("decisions", "letter", []),
    ("structure", "letter", []),
    ("robustness", "letter", []),
    *((f"papers.{name}", needed, []) for name, needed in PAPERS.items()),
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
