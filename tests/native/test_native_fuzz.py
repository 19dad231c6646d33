"""The long fuzz run of the header goes on where it was stopped."""

from __future__ import annotations

import subprocess

from benchmarks import native_fuzz
from benchmarks.native_fuzz import PIECE, Progress, explore, good_files, mutate


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
        subprocess.CompletedProcess([], 0, f"{PIECE} cases, 17 accepted\n", ""),
        subprocess.CompletedProcess([], 1, "", "…\nSUMMARY: AddressSanitizer: overflow\n"),
    ]
    asked = []

    def run(command, **options):
        asked.append(command)
        return done[len(asked) - 1]

    monkeypatch.setattr(native_fuzz, "program", lambda *_, **__: tmp_path / "driver")
    monkeypatch.setattr(native_fuzz.subprocess, "run", run)
    assert len(list(mutate(tmp_path, progress, 2 * PIECE))) == 2
    assert [command[2] for command in asked] == ["1", "2"]  # seeds: no case comes twice
    assert (progress.cases, progress.accepted) == (2 * PIECE, 17)
    assert progress.findings == ["mutations, seed 2: SUMMARY: AddressSanitizer: overflow"]
    assert list(mutate(tmp_path, progress, 2 * PIECE)) == []


def test_libfuzzer_keeps_its_corpus(tmp_path, monkeypatch):
    progress = Progress.of(tmp_path)
    said = "#2 cov: 1 ft: 123 corp\nstat::number_of_executed_units: 55\n"
    monkeypatch.setattr(native_fuzz, "program", lambda *_, **__: tmp_path / "driver")
    monkeypatch.setattr(
        native_fuzz.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, "", said)
    )
    next(explore(tmp_path, progress, 1.0))
    assert (progress.executions, progress.features, progress.findings) == (55, 123, [])
    assert len(list((tmp_path / "corpus").iterdir())) > 20
