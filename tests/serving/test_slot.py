"""Another model takes the place of the one that answers, if it is a whole one of the same kind."""

from __future__ import annotations

import os
import threading

import pytest

from tests.serving.models import encoder_model, row_model, saved, text_model
from thinleaf import ModelFileError
from thinleaf.serving.limits import Limits
from thinleaf.serving.slot import Slot


def label(slot: Slot) -> str:
    return str(slot.current.answerer.labels(["a broken arm"])[0])


def test_a_file_that_is_replaced_is_taken_up(tmp_path):
    path = saved(text_model(), tmp_path)
    slot = Slot(path, Limits())
    before = slot.current
    assert not slot.changed()
    assert label(slot) == "fracture"
    text_model(other=True).save(path)
    assert slot.changed()
    assert label(slot) == "fracture"
    assert slot.reload()
    assert label(slot) == "other fracture"
    assert not slot.changed()
    assert slot.current.version != before.version
    assert before.answerer.labels(["a broken arm"]) == ["fracture"]  # requests keep theirs
    assert (slot.n_reloads, slot.n_failures, slot.failure) == (1, 0, None)


def test_a_model_without_its_encoder_is_refused(tmp_path):
    path = saved(encoder_model(), tmp_path)
    with pytest.raises(ValueError, match="which no model file holds"):
        Slot(path, Limits())


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "gone", "directory", "rows"])
def test_a_file_that_is_broken_changes_nothing(tmp_path, damage):
    path = saved(text_model(), tmp_path)
    slot = Slot(path, Limits())
    content = path.read_bytes()
    path.unlink()
    if damage == "directory":
        path.mkdir()
    elif damage == "rows":
        row_model().save(path)
    elif damage != "gone":
        path.write_bytes(
            {"cut": content[: len(content) // 2], "empty": b"", "noise": b"x" * 999}[damage]
        )
    if damage != "gone":
        assert slot.changed()
    assert not slot.reload()
    assert not slot.changed()
    assert label(slot) == "fracture"
    assert (slot.n_reloads, slot.n_failures) == (0, 1)
    assert slot.failure
    if damage == "directory":
        path.rmdir()
    path.write_bytes(content)
    assert slot.changed()
    assert slot.reload()
    assert slot.failure is None


def test_the_same_file_that_comes_back_is_taken_up(tmp_path):
    path = saved(text_model(), tmp_path)
    slot = Slot(path, Limits())
    os.rename(path, tmp_path / "aside")
    assert not slot.changed()
    assert "No such file" in str(slot.failure)
    assert not slot.changed()
    assert slot.n_failures == 1
    os.rename(tmp_path / "aside", path)
    assert slot.changed()
    assert slot.reload()


def test_a_server_does_not_start_without_a_model(tmp_path):
    with pytest.raises(FileNotFoundError):
        Slot(tmp_path / "none", Limits())
    (tmp_path / "broken").write_bytes(b"no model")
    with pytest.raises(ModelFileError):
        Slot(tmp_path / "broken", Limits())


def test_a_beam_is_that_of_every_model(tmp_path):
    path = saved(row_model(), tmp_path)
    slot = Slot(path, Limits(), beam=2, temperature=1.5)
    assert (slot.current.answerer.model.beam, slot.current.answerer.model.temperature) == (2, 1.5)
    row_model(3).save(path)
    assert slot.reload()
    assert slot.current.answerer.model.beam == 2
    assert slot.current.answerer.shape.n_classes == 3


def test_whoever_asks_while_models_change_gets_one_of_them(tmp_path):
    path = saved(text_model(), tmp_path)
    slot = Slot(path, Limits())
    found: set[tuple[str, str]] = set()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            loaded = slot.current
            found.add((loaded.version, loaded.answerer.labels(["a broken arm"])[0]))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        text_model(other=turn % 2 == 0).save(path)
        assert slot.reload()
    stop.set()
    for thread in threads:
        thread.join()
    by_version = dict(found)
    assert len(found) == len(by_version) <= 2
