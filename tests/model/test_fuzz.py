"""A few thousand mutated model files; benchmarks/fuzz.py tries many more."""

from __future__ import annotations

import time
import warnings
from collections import Counter

import pytest

fuzz = pytest.importorskip("benchmarks.fuzz", reason="benchmarks are in the repository only")

FILES = 3000
SECONDS = 15.0


@pytest.fixture(scope="module")
def good() -> list[bytes]:
    return fuzz.good_files()


def test_good_files_are_accepted(good, tmp_path):
    for content in good:
        (tmp_path / "case").write_bytes(content)
        assert fuzz.outcome_of(tmp_path / "case") == ("accepted", "")


def test_mutated_files_are_refused_or_work(good, tmp_path):
    """As many as there is time for, at the most 3,000."""
    path, counts = tmp_path / "case", Counter()
    ends = time.process_time() + SECONDS
    for number in range(FILES):
        kind, content = fuzz.case(1, number, good)
        path.unlink(missing_ok=True)  # a mapped file must not change
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome, error = fuzz.outcome_of(path)
        assert outcome in ("refused at load", "refused at use", "accepted"), (number, kind, error)
        counts[outcome] += 1
        if time.process_time() > ends and number > 200:
            break
    assert counts["refused at load"] > counts["accepted"] > 0
    assert counts["refused at use"] > 0


def test_a_case_depends_on_its_number_only(good):
    assert fuzz.case(0, 5, good) == fuzz.case(0, 5, good)
    assert len({fuzz.case(0, number, good)[1] for number in range(50)}) == 50


def test_a_worker_that_dies_is_counted_and_its_file_kept(tmp_path, monkeypatch, good):
    """What the parent process makes of the log of a child that did not come back."""
    log = tmp_path / "0-10" / "log"

    class Dead:
        returncode = -11

        def __init__(self, *arguments: object, **keywords: object) -> None:
            log.parent.mkdir(exist_ok=True)
            done = b'["cut", "accepted", "", 0, 0.1]'
            record = (0).to_bytes(8, "little") + len(done).to_bytes(8, "little") + done
            log.write_bytes(record + (9).to_bytes(8, "little"))
            (log.parent / "case").write_bytes(b"the file")

        def poll(self) -> int:
            return -11

    monkeypatch.setattr(fuzz.subprocess, "Popen", Dead)
    tally = fuzz.run_batch(tmp_path, 0, 0, 10, good)
    assert tally.counts == {("cut", "accepted"): 1, (fuzz.case(0, 9, good)[0], "crash"): 1}
    assert (tmp_path / "kept-9").read_bytes() == b"the file"
