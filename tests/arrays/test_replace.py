"""Files are written whole, to regular files or new paths alone, and keep links and modes."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest

from thinleaf.arrays.files import ModelFileError, read_arrays, write_arrays
from thinleaf.arrays.replace import check_writable, replace_file

posix = pytest.mark.skipif(os.name == "nt", reason="kinds of files of POSIX")


def write(path: Path | str, text: str = "new") -> None:
    with replace_file(path) as temporary:
        temporary.write_text(text)


def make_special(path: Path, kind: str) -> None:
    """Make something that is no regular file."""
    if kind == "a directory":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as own:
            here = Path.cwd()
            os.chdir(path.parent)  # names of sockets are short
            try:
                own.bind(path.name)
            finally:
                os.chdir(here)
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("devices cannot be made here")


@posix
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", ["a directory", "a named pipe", "a socket", "a device"])
def test_only_regular_files_are_replaced(tmp_path, kind, linked):
    path = tmp_path / "special"
    make_special(path, kind)
    named = path
    if linked:
        named = tmp_path / "link"
        named.symlink_to(path)
    before = path.lstat()
    listing = sorted(tmp_path.iterdir())
    for attempt in (
        lambda: write(named),
        lambda: check_writable(named),
        lambda: write_arrays(named, {"a": np.arange(3)}, {}),
    ):
        with pytest.raises(OSError, match=f"is {kind}: give the name of a file"):
            attempt()
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert sorted(tmp_path.iterdir()) == listing


@posix
def test_what_is_no_regular_file_is_not_read_as_a_model(tmp_path):
    make_special(tmp_path / "pipe", "a named pipe")
    with pytest.raises(ModelFileError, match="no regular file"):  # and nothing waits for a writer
        read_arrays(tmp_path / "pipe")


@posix
def test_links_stay_and_their_target_is_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "model", tmp_path / "current"
    link.symlink_to("store/model")
    for content in ("first", "second"):  # at first the link points to nothing
        check_writable(link)
        write(link, content)
        assert link.is_symlink()
        assert target.read_text() == content
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop cannot be written"):
        write(tmp_path / "loop")
    (tmp_path / "lost").symlink_to("no/such")
    with pytest.raises(FileNotFoundError, match=r"directory of .*lost does not exist"):
        check_writable(tmp_path / "lost")


@posix
@pytest.mark.parametrize("mode", [0o640, 0o600, 0o664, 0o444])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "model"
    path.touch()
    path.chmod(mode)
    write(path)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)
    write_arrays(path, {"a": np.arange(3)}, {})
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_others_see_nothing_of_a_private_file_while_it_is_written(tmp_path):
    path = tmp_path / "model"
    path.touch()
    path.chmod(0o600)
    with replace_file(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600


@posix
def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o640


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_root_leaves_a_file_to_its_owner(tmp_path):
    path = tmp_path / "model"
    path.touch()
    os.chown(path, 12345, 23456)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@posix
def test_a_directory_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        if os.geteuid() == 0:  # whom modes do not stop
            os.seteuid(65534)
        try:
            for attempt in (write, check_writable):
                with pytest.raises(PermissionError, match="cannot be written: Permission denied"):
                    attempt(folder / "model")
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
            folder.chmod(0o755)


def test_a_check_leaves_nothing(tmp_path):
    check_writable(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "model").write_text("old")
    check_writable(tmp_path / "model")
    assert (tmp_path / "model").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["", "new/"])
def test_what_is_no_name_of_a_file(tmp_path, monkeypatch, name):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for attempt in (write, check_writable):
        with pytest.raises(FileNotFoundError, match="is no name of a file"):
            attempt(name)
    assert [path.name for path in tmp_path.rglob("*")] == ["here"]


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(OSError, match="cannot be written"):
        check_writable(tmp_path / ("x" * 5000))


def test_a_block_that_fails_changes_nothing(tmp_path):
    path = tmp_path / "model"
    path.write_text("old")

    def fail() -> None:
        with replace_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
