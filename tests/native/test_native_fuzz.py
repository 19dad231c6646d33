"""The long fuzz run of the header goes on where it was stopped."""

from __future__ import annotations

import sys

from benchmarks import native_fuzz
from benchmarks.native_fuzz import PIECE, Progress, explore, good_files, mutate, together


def test_progress_is_of_one_header(tmp_path, monkeypatch):
    progress = Progress.of(tmp_path)
    progress.cases, progress.findings = 3 * PIECE, ["mutations, seed 3: x"]
    progress.save(tmp_path)
    assert Progress.of(tmp_path) == progress
    other = tmp_path / "other.h"
    other.write_text("/* another */")
    monkeypatch.setattr(native_fuzz, "HEADER", other)
    assert Progress.of(tmp_path).cases == 0


def test_it_starts_from_good_files():
    assert len(good_files()) > 30
    assert all(path.is_file() for path in good_files())


def test_pieces_are_counted_and_findings_kept(tmp_path, monkeypatch):
    progress = Progress.of(tmp_path)
    done = [
        (0, f"{PIECE} cases, 17 accepted\n", ""),
        (1, "", "…\nSUMMARY: AddressSanitizer: overflow\n"),
        (0, f"{PIECE} cases, 3 accepted\n", ""),
    ]
    asked = []

    def together(commands):
        asked.append([command[2] for command in commands])
        return [done.pop(0) for _ in commands]

    monkeypatch.setattr(native_fuzz, "program", lambda *_, **__: tmp_path / "driver")
    monkeypatch.setattr(native_fuzz, "together", together)
    assert len(list(mutate(tmp_path, progress, 3 * PIECE, workers=2))) == 2
    assert asked == [["1", "2"], ["3"]]  # seeds: no case comes twice
    assert (progress.cases, progress.accepted) == (3 * PIECE, 20)
    assert progress.findings == ["mutations, seed 2: SUMMARY: AddressSanitizer: overflow"]
    assert list(mutate(tmp_path, progress, 3 * PIECE, workers=2)) == []


def test_libfuzzer_keeps_its_corpus(tmp_path, monkeypatch):
    progress = Progress.of(tmp_path)
    said = "#2 cov: 1 ft: 123 corp\nstat::number_of_executed_units: 55\n"
    monkeypatch.setattr(native_fuzz, "program", lambda *_, **__: tmp_path / "driver")
    monkeypatch.setattr(native_fuzz, "together", lambda commands: [(0, "", said)] * len(commands))
    next(explore(tmp_path, progress, 1.0, workers=2))
    assert (progress.executions, progress.features, progress.findings) == (110, 123, [])
    assert (progress.pieces, progress.seconds) == (2, 0.0)  # no process took any time
    assert len(list((tmp_path / "corpus").iterdir())) > 20


def test_programs_run_at_the_same_time():
    code = (
        "import sys; n = int(sys.argv[1]); print(n); sys.stderr.write('e' * 100_000); sys.exit(n)"
    )
    ended = together([[sys.executable, "-c", code, str(number)] for number in range(2)])
    assert [(status, out.strip(), len(err)) for status, out, err in ended] == [
        (0, "0", 100_000),
        (1, "1", 100_000),
    ]
